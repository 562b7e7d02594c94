"""What simulations of self-sufficient workers share: each pulls parameters, plays with them, and has a parcel to give.

A worker really plays at the moment of its pull; only the *time* that this takes is virtual. Its events are
    begin   it may pull and play
    core    its game, or the way to it, is no longer waited for: it wants a core
    played  it has had a core for as long as its work needs
What becomes of its parcel then is for the class below to say.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from a3c_core.episode_log import Parcel
from a3c_core.models.parameters import Vector
from a3c_core.records.tables import Status
from a3c_core.runtime import Arrays, Saved
from a3c_core.virtual.stations import Stations
from a3c_core.virtual.timeline import Event
from a3c_core.worker import Worker

BEGIN, CORE, PLAYED = "begin", "core", "played"


@dataclass(slots=True)
class Publication:
    """What the learner published with a version."""

    version: int
    published: Vector


@dataclass(slots=True)
class WorkerSlot:
    """A worker in virtual time, and what it holds."""

    worker: Worker
    held: Publication  # what it plays with
    parcel: Parcel | None = None  # played, but not yet handed over
    gradient: Vector | None = None
    core_s: float | None = None  # time on a core that its work will take, while the game still waits
    waits: int = 0  # since it last worked
    retiring: bool = False


class WorkerStations(Stations):
    """Workers that come, play and go as the schedule says."""

    def __init__(self, *parts: Any):
        super().__init__(*parts)
        self.slots: dict[int, WorkerSlot] = {}
        self.alive = 0  # workers that are not about to leave
        self._next_id = 0
        self._latest = Publication(self.learner.version, self.learner.publication)
        self._is_fixed = self.config.span.start == self.config.span.end  # the number of workers
        self._wait_s = self.config.environment.wait_s
        self._may_be_away = self._wait_s > 0 or self.profile.latency_s > 0  # from any core, in a cycle
        self.handlers: dict[str, Callable[[int], None]] = {BEGIN: self.begin, CORE: self._work, PLAYED: self._played}

    def start(self) -> None:
        """Begin with the first workers; their start-up time lies before the clock's zero."""
        for _ in range(self.config.span.start):
            self._add_worker(0.0)

    def handle(self, event: Event) -> None:
        self.handlers[event.kind](event.station)

    @abstractmethod
    def pull(self, slot: WorkerSlot) -> bool:
        """Give the worker the parameters it can get now; return whether they are new to it."""

    def give_latest(self, slot: WorkerSlot) -> None:
        """Give the worker the parameters themselves: it plays at once, before they can change."""
        self._latest.version, self._latest.published = self.learner.version, self.learner.publication
        slot.held = self._latest

    @abstractmethod
    def played(self, slot: WorkerSlot, parcel: Parcel, gradient: Vector) -> None:
        """A worker's parcel is ready, and the worker is idle."""

    def joined(self, slot: WorkerSlot) -> None:
        """A worker was added."""

    def left(self, worker: int) -> None:
        """A worker has gone."""

    def settle(self, parcel: Parcel, status: Status, staleness: int = 0, gradient_norm: float = math.nan) -> None:
        """Write down what became of a parcel, then let the schedule have its way."""
        log, alive, now_s, version = self.log, self.alive, self.timeline.now_s, self.learner.version
        if log.statistics and status != "dropped":
            statistics = {**self.learner.statistics(self.progress(parcel.worker)), **parcel.measured}
            log.enter(parcel, status, now_s, alive, version, staleness, gradient_norm, statistics=statistics)
        else:
            log.enter(parcel, status, now_s, alive, version, staleness, gradient_norm)
        if parcel.episodes and not self._is_fixed:
            self._change_workers(log.target_workers(alive, self.waiting))

    def begin(self, worker: int) -> None:
        """Let a worker pull, play, and be done when that is due; or leave, if nothing is left to begin."""
        slot, totals = self.slots[worker], self.log.totals
        may_begin = 0 if slot.retiring else self.may_begin
        if not may_begin and not slot.worker.in_episode:
            self._remove(slot)
            return
        loaded = self.pull(slot)
        held = slot.held
        work = slot.worker.work(held.published, may_begin, self.timeline.now_s, self.progress(worker))
        slot.parcel = Parcel(worker, held.version, 0.0, 0, work.episodes, 0.0, work.measured)
        slot.gradient = work.gradient
        totals.episodes_begun += work.began
        totals.env_steps += work.env_steps
        away_s = self.profile.away_s(work.env_steps, self._wait_s) if self._may_be_away else 0.0
        waits, slot.waits = slot.waits + (away_s > 0), 0
        slot.core_s = self.profile.cycle_s(work.env_steps, work.began, loaded, waits, work.repeated_steps)
        if away_s > 0:
            self.timeline.at(self.timeline.now_s + away_s, worker, CORE)
        else:
            self._work(worker)

    def _work(self, worker: int) -> None:
        slot = self.slots[worker]
        assert slot.core_s is not None
        seconds, slot.core_s = slot.core_s, None
        self.timeline.work(seconds, worker, PLAYED, slot.worker.rollouts)

    def _played(self, worker: int) -> None:
        slot, totals = self.slots[worker], self.log.totals
        parcel, gradient = slot.parcel, slot.gradient
        assert parcel is not None
        assert gradient is not None
        slot.parcel = slot.gradient = None
        totals.sent += 1
        totals.last_arrival_s = parcel.arrived_s = self.timeline.now_s
        parcel.queue_length = self.waiting
        self.played(slot, parcel, gradient)

    # Workers come and go

    def _new_worker(self, worker_id: int) -> Worker:
        config = self.config
        carries = getattr(config.exchange, "carries_parameters", False)
        return Worker(worker_id, config.seed, self.engine, 0, config.agents_per_worker, carries)

    def _add_worker(self, at_s: float) -> None:
        worker = self._new_worker(self._next_id)
        newest = Publication(self.learner.version, self.learner.publication.copy())
        slot = self.slots[worker.id] = WorkerSlot(worker, newest)
        self._next_id += 1
        self.alive += 1
        self.timeline.at(at_s, worker.id, BEGIN)
        self.joined(slot)

    def _remove(self, slot: WorkerSlot) -> None:
        del self.slots[slot.worker.id]
        self.alive -= not slot.retiring
        self.left(slot.worker.id)

    def _change_workers(self, target: int) -> None:
        for _ in range(target - self.alive):
            self._add_worker(self.timeline.now_s + self.profile.worker_start_s * self.profile.slowdown)
        if target < self.alive:
            staying = [slot for slot in self.slots.values() if not slot.retiring]  # in the order of their numbers
            for slot in staying[target:]:
                slot.retiring = True
            self.alive = target

    # State

    def save(self) -> Saved:
        arrays: Arrays = {}
        slots = [_save_slot(slot, arrays) for slot in self.slots.values()]
        return Saved({"next_id": self._next_id, "slots": slots}, arrays, {})

    def restore(self, numbers: dict[str, Any], arrays: Arrays, folder: Path) -> None:
        self._next_id = numbers["next_id"]
        for saved in numbers["slots"]:
            slot = self.slots[saved["id"]] = _restore_slot(self._new_worker(saved["id"]), saved, arrays)
            self.alive += not slot.retiring


def _save_slot(slot: WorkerSlot, arrays: Arrays) -> dict[str, Any]:
    key = f"worker{slot.worker.id}"
    worker, games = slot.worker.get_state()
    arrays |= {f"{key}_game{place}": game for place, game in games.items()}
    arrays[f"{key}_held"] = slot.held.published
    if slot.gradient is not None:
        arrays[f"{key}_gradient"] = slot.gradient
    return {
        "id": slot.worker.id,
        "worker": worker,
        "held": slot.held.version,
        "parcel": None if slot.parcel is None else slot.parcel.save(),
        "core_s": slot.core_s,
        "waits": slot.waits,
        "retiring": slot.retiring,
    }


def _restore_slot(worker: Worker, saved: dict[str, Any], arrays: Arrays) -> WorkerSlot:
    key = f"worker{worker.id}"
    begun = range(len(saved["worker"]["agents"]))
    worker.set_state(saved["worker"], {i: arrays[f"{key}_game{i}"] for i in begun if f"{key}_game{i}" in arrays})
    return WorkerSlot(
        worker=worker,
        held=Publication(saved["held"], arrays[f"{key}_held"]),
        parcel=Parcel.restored(saved["parcel"]) if saved["parcel"] is not None else None,
        gradient=np.array(arrays[f"{key}_gradient"]) if f"{key}_gradient" in arrays else None,
        core_s=saved["core_s"],
        waits=saved["waits"],
        retiring=saved["retiring"],
    )
