"""The workers of a real run on this machine: start, watch, replace and end them, as processes or as threads."""

import contextlib
import multiprocessing
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from a3c_core.build import parts_of
from a3c_core.config import RunConfig
from a3c_core.real.fork_server import Inherited, start_process
from a3c_core.real.shared_memory import AT_ONCE, SharedBlock
from a3c_core.real.worker import ChannelEnds, process_main, why, work_until_stopped
from a3c_core.real.worker_pool import Loss
from a3c_core.system.descriptors import make_room
from a3c_core.topologies import TOPOLOGIES

COMPILED = "a3c_core.real.preloads.compiled"
TENSORFLOW = "a3c_core.real.preloads.tensorflow"
ONEDNN = "a3c_core.real.preloads.onednn"
_NEED_TENSORFLOW = ("tensorflow", "report")  # engines
_FINE_S = 0.05  # waits shorter than this are not rounded up to milliseconds, as poll does
_FD_SETSIZE = 1024  # descriptors from here on are beyond select
_DESCRIPTORS = 6  # of a worker, while it starts: its doorbell, its tether and its pipe, of which we keep half
_DISMISSAL_S = 2.0  # without anyone leaving, before those who are left are killed


def preload_of(config: RunConfig) -> str:
    """Return the module that the fork server imports ahead of the workers.

    Each worker chooses its GPU before it loads TensorFlow, so TensorFlow is not preloaded where GPUs are used.
    """
    asks = TOPOLOGIES.get(config.topology).has_predictors
    if config.engine not in _NEED_TENSORFLOW or config.gpus or asks:
        return COMPILED
    return ONEDNN if parts_of(config).model.onednn else TENSORFLOW


@dataclass
class Member:
    """One spawned worker, and the master's ends of its channel."""

    slot: int
    body: Any  # multiprocessing.Process or threading.Thread; None if it could not be started
    wake: int  # descriptor that wakes the worker when it waits
    gradients: Connection | None = None
    tether: socket.socket | None = None  # to a process; its other end is open for just as long as that lives
    heard_s: float = 0.0  # when it last delivered something, came up, was idle or was spawned
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


class LocalPool:
    """Workers on this machine: processes, or threads of this one. Their slots are in shared memory."""

    def __init__(self, config: RunConfig, block: SharedBlock):
        make_room(config.span.end, _DESCRIPTORS)
        self._config, self._block = config, block
        self._slots = block.arrays.slots
        self._settings = config.model_dump(mode="json")
        self._preload = preload_of(config)
        self.members: dict[int, Member] = {}
        self._came_up_s = 0.0  # when a worker last did
        self.bell, self._bell_button = os.pipe()
        for descriptor in (self.bell, self._bell_button):
            os.set_blocking(descriptor, False)
        self._poll = select.poll()
        self._poll.register(self.bell, select.POLLIN)

    def spawn(self, slot: int, episode: int) -> None:
        """Start a worker in `slot` that goes on with its episode number `episode`."""
        ears, wake = os.pipe()
        os.set_blocking(wake, False)
        gradients, theirs = self._gradient_pipe()
        ends = ChannelEnds(self._bell_button, ears, theirs, int(self._slots["generation"][slot]), self.button_of(slot))
        member = self.members[slot] = Member(slot, None, wake, gradients, heard_s=time.monotonic())
        if self._config.runtime == "threads":
            self._start_thread(member, episode, ends)
        else:
            self._start_process(member, episode, ends)

    def button_of(self, slot: int) -> int | None:
        """Return the descriptor with which a worker wakes whoever chooses its actions, if that is not itself."""
        return None

    def look(self) -> None:
        """Nothing to do: workers write to the slots themselves."""

    def wait(self, limit_s: float) -> None:
        """Block until a worker rings or dies, or the limit has passed."""
        if limit_s < _FINE_S and self.bell < _FD_SETSIZE:
            select.select([self.bell], (), (), max(0.0, limit_s))
        else:
            self._poll.poll(limit_s * 1000)
        try:
            os.read(self.bell, 65_536)
        except BlockingIOError:  # nobody has rung
            return

    def wake(self, slot: int) -> None:
        """Wake a worker that waits for the master."""
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(self.members[slot].wake, b"!")

    def lost(self) -> Iterator[Loss]:
        """Yield the workers that are gone; kill those that are stuck, which will be gone at another look.

        A process counts as gone when its tether says so, not when the fork server does: that can be killed, too.
        """
        ended = {descriptor for descriptor, _ in self._poll.poll(0)}
        self._note_who_came_up()
        for member in list(self.members.values()):
            if self._is_gone(member, ended):
                member.find_reason()
                yield Loss(member.slot, member.reason or "ended", member.raised and not member.is_up)
            elif member.reason is None and (reason := self._overdue(member)):
                member.reason = reason
                if member.tether is None:  # nothing ends a thread, but what it sends from now on is refused
                    yield Loss(member.slot, reason)
                else:
                    member.kill()

    def remove(self, slot: int) -> None:
        """Clear away a worker that was lost."""
        member = self.members.pop(slot)
        if member.tether is not None:
            self._poll.unregister(member.tether)
            if member.body is not None:
                member.body.join(_DISMISSAL_S)
                if member.body.exitcode is not None:  # else its parent, the fork server, hangs
                    member.body.close()
        member.close()

    def close(self) -> None:
        """Dismiss everyone, all at the same time: politely, then by force."""
        for slot in self.members:
            self._slots[slot]["stop"] = AT_ONCE
            self.wake(slot)
        self._poll.unregister(self.bell)
        self._see_off()
        for member in self._processes():
            member.kill()
        self._see_off()
        for member in list(self.members.values()):
            if member.tether is None and member.body is not None:
                member.body.join(self._config.worker_limit_s)
            self.remove(member.slot)
        for descriptor in (self.bell, self._bell_button):
            os.close(descriptor)

    def _see_off(self) -> None:
        """Clear away processes as they end, until none is left or none has ended for a while."""
        while (processes := self._processes()) and (ended := self._poll.poll(_DISMISSAL_S * 1000)):
            gone = {descriptor for descriptor, _ in ended}
            for member in processes:
                if self._is_gone(member, gone):
                    self.remove(member.slot)

    def _processes(self) -> list[Member]:
        return [member for member in self.members.values() if member.tether is not None]

    def _start_process(self, member: Member, episode: int, ends: ChannelEnds) -> None:
        try:
            member.tether, theirs = socket.socketpair()
        except OSError:  # no descriptor is left
            ends.close()
            self.members.pop(member.slot).close()
            raise
        self._poll.register(member.tether, 0)  # its end is always told
        asks = None if ends.predictor is None else Inherited(ends.predictor)
        given = ends._replace(doorbell=Inherited(ends.doorbell), wake=Inherited(ends.wake), predictor=asks)
        arguments = self._settings, member.slot, episode, self._block.handle(), given, theirs
        try:
            member.body = start_process(f"a3c-worker-{member.slot}", self._preload, process_main, *arguments)
        except (OSError, EOFError) as error:
            member.reason = f"could not be started ({error})"
            member.kill()  # should it exist all the same
        finally:
            theirs.close()
            ends.close()

    def _start_thread(self, member: Member, episode: int, ends: ChannelEnds) -> None:
        def body() -> None:
            try:
                work_until_stopped(self._config, member.slot, episode, self._block.arrays, ends)
            except Exception as error:
                member.reason, member.raised = why(error), True
            finally:
                ends.close()

        member.body = threading.Thread(target=body, name=f"a3c-worker-{member.slot}", daemon=True)
        member.body.start()

    def _gradient_pipe(self) -> tuple[Connection | None, Connection | None]:
        """Return the master's and the worker's end of a pipe for gradients, where the transport is `queue`."""
        return multiprocessing.Pipe(duplex=False) if self._config.gradients.transport == "queue" else (None, None)

    def _note_who_came_up(self) -> None:
        for member in self.members.values():
            if not member.is_up and self._slots["ready"][member.slot]:
                member.is_up = True
                member.heard_s = self._came_up_s = time.monotonic()

    def _is_gone(self, member: Member, ended: set[int]) -> bool:
        if member.tether is not None:
            return member.tether.fileno() in ended
        return member.body is None or not member.body.is_alive()

    def _overdue(self, member: Member) -> str | None:
        """Return what a worker that seems to be stuck has failed to do."""
        now_s = time.monotonic()
        if member.is_up:
            limit_s = self._config.worker_limit_s
            return f"delivered nothing for {limit_s:g} s" if now_s - member.heard_s > limit_s else None
        limit_s = self._config.start_limit_s
        since_s = max(member.heard_s, self._came_up_s)  # while others come up, the machine is only slow
        return f"was not up after {limit_s:g} s" if now_s - since_s > limit_s else None
