"""Ctrl-C and a polite kill: heeded between two events instead of in the middle of one, and answered in one line."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

INTERRUPTED = 130  # exit code; docs/exit_codes.md has them all
_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Whether the user, or whoever started us, asked to stop."""

    def __init__(self) -> None:
        self.asked = False

    def ask(self, signal_number: int, frame: FrameType | None) -> None:
        """Remember the request; a second one is not to be ignored."""
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def deferred_interrupts() -> Iterator[Interruption]:
    """Within this block SIGINT and SIGTERM set `asked`; outside of the main thread nothing changes."""
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    before = {number: signal.signal(number, interruption.ask) for number in _INTERRUPTS}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def blocked_interrupts() -> Iterator[None]:
    """Start a process within this block, and SIGINT and SIGTERM have to wait until it hears them: it inherits that.

    Our own may still come, by another thread.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def heard_interrupts() -> Iterator[None]:
    """Within this block SIGINT and SIGTERM raise KeyboardInterrupt in a process that began with them blocked."""
    for number in _INTERRUPTS:
        signal.signal(number, signal.default_int_handler)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPTS)  # what has waited comes now
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTS)  # one more must not disturb the last words


def answer_in_one_line() -> None:
    """Let Ctrl-C that nobody else heeds end this process with a word and an exit code, at an import as well."""
    sys.excepthook = _end_or_show


def _end_or_show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        return sys.__excepthook__(kind, error, trace)
    print("interrupted", file=sys.stderr)
    sys.exit(INTERRUPTED)
