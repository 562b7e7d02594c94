"""The workers of the `ray` runtime: Ray actors, on whichever machine has room for them.

A worker makes one call at a time: parameters in, a gradient out. What comes back is put into the worker's slot just as
a process on this machine would have put it there, so the master need not know the difference. Parameters go through
Ray's object store, once per version and machine, however many workers take them.
"""

import queue
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from a3c_core.config import RunConfig
from a3c_core.models.parameters import Vector
from a3c_core.progress import Progress
from a3c_core.real.shared_memory import ACCEPTED, GRANTED, PERMITTED, RING_SIZE, SERVED, SharedArrays, message_of
from a3c_core.real.worker_pool import NO_BELL, Loss
from a3c_core.system.ray_cluster import NoCluster, connected
from a3c_core.system.tensorflow import limit_gpus
from a3c_core.worker import Work

_SPLIT = ("play_s", "gradient_s", "wait_s", "cpu_s")


class Reply(NamedTuple):
    """What an actor answers: how its worker stands, and, unless it has just been spawned, what it has done."""

    next_episode: int
    in_episode: bool
    work: Work | None = None
    split: tuple[float, ...] = ()  # seconds since its last answer, as _SPLIT names them


class RayWorker:
    """An actor: a worker and what it needs."""

    def __init__(self, settings: dict[str, Any], slot: int, episode: int):
        from a3c_core.real.worker import new_worker

        self._config = RunConfig.model_validate(settings)
        limit_gpus(self._config.gpus, slot)
        if self._config.engine == "compiled":
            import a3c_core.real.preloads.compiled  # noqa: F401  so that the first episode is as fast as the others
        self._worker, self._engine = new_worker(self._config, slot, episode)
        self._rested_since_s, self._cpu_s = time.monotonic(), time.process_time()

    def stand(self) -> Reply:
        """Say that this worker is up."""
        return Reply(self._worker.next_episode, self._worker.in_episode)

    def work(self, published: Vector, granted: int, now_s: float, progress: Progress) -> Reply:
        """Play on; `granted`: number of episodes below which all may begin, `now_s`: on the master's clock."""
        from a3c_core.real.worker import await_game

        began_s = time.monotonic()
        waited_s = began_s - self._rested_since_s
        published = published.copy()  # compiled code takes an array that can't be written for another type
        progress = progress._replace(draw=self._worker.draw)
        done = self._worker.work(published, granted - self._worker.next_episode, now_s, progress)
        worked_s = time.monotonic() - began_s
        await_game(done.env_steps * self._config.environment.wait_s)
        self._rested_since_s = time.monotonic()
        before_s, self._cpu_s = self._cpu_s, time.process_time()
        play_s = worked_s * self._engine.play_share + self._rested_since_s - began_s - worked_s
        gradient_s = worked_s * (1.0 - self._engine.play_share)
        split = (play_s, gradient_s, waited_s, self._cpu_s - before_s)
        return self.stand()._replace(work=done, split=split)


@dataclass
class Member:
    """One spawned worker, as this side knows it."""

    slot: int
    actor: Any
    heard_s: float
    next_episode: int
    in_episode: bool = False
    called: tuple[float, int] | None = None  # when, and with which version, while a call is under way
    ended: str | None = None  # why
    hopeless: bool = False  # its constructor raised, as another's would


class RayPool:
    """All actors of a run. Answers come on Ray's own threads, and wait in an inbox until the master looks."""

    bell = NO_BELL

    def __init__(self, config: RunConfig, arrays: SharedArrays):
        self._config, self._arrays, self._slots = config, arrays, arrays.slots
        self._settings = config.model_dump(mode="json")
        self._until_applied = config.gradients.pull == "after_apply"
        self._until_permitted = config.gradients.makes_workers_wait
        self.members: dict[int, Member] = {}
        self._inbox: queue.SimpleQueue[tuple[Member, Any, float]] = queue.SimpleQueue()
        self._version, self._stored = -1, None  # what the object store holds
        self._came_up_s = 0.0  # when an actor last did
        self._all_came_up = False
        self._connection = ExitStack()
        workers = config.span.end
        self._ray = self._connection.enter_context(connected(workers))
        room = int(self._ray.cluster_resources().get("CPU", 0))
        if room < workers:
            self._connection.close()
            raise NoCluster(f"{workers} workers need as many CPUs, and the Ray cluster has {room}: add machines to it")
        self._new_actor = self._ray.remote(num_cpus=1, max_restarts=0)(RayWorker)

    def spawn(self, slot: int, episode: int) -> None:
        actor = self._new_actor.remote(self._settings, slot, episode)
        member = self.members[slot] = Member(slot, actor, time.monotonic(), episode)
        self._expect(member, actor.stand.remote(), version=-1)

    def look(self) -> None:
        while not self._inbox.empty():
            self._heed(*self._inbox.get())

    def wait(self, limit_s: float) -> None:
        try:
            self._heed(*self._inbox.get(timeout=limit_s))
        except queue.Empty:
            return

    def wake(self, slot: int) -> None:
        """Let a worker play on, or note in its slot what it waits for."""
        member, row = self.members[slot], self._slots[slot]
        if member.called is not None or member.ended is not None:
            return  # it comes back here with its answer, or not at all
        row["waiting"] = 0
        if row["accepted"] < row["sent"]:
            row["waiting"] = ACCEPTED
        elif self._until_applied and row["served"] < row["sent"]:
            row["waiting"] = SERVED
        elif row["stop"] and not member.in_episode:
            member.ended = "told to leave"
        elif not member.in_episode and row["granted"] <= member.next_episode:
            row["waiting"] = GRANTED
        elif self._until_permitted and row["permits"] <= row["sent"]:
            row["waiting"] = PERMITTED
        else:
            granted = member.next_episode if row["stop"] else int(row["granted"])
            version, published = self._latest()
            call = member.actor.work.remote(published, granted, time.monotonic(), self._arrays.progress())
            self._expect(member, call, version)

    def lost(self) -> Iterator[Loss]:
        for slot, member in list(self.members.items()):
            reason = member.ended or self._overdue(member)
            if reason is not None:
                yield Loss(slot, reason, member.hopeless)

    def _overdue(self, member: Member) -> str | None:
        """Return what a worker that seems to be stuck has failed to do."""
        if member.called is None:
            return None
        silent_s = time.monotonic() - member.called[0]
        if self._slots["ready"][member.slot]:
            limit_s = self._config.worker_limit_s
            return f"delivered nothing for {limit_s:g} s" if silent_s > limit_s else None
        if self._all_came_up:
            return None  # it may wait for a CPU for long, while the others play
        limit_s = self._config.start_limit_s
        silent_s = min(silent_s, time.monotonic() - self._came_up_s)  # while others come up, the cluster is only slow
        return f"was not up after {limit_s:g} s" if silent_s > limit_s else None

    def remove(self, slot: int) -> None:
        self._ray.kill(self.members.pop(slot).actor)

    def close(self) -> None:
        for slot in list(self.members):
            self.remove(slot)
        self._connection.close()

    def _latest(self) -> tuple[int, Any]:
        """Return the version that was published last, and a reference to what was, in the object store."""
        place = int(self._arrays.current[0])
        version = int(self._arrays.versions[place])
        if version != self._version:
            self._version, self._stored = version, self._ray.put(self._arrays.parameters[place])
        return version, self._stored

    def _expect(self, member: Member, answer: Any, version: int) -> None:
        member.called = time.monotonic(), version
        answer.future().add_done_callback(partial(self._arrived, member))

    def _arrived(self, member: Member, answer: Any) -> None:
        """Called on a thread of Ray's: leave the rest to the master's."""
        self._inbox.put((member, answer, time.monotonic()))

    def _heed(self, member: Member, answer: Any, arrived_s: float) -> None:
        if self.members.get(member.slot) is not member or member.called is None:
            return  # of a worker that was given up
        _, version = member.called
        member.called = None
        try:
            reply: Reply = answer.result()
        except self._ray.exceptions.RayError as error:
            member.ended = " ".join(str(error).split())
            member.hopeless = getattr(error, "actor_init_failed", False)
            return
        member.next_episode, member.in_episode = reply.next_episode, reply.in_episode
        row = self._slots[member.slot]
        if reply.work is None:
            row["ready"] = 1
            self._came_up_s = arrived_s
            self._all_came_up |= bool(self._slots["ready"].sum() >= self._config.span.start)
        else:
            for name, seconds in zip(_SPLIT, reply.split, strict=True):
                row[name] += seconds
            self._put(member.slot, reply.work, version, arrived_s)
        self.wake(member.slot)

    def _put(self, slot: int, work: Work, version: int, arrived_s: float) -> None:
        place = slot, int(self._slots["sent"][slot]) % RING_SIZE
        self._arrays.gradients[(*place, slice(work.gradient.size))] = work.gradient
        generation = int(self._slots["generation"][slot])
        self._arrays.messages[place] = message_of(work, version, arrived_s, generation)
        for number, episode in enumerate(work.episodes):
            self._arrays.episodes[(*place, number)] = episode
        self._slots["sent"][slot] += 1
