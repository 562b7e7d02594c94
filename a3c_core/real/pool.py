"""The workers of a real run: hired, watched, replaced and dismissed, as processes or as threads."""

import contextlib
import multiprocessing
import os
import select
import sys
import threading
import time
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.reduction import DupFd
from typing import Any, Protocol

from a3c_core.config import RunConfig
from a3c_core.real.shared_memory import AT_ONCE, SharedBlock
from a3c_core.real.worker_main import LineEnds, process_main, work_until_stopped

_DISMISSAL_S = 2.0  # time to leave politely before being killed


@dataclass
class Hand:
    """One hired worker, and the master's ends of its line."""

    lane: int
    body: Any  # multiprocessing.Process or threading.Thread
    wake: int  # descriptor that wakes the worker when it waits
    gradients: Connection | None = None
    heard_s: float = 0.0  # when it last delivered something
    failure: str | None = None  # why a thread ended

    def close(self) -> None:
        os.close(self.wake)
        if self.gradients is not None:
            self.gradients.close()


class Crew(Protocol):
    """All workers of a run, wherever they are. Each is known by its lane, which outlives it."""

    @property
    def hands(self) -> Mapping[int, Any]:
        """The workers by lane; of each, `heard_s` is when it last delivered something."""

    def hire(self, lane: int, episode: int) -> None:
        """Start a worker in `lane` that goes on with its episode number `episode`."""

    def look(self) -> None:
        """Bring what has arrived into the lanes, if the workers can't do that themselves."""

    def wait(self, limit_s: float) -> None:
        """Block until a worker says something or dies, or the limit has passed."""

    def wake(self, lane: int) -> None:
        """Let a worker see what has changed in its lane."""

    def lost(self) -> Iterable[tuple[int, str]]:
        """Return (lane, reason) of each worker that has ended, told to or not, or is stuck."""

    def bury(self, lane: int) -> None:
        """Clear away a worker that was lost."""

    def close(self) -> None:
        """Dismiss everyone."""


class LocalCrew:
    """Workers on this machine: processes, or threads of this one. Their lanes are in shared memory."""

    def __init__(self, config: RunConfig, block: SharedBlock):
        self._config, self._block = config, block
        self._settings = config.model_dump(mode="json")
        self.hands: dict[int, Hand] = {}
        self._bell, self._bell_button = os.pipe()
        self._lifeline, self._master_end = os.pipe()
        for descriptor in (self._bell, self._bell_button):
            os.set_blocking(descriptor, False)
        self._poll = select.poll()
        self._poll.register(self._bell, select.POLLIN)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["a3c_core.real.preload"])

    def hire(self, lane: int, episode: int) -> None:
        """Start a worker in `lane` that goes on with its episode number `episode`."""
        ears, wake = os.pipe()
        os.set_blocking(wake, False)
        if self._config.runtime == "threads":
            hand = self._hire_thread(lane, episode, ears, wake)
        else:
            hand = self._hire_process(lane, episode, ears, wake)
        hand.heard_s = time.monotonic()
        self.hands[lane] = hand

    def look(self) -> None:
        """Nothing to do: workers write to the lanes themselves."""

    def wait(self, limit_s: float) -> None:
        """Block until a worker rings or dies, or the limit has passed."""
        self._poll.poll(limit_s * 1000)
        try:
            os.read(self._bell, 65_536)
        except BlockingIOError:  # nobody has rung
            return

    def wake(self, lane: int) -> None:
        """Wake a worker that waits for the master."""
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(self.hands[lane].wake, b"!")

    def lost(self) -> Iterator[tuple[int, str]]:
        """Yield (lane, reason) of each worker that has ended without being told to, or is stuck."""
        for lane, hand in list(self.hands.items()):
            if not hand.body.is_alive():
                code = getattr(hand.body, "exitcode", None)
                yield lane, hand.failure or (f"killed by signal {-code}" if code and code < 0 else f"exit code {code}")
            elif time.monotonic() - hand.heard_s > self._config.worker_limit_s:
                yield lane, f"delivered nothing for {self._config.worker_limit_s:g} s"

    def dismiss(self, lane: int) -> None:
        """Let a worker go: politely, then by force."""
        hand = self.hands.pop(lane)
        self._block.arrays.lanes[lane]["stop"] = AT_ONCE
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(hand.wake, b"!")
        if isinstance(hand.body, threading.Thread):
            hand.body.join()
        else:
            self._end_process(hand.body)
        hand.close()

    def bury(self, lane: int) -> None:
        """Clear away a worker that was lost."""
        hand = self.hands.pop(lane)
        if not isinstance(hand.body, threading.Thread):
            hand.body.kill()
            self._end_process(hand.body)
        hand.close()

    def close(self) -> None:
        """Dismiss everyone, all at the same time."""
        for hand in self.hands.values():
            self._block.arrays.lanes[hand.lane]["stop"] = AT_ONCE
        for lane in list(self.hands):
            self.dismiss(lane)
        for descriptor in (self._bell, self._bell_button, self._lifeline, self._master_end):
            os.close(descriptor)

    def _hire_process(self, lane: int, episode: int, ears: int, wake: int) -> Hand:
        gradients, theirs = self._gradient_pipe()
        with _no_main_module():
            ends = LineEnds(DupFd(self._bell_button), DupFd(ears), theirs)
            process = self._context.Process(
                target=process_main,
                args=(self._settings, lane, episode, self._block.handle(), ends, DupFd(self._lifeline)),
                name=f"a3c-worker-{lane}",
                daemon=True,
            )
            process.start()
        os.close(ears)
        if theirs is not None:
            theirs.close()  # so that the worker's death is the end of the pipe
        self._poll.register(process.sentinel, select.POLLIN)
        return Hand(lane, process, wake, gradients)

    def _hire_thread(self, lane: int, episode: int, ears: int, wake: int) -> Hand:
        gradients, theirs = self._gradient_pipe()
        ends = LineEnds(self._bell_button, ears, theirs)

        def body() -> None:
            try:
                work_until_stopped(self._config, lane, episode, self._block.arrays, ends)
            except Exception as error:
                hand.failure = f"{type(error).__name__}: {error}"
            finally:
                os.close(ears)

        thread = threading.Thread(target=body, name=f"a3c-worker-{lane}", daemon=True)
        hand = Hand(lane, thread, wake, gradients)
        hand.body.start()
        return hand

    def _gradient_pipe(self) -> tuple[Connection | None, Connection | None]:
        """Return the master's and the worker's end of a pipe for gradients, where the transport is `queue`."""
        return self._context.Pipe(duplex=False) if self._config.exchange.transport == "queue" else (None, None)

    def _end_process(self, process: Any) -> None:
        process.join(_DISMISSAL_S)
        if process.is_alive():
            process.kill()
            process.join()
        with contextlib.suppress(KeyError):
            self._poll.unregister(process.sentinel)
        process.close()


@contextlib.contextmanager
def _no_main_module() -> Iterator[None]:
    """Keep multiprocessing from importing the user's script again in every worker: they need nothing of it."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
