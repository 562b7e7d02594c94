"""The workers of a real run: hired, watched, replaced and dismissed, as processes or as threads."""

import contextlib
import multiprocessing
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Protocol

from a3c_core.config import RunConfig
from a3c_core.runtimes.fork_server import Inherited, start_process
from a3c_core.runtimes.shared_memory import AT_ONCE, SharedBlock
from a3c_core.runtimes.worker_main import LineEnds, process_main, why, work_until_stopped

_DISMISSAL_S = 2.0  # without anyone leaving, before those who are left are killed


@dataclass
class Hand:
    """One hired worker, and the master's ends of its line."""

    lane: int
    body: Any  # multiprocessing.Process or threading.Thread; None if it could not be started
    wake: int  # descriptor that wakes the worker when it waits
    gradients: Connection | None = None
    tether: socket.socket | None = None  # to a process; its other end is open for just as long as that lives
    heard_s: float = 0.0  # when it last delivered something, came up, was idle or was hired
    is_up: bool = False
    reason: str | None = None  # why it ended, or has to
    raised: bool = False  # ended by an exception of its own

    def kill(self) -> None:
        """End a process that still holds its tether, so that its id can't be another's by now."""
        assert self.tether is not None
        self.tether.shutdown(socket.SHUT_WR)  # ends one, too, whose id was never told
        if self.body is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.body.pid, signal.SIGKILL)

    def find_reason(self) -> None:
        """Find out why a process has ended: by its own last words, or else by its exit code."""
        if self.reason is not None or self.tether is None:
            return
        last_words = self.tether.recv(65_536).decode(errors="replace")
        self.raised = bool(last_words)
        self.body.join(_DISMISSAL_S)  # until its parent, the fork server, tells
        code = self.body.exitcode
        self.reason = last_words or (f"killed by signal {-code}" if code and code < 0 else f"exit code {code}")

    def close(self) -> None:
        os.close(self.wake)
        for end in (self.gradients, self.tether):
            if end is not None:
                end.close()


class Loss(NamedTuple):
    """A worker that has ended, told to or not, or that is given up."""

    lane: int
    reason: str
    hopeless: bool = False  # an exception kept it from coming up, and would keep others from it


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

    def lost(self) -> Iterable[Loss]:
        """Return the workers that have ended, told to or not; those that are stuck are made to."""

    def bury(self, lane: int) -> None:
        """Clear away a worker that was lost."""

    def close(self) -> None:
        """Dismiss everyone."""


class LocalCrew:
    """Workers on this machine: processes, or threads of this one. Their lanes are in shared memory."""

    def __init__(self, config: RunConfig, block: SharedBlock):
        self._config, self._block = config, block
        self._lanes = block.arrays.lanes
        self._settings = config.model_dump(mode="json")
        self.hands: dict[int, Hand] = {}
        self._came_up_s = 0.0  # when a worker last did
        self._bell, self._bell_button = os.pipe()
        for descriptor in (self._bell, self._bell_button):
            os.set_blocking(descriptor, False)
        self._poll = select.poll()
        self._poll.register(self._bell, select.POLLIN)

    def hire(self, lane: int, episode: int) -> None:
        """Start a worker in `lane` that goes on with its episode number `episode`."""
        ears, wake = os.pipe()
        os.set_blocking(wake, False)
        gradients, theirs = self._gradient_pipe()
        ends = LineEnds(self._bell_button, ears, theirs, int(self._lanes["generation"][lane]))
        hand = self.hands[lane] = Hand(lane, None, wake, gradients, heard_s=time.monotonic())
        if self._config.runtime == "threads":
            self._start_thread(hand, episode, ends)
        else:
            self._start_process(hand, episode, ends)

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

    def lost(self) -> Iterator[Loss]:
        """Yield the workers that are gone; kill those that are stuck, which will be gone at another look.

        A process counts as gone when its tether says so, not when the fork server does: that can be killed, too.
        """
        ended = {descriptor for descriptor, _ in self._poll.poll(0)}
        self._note_who_came_up()
        for hand in list(self.hands.values()):
            if self._is_gone(hand, ended):
                hand.find_reason()
                yield Loss(hand.lane, hand.reason or "ended", hand.raised and not hand.is_up)
            elif hand.reason is None and (reason := self._overdue(hand)):
                hand.reason = reason
                if hand.tether is None:  # nothing ends a thread, but what it sends from now on is refused
                    yield Loss(hand.lane, reason)
                else:
                    hand.kill()

    def bury(self, lane: int) -> None:
        """Clear away a worker that was lost."""
        hand = self.hands.pop(lane)
        if hand.tether is not None:
            self._poll.unregister(hand.tether)
            if hand.body is not None:
                hand.body.join(_DISMISSAL_S)
                if hand.body.exitcode is not None:  # else its parent, the fork server, hangs
                    hand.body.close()
        hand.close()

    def close(self) -> None:
        """Dismiss everyone, all at the same time: politely, then by force."""
        for lane in self.hands:
            self._lanes[lane]["stop"] = AT_ONCE
            self.wake(lane)
        self._poll.unregister(self._bell)
        self._see_off()
        for hand in self._processes():
            hand.kill()
        self._see_off()
        for hand in list(self.hands.values()):
            if hand.tether is None:
                hand.body.join(self._config.worker_limit_s)
            self.bury(hand.lane)
        for descriptor in (self._bell, self._bell_button):
            os.close(descriptor)

    def _see_off(self) -> None:
        """Clear away processes as they end, until none is left or none has ended for a while."""
        while (processes := self._processes()) and (ended := self._poll.poll(_DISMISSAL_S * 1000)):
            gone = {descriptor for descriptor, _ in ended}
            for hand in processes:
                if self._is_gone(hand, gone):
                    self.bury(hand.lane)

    def _processes(self) -> list[Hand]:
        return [hand for hand in self.hands.values() if hand.tether is not None]

    def _start_process(self, hand: Hand, episode: int, ends: LineEnds) -> None:
        hand.tether, theirs = socket.socketpair()
        self._poll.register(hand.tether, 0)  # its end is always told
        given = ends._replace(doorbell=Inherited(ends.doorbell), wake=Inherited(ends.wake))
        arguments = self._settings, hand.lane, episode, self._block.handle(), given, theirs
        try:
            hand.body = start_process(f"a3c-worker-{hand.lane}", process_main, *arguments)
        except (OSError, EOFError) as error:
            hand.reason = f"could not be started ({error})"
            hand.kill()  # should it exist all the same
        finally:
            theirs.close()
            ends.close()

    def _start_thread(self, hand: Hand, episode: int, ends: LineEnds) -> None:
        def body() -> None:
            try:
                work_until_stopped(self._config, hand.lane, episode, self._block.arrays, ends)
            except Exception as error:
                hand.reason, hand.raised = why(error), True
            finally:
                ends.close()

        hand.body = threading.Thread(target=body, name=f"a3c-worker-{hand.lane}", daemon=True)
        hand.body.start()

    def _gradient_pipe(self) -> tuple[Connection | None, Connection | None]:
        """Return the master's and the worker's end of a pipe for gradients, where the transport is `queue`."""
        return multiprocessing.Pipe(duplex=False) if self._config.exchange.transport == "queue" else (None, None)

    def _note_who_came_up(self) -> None:
        for hand in self.hands.values():
            if not hand.is_up and self._lanes["ready"][hand.lane]:
                hand.is_up = True
                hand.heard_s = self._came_up_s = time.monotonic()

    def _is_gone(self, hand: Hand, ended: set[int]) -> bool:
        return not hand.body.is_alive() if hand.tether is None else hand.tether.fileno() in ended

    def _overdue(self, hand: Hand) -> str | None:
        """Return what a worker that seems to be stuck has failed to do."""
        now_s = time.monotonic()
        if hand.is_up:
            limit_s = self._config.worker_limit_s
            return f"delivered nothing for {limit_s:g} s" if now_s - hand.heard_s > limit_s else None
        limit_s = self._config.start_limit_s
        since_s = max(hand.heard_s, self._came_up_s)  # while others come up, the machine is only slow
        return f"was not up after {limit_s:g} s" if now_s - since_s > limit_s else None
