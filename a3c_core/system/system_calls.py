"""What compiled code asks of the system itself: the clock, bytes through pipes, and an order of reads and writes.

Python would do the same, but coming back to it costs more than what is asked for.
"""

from typing import Any, NamedTuple

import numpy as np
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from a3c_core.system.jit import inner

_CLOCK_MONOTONIC = np.int32(1)  # Linux's, as time.monotonic() has it
_READABLE = 1  # POLLIN
_POLLED = np.dtype([("descriptor", "i4"), ("events", "i2"), ("seen", "i2")])  # struct pollfd
_clock_gettime: Any = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.voidptr))
_poll: Any = types.ExternalFunction("poll", types.int32(types.voidptr, types.uintp, types.int32))
_read: Any = types.ExternalFunction("read", types.intp(types.int32, types.voidptr, types.uintp))
_usleep: Any = types.ExternalFunction("usleep", types.int32(types.uint32))
_write: Any = types.ExternalFunction("write", types.intp(types.int32, types.voidptr, types.uintp))


class Desk(NamedTuple):
    """Memory through which a thread speaks with the system; a thread has its own."""

    clock: NDArray[np.int64]  # [2], seconds and nanoseconds
    letters: NDArray[np.uint8]  # [4096], read or to be written
    polled: NDArray[np.void]  # [1]


def new_desk() -> Desk:
    return Desk(np.zeros(2, np.int64), np.zeros(4096, np.uint8), np.zeros(1, _POLLED))


def _barrier(ordering: str) -> Any:
    """Return what keeps reads and writes in order, in the compiler as in the processor."""

    @intrinsic
    def barrier(typing_context: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            builder.fence(ordering)
            return context.get_dummy_value()

        return types.void(), generate

    return barrier


written = _barrier("release")  # what was written before it is seen before what is written after it
seen = _barrier("acquire")  # what was read before it was read before what is read or written after it
ordered = _barrier("seq_cst")  # the same, and nothing is read after it before all writes before it can be seen


@inner
def now_s(desk):
    """Return the seconds of the monotonic clock, which all processes of a machine share."""
    _clock_gettime(_CLOCK_MONOTONIC, desk.clock.ctypes)
    return desk.clock[0] + 1e-9 * desk.clock[1]


@inner
def ring(desk, descriptor):
    """Write a byte, so that whoever waits at the other end wakes up; a pipe that is full has rung for long enough."""
    _write(np.int32(descriptor), desk.letters.ctypes, np.uint64(1))


@inner
def nap(microseconds):
    """Block for a while, whoever rings."""
    _usleep(np.uint32(microseconds))


@inner
def sleep(desk, descriptor, limit_s):
    """Block until somebody rings or the limit has passed; return False if a signal came, for which Python may wait."""
    polled = desk.polled[0]
    polled.descriptor, polled.events = descriptor, _READABLE
    ready = _poll(desk.polled.ctypes, np.uint64(1), np.int32(1000 * limit_s + 1))
    if ready > 0:
        _read(np.int32(descriptor), desk.letters.ctypes, np.uint64(desk.letters.size))
    return ready >= 0
