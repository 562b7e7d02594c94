"""Virtual time of `gorila`: actors play, replay memories keep, learners differentiate, servers apply.

An actor plays a piece with the parameters it fetched and hands that over to a memory: its learner's, or one that all
share. A learner fetches the parameters and the target network, draws a minibatch, sends its gradient to a parameter
server in shards, and goes on when that is dealt with. Gradients that are too old are dropped there; one with an
outlying loss is rejected by its learner. What enters a memory costs its actor `send_s`, and nobody else anything.
Records of episodes are of actors, those of updates of learners. Events beside those of workers and servers are
    learner_core    parameters have reached a learner: it wants a core
    learned         it has had one for as long as its minibatch needs
"""

import math
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from a3c_core.episode_log import Parcel
from a3c_core.learners.replay import Made, ReplayEngine, Replayer, ReplayMemory
from a3c_core.models.parameters import Vector
from a3c_core.records.tables import Status
from a3c_core.runtime import Arrays, Saved
from a3c_core.virtual.parameter_server import UPDATED, ParameterServer, Pending
from a3c_core.virtual.timeline import MASTER
from a3c_core.virtual.workers import PLAYED, Publication, WorkerSlot, WorkerStations

LEARNER_CORE, LEARNED = "learner_core", "learned"
_LEAST_S = 1e-6  # of a gradient, whatever the profile says: nobody else lets time go on for a learner at its own pace
_LEARNERS = 1 << 30  # learners' stations have the numbers from here on; actors' are below


@dataclass
class LearnerSlot:
    """A learner in virtual time, and what it has under way."""

    replayer: Replayer
    parcel: Parcel | None = None
    pulled: list[int] = field(default_factory=list)  # versions, by shard
    made: Made | None = None
    is_busy: bool = False
    since_s: float = 0.0  # it has a core
    worked_s: float = 0.0
    owed: deque[int] = field(default_factory=deque)  # actors that wait for a gradient of what they have played

    @property
    def station(self) -> int:
        return _LEARNERS + self.replayer.number


class GorilaStations(WorkerStations):
    """N actors, L learners with their memories, k servers."""

    def __init__(self, *of_run: Any):
        super().__init__(*of_run)
        exchange = self.config.exchange
        engine: Any = self.engine  # one for other algorithms is refused before the run
        self._replay_engine: ReplayEngine = engine
        self._in_step, self._shares = exchange.pace == "in_step", exchange.memory == "shared"
        parts = self.learner, exchange, self.profile, self.timeline, self.log
        self._server = ParameterServer(*parts, self.progress, self._settled, exchange.bound)
        self.learners = [LearnerSlot(replayer) for replayer in self._new_replayers()]
        self.handlers |= {PLAYED: self._handed_over, UPDATED: self._server.updated}
        self.handlers |= {LEARNER_CORE: self._compute, LEARNED: self._learned}

    def _new_replayers(self) -> list[Replayer]:
        config, engine = self.config, self._replay_engine
        count = config.exchange.learners or config.span.end
        memories = [
            ReplayMemory(config.learner.memory_steps, engine.packing.spaces)
            for _ in range(1 if self._shares else count)
        ]
        settings = config.learner, config.exchange.outliers
        return [Replayer(n, config.seed, engine, memories[n % len(memories)], *settings) for n in range(count)]

    @property
    def waiting(self) -> int:
        return self._server.waiting

    # Actors

    def pull(self, slot: WorkerSlot) -> bool:
        slot.held = Publication(self.learner.version, self.learner.parameters)
        return True

    def played(self, slot: WorkerSlot, parcel: Parcel, gradient: Vector) -> None:
        """What an actor has played is no gradient."""
        raise AssertionError("experience is handed over to a memory")

    def _handed_over(self, actor: int) -> None:
        """What an actor has played reaches its memory, and its episodes their records."""
        slot, learner = self.slots[actor], self.learners[actor % len(self.learners)]
        parcel, experience = slot.parcel, slot.gradient
        assert parcel is not None
        assert experience is not None
        slot.parcel = slot.gradient = None
        for trajectory in self._replay_engine.packing.unpack(experience):
            learner.replayer.memory.add(trajectory)
        parcel.arrived_s, parcel.queue_length = self.timeline.now_s, self.waiting
        self._record(parcel)
        if self._in_step and learner.replayer.may_learn:
            learner.owed.append(actor)
            slot.waits += 1
        else:
            self.begin(actor)
        for one in self.learners if self._shares else [learner]:
            self._look(one)

    def _record(self, parcel: Parcel) -> None:
        """Record the episodes that have ended, whose staleness is that of the parameters they ended with."""
        if not parcel.episodes:
            return
        alive, version = self.alive, self.learner.version
        now_s, age = self.timeline.now_s, version - parcel.version_pulled
        self.log.enter_episodes(parcel, "applied", now_s, alive, version, age)
        self._change_workers(self.log.target_workers(alive, self.waiting))

    # Learners

    def _look(self, learner: LearnerSlot) -> None:
        """Let a learner begin its next gradient, if it may: without actors there is nothing to learn for."""
        wanted = learner.owed if self._in_step else self.slots
        if learner.is_busy or not wanted or not learner.replayer.may_learn:
            return
        learner.is_busy = True
        learner.parcel = Parcel(learner.replayer.number, self.learner.version)
        learner.pulled = self._server.versions()
        learner.made = learner.replayer.make(self.learner.publication)
        if self.profile.latency_s > 0:
            self.timeline.at(self.timeline.now_s + self.profile.latency_s, learner.station, LEARNER_CORE)
        else:
            self._compute(learner.station)

    def _compute(self, station: int) -> None:
        profile, replayer = self.profile, self.learners[station - _LEARNERS].replayer
        steps = self.config.learner.minibatch or len(replayer.memory)
        seconds = profile.slowdown * (profile.load_s + profile.send_s) + profile.learning_s(1, steps)
        self.learners[station - _LEARNERS].since_s = self.timeline.now_s
        self.timeline.work(seconds if self._in_step else max(seconds, _LEAST_S), station, LEARNED, replayer.made)

    def _learned(self, station: int) -> None:
        learner = self.learners[station - _LEARNERS]
        parcel, made = learner.parcel, learner.made
        assert parcel is not None
        assert made is not None
        learner.parcel = learner.made = None
        self.log.totals.sent += 1
        self.log.totals.last_arrival_s = now_s = self.timeline.now_s
        learner.worked_s += now_s - learner.since_s
        parcel.arrived_s, parcel.queue_length = now_s, self.waiting
        if made.is_outlying:
            parcel.taken_s = now_s
            self._enter(parcel, "rejected", made.loss)
            self._go_on(learner)
        else:
            self._server.push(parcel, learner.pulled, made.gradient, made.loss)

    def _settled(self, pending: Pending) -> None:
        self._enter(pending.parcel, pending.status, pending.loss, pending.staleness, pending.norm)
        self._go_on(self.learners[pending.parcel.worker])

    def _enter(self, parcel: Parcel, status: Status, loss: float, staleness: int = 0, norm: float = math.nan) -> None:
        """Write down what became of a learner's gradient."""
        when = self.timeline.now_s, self.alive, self.learner.version
        if status == "dropped":
            self.log.enter(parcel, status, *when)
            return
        statistics = {**self.learner.statistics(self.progress(parcel.worker)), "loss": loss}
        self.log.enter(parcel, status, *when, staleness, norm, statistics=statistics)

    def _go_on(self, learner: LearnerSlot) -> None:
        learner.is_busy = False
        if self._in_step:
            self.begin(learner.owed.popleft())
        self._look(learner)

    def worked(self) -> dict[str, float]:
        return {"learner_busy_s": sum(learner.worked_s for learner in self.learners)}

    def who(self, station: int) -> tuple[str, int]:
        if station <= MASTER:
            return "server", MASTER - station
        return ("actor", station) if station < _LEARNERS else ("learner", station - _LEARNERS)

    # State

    def save(self) -> Saved:
        numbers, arrays, _ = super().save()
        its_numbers, its_arrays, streams = self._server.save()
        arrays |= its_arrays
        learners, memories = [], {}
        for number, learner in enumerate(self.learners):
            replayer, made = learner.replayer, learner.made
            memories[id(replayer.memory)] = replayer.memory
            if made is not None:
                arrays[f"learner{number}_gradient"] = made.gradient
            rest = None if made is None else (str(made.loss), made.is_outlying)  # JSON knows no NaN
            parcel = None if learner.parcel is None else learner.parcel.save()
            under_way = parcel, learner.pulled, rest, learner.is_busy, list(learner.owed)
            learners.append([replayer.save(), *under_way, learner.since_s, learner.worked_s])
        added = []
        for place, memory in enumerate(memories.values()):
            count, kept = memory.save()
            added.append(count)
            arrays |= {f"memory{place}_{name}": values for name, values in kept.items()}
        return Saved({**numbers, **its_numbers, "learners": learners, "memories": added}, arrays, streams)

    def restore(self, numbers: dict[str, Any], arrays: Arrays, folder: Path) -> None:
        super().restore(numbers, arrays, folder)
        self._server.restore(numbers, arrays, folder)
        for number, (learner, saved) in enumerate(zip(self.learners, numbers["learners"], strict=True)):
            replayer, parcel, learner.pulled, rest, learner.is_busy, owed, learner.since_s, learner.worked_s = saved
            learner.replayer.restore(replayer)
            learner.owed.extend(owed)
            if parcel is not None:
                learner.parcel = Parcel.restored(parcel)
                learner.made = Made(np.array(arrays[f"learner{number}_gradient"]), float(rest[0]), rest[1])
        for place, (added, learner) in enumerate(zip(numbers["memories"], self.learners, strict=False)):
            names = [name for name in arrays if name.startswith(f"memory{place}_")]
            learner.replayer.memory.restore(added, {name.partition("_")[2]: arrays[name] for name in names})
