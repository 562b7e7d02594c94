"""Virtual time of `master`: workers hand parcels to one master, which learns from one after the other and publishes.

Events beside those of workers are
    updated     the master has had a core for as long as its update needs
"""

import math
from collections import deque
from pathlib import Path
from typing import Any

from a3c_core.episode_log import Parcel
from a3c_core.learners.base import ONE_UPDATE, Effort, settled_by
from a3c_core.models.parameters import Vector
from a3c_core.runtime import Arrays, Saved
from a3c_core.topologies.master import MasterTopology
from a3c_core.topologies.parcel_queue import ParcelQueue
from a3c_core.topologies.remedies import Remedies
from a3c_core.virtual.timeline import MASTER, Event
from a3c_core.virtual.workers import Publication, WorkerSlot, WorkerStations

UPDATED = "updated"
_QUEUE_FILE = "queue.f32"


class MasterStations(WorkerStations):
    """N workers, one master with a first-in-first-out queue."""

    rules: MasterTopology

    def __init__(self, *parts: Any):
        super().__init__(*parts)
        self._remedies = Remedies(self.rules.gradients, self.learner)
        self.queue = ParcelQueue(self._remedies.parcel_size)
        self._blocked: deque[tuple[int, Parcel, Vector]] = deque()  # what workers wait to put into the queue
        self._serving: list[tuple[Parcel, Vector]] = []  # what the update under way is made of
        self._joined: list[Parcel] = []  # whose batch the learner still collects
        self._written_up = 0  # episodes that parcels ended which the master took up
        self._mail: dict[int, Publication] = {}  # what lies in mailboxes
        self._empty: set[int] = set()  # workers whose mailbox is empty
        self._most_under_way = self.rules.most_under_way
        self._begun = 0  # pieces of work
        self._gated: deque[int] = deque()  # workers that may not begin, since too many gradients are under way
        self.handlers[UPDATED] = self._updated

    @property
    def waiting(self) -> int:
        return len(self.queue)

    def handle(self, event: Event) -> None:
        self.handlers[event.kind](event.station)
        if self._joined and not self.timeline:  # everybody has left, or waits: nobody will add to the batch
            self._learn(self._update_s(self.learner.effort(None), idle=True, taken=0))

    # Workers

    def joined(self, slot: WorkerSlot) -> None:
        if self.rules.has_mailboxes:
            self._mail[slot.worker.id] = slot.held

    def left(self, worker: int) -> None:
        self._mail.pop(worker, None)
        self._empty.discard(worker)
        if not self.slots:  # what was held back is due
            self.look(idle=True)

    @property
    def playing(self) -> int:
        """Workers from whom more may come."""
        return len(self.slots)

    def begin(self, worker: int) -> None:
        """Let a worker begin, unless its gradient would find so many under way that they are too old on average."""
        if self._most_under_way != math.inf and self._begun - self.log.totals.outcomes >= self._most_under_way:
            self.let_wait(worker)
            return
        super().begin(worker)
        self._begun += worker in self.slots  # or it has left

    def let_wait(self, worker: int) -> None:
        """Let a worker begin after an update."""
        self._gated.append(worker)
        self.slots[worker].waits += 1

    def _release(self) -> None:
        while self._gated and self._begun - self.log.totals.outcomes < self._most_under_way:
            self.begin(self._gated.popleft())

    def pull(self, slot: WorkerSlot) -> bool:
        if not self.rules.has_mailboxes:
            self.give_latest(slot)
            return True
        new = self._mail.pop(slot.worker.id, None)
        if new is None:
            return False
        slot.held = new
        self._empty.add(slot.worker.id)
        return True

    def played(self, slot: WorkerSlot, parcel: Parcel, gradient: Vector) -> None:
        """The parcel reaches the master's queue, or finds it full."""
        if len(self.queue) < self.rules.queue_size:
            self._enqueue(slot, parcel, gradient)
        elif self.rules.drops_when_full:
            self.settle(parcel, "dropped")
            self._gated.append(slot.worker.id)
            self._release()
        else:
            self._blocked.append((slot.worker.id, parcel, gradient))
            slot.waits += 1

    def _enqueue(self, slot: WorkerSlot, parcel: Parcel, gradient: Vector) -> None:
        self.queue.append(parcel, gradient)
        waiting, totals = len(self.queue), self.log.totals
        if waiting > totals.queue_peak:
            totals.queue_peak = waiting
        self.overloaded = waiting > self.rules.overload_limit
        self.look(idle=True)
        if self.rules.waits_for_apply:
            slot.waits += 1
        else:
            self.begin(slot.worker.id)

    # Master

    @property
    def is_serving(self) -> bool:
        """Whether an update is under way."""
        return bool(self._serving)

    def look(self, idle: bool = False) -> None:
        """Let the master begin its next update, if it has none under way and may take what there is."""
        waiting = len(self.queue)
        if waiting and not self._serving:
            taken = self.rules.take(waiting, self.playing)
            if taken:
                self._begin_update(taken, idle)

    def _begin_update(self, taken: int, idle: bool) -> None:
        self._serving = self.queue.popleft_many(taken)
        for parcel, _ in self._serving:
            parcel.taken_s = self.timeline.now_s
        self._learn(self._service_s(self._serving, idle))
        for _ in range(min(taken, len(self._blocked))):
            worker, parcel, gradient = self._blocked.popleft()
            self._enqueue(self.slots[worker], parcel, gradient)

    def _service_s(self, taken: list[tuple[Parcel, Vector]], idle: bool) -> float:
        """Return the seconds of a core that the master needs for what it has taken."""
        if self._remedies.are_too_old([parcel.version_pulled for parcel, _ in taken]):
            return self.profile.discard_s(idle, len(taken))
        before = self._written_up
        for parcel, _ in taken:
            self._written_up += len(parcel.episodes)
        bookkeeping_s = self.profile.bookkeeping_s(before, self._written_up - before)
        effort = self.learner.effort(taken[0][1])
        if not effort.updates:
            return self.profile.discard_s(idle) + bookkeeping_s
        return self._update_s(effort, idle, len(taken)) + bookkeeping_s

    def _update_s(self, effort: Effort, idle: bool, taken: int) -> float:
        seconds = self.profile.service_s(len(self._empty), idle, taken)
        return seconds if effort is ONE_UPDATE else seconds + self.profile.learning_s(*effort)

    def _learn(self, seconds: float) -> None:
        totals = self.log.totals
        count = totals.applied + totals.rejected + len(self._joined)
        totals.master_busy_s += self.timeline.work(seconds, MASTER, UPDATED, count)

    def _updated(self, station: int) -> None:
        serving, self._serving = self._serving, []
        settled = self._deal_with(serving)
        if self.rules.waits_for_apply:
            self._gated.extend([parcel.worker for parcel in settled])
        if self._gated:
            self._release()
        self.look()

    def _deal_with(self, serving: list[tuple[Parcel, Vector]]) -> list[Parcel]:
        """Let the learner have parcels, or make do with what it has kept; return those that this has settled."""
        version, parcels = self.learner.version, [parcel for parcel, _ in serving]
        progress = self.progress((parcels or self._joined)[0].worker)
        pulled = [(parcel.version_pulled, vector) for parcel, vector in serving]
        result = self._remedies.apply(self.rules.combine, pulled, progress)
        settled, self._joined = settled_by(result, self._joined, parcels)
        if self._empty and result is not None and settled:
            self._fill_mailboxes()
        for parcel in settled:
            staleness = version - parcel.version_pulled
            if result is None or self._remedies.is_too_old(staleness):
                self.settle(parcel, "dropped")
            else:
                self.settle(parcel, "applied" if result.applied else "rejected", staleness, result.gradient_norm)
        return settled

    def _fill_mailboxes(self) -> None:
        newest = Publication(self.learner.version, self.learner.publication.copy())
        self._mail.update(dict.fromkeys(self._empty, newest))
        self._empty.clear()

    def end(self) -> None:
        joined, self._joined = self._joined, []  # of an overloaded run, as what still waits
        for parcel in joined:
            self.settle(parcel, "dropped")
        while len(self.queue):
            parcel, _ = self.queue.popleft()
            self.settle(parcel, "dropped")

    # State

    def save(self) -> Saved:
        numbers, arrays, _ = super().save()
        arrays |= {f"worker{worker}_mail": mail.published for worker, mail in self._mail.items()}
        arrays |= {f"worker{worker}_blocked": gradient for worker, _, gradient in self._blocked}
        arrays |= {f"serving{place}": gradient for place, (_, gradient) in enumerate(self._serving)}
        numbers |= {
            "overloaded": self.overloaded,
            "written_up": self._written_up,
            "mail": [(worker, mail.version) for worker, mail in self._mail.items()],
            "empty": sorted(self._empty),
            "blocked": [(worker, parcel.save()) for worker, parcel, _ in self._blocked],
            "serving": [parcel.save() for parcel, _ in self._serving],
            "joined": [parcel.save() for parcel in self._joined],
            "queue": [parcel.save() for parcel in self.queue.items()],
            "begun": self._begun,
            "gated": list(self._gated),
            "remedies": self._remedies.save(),
        }
        return Saved(numbers, arrays, {_QUEUE_FILE: self.queue.write_gradients})

    def restore(self, numbers: dict[str, Any], arrays: Arrays, folder: Path) -> None:
        super().restore(numbers, arrays, folder)
        self.overloaded, self._written_up = numbers["overloaded"], numbers["written_up"]
        self._mail = {
            worker: Publication(version, arrays[f"worker{worker}_mail"]) for worker, version in numbers["mail"]
        }
        self._empty = set(numbers["empty"])
        self._begun = numbers.get("begun", 0)
        self._gated.extend(numbers.get("gated", ()))
        self._remedies.restore(numbers.get("remedies", {}))
        self._blocked.extend(
            (worker, Parcel.restored(parcel), arrays[f"worker{worker}_blocked"])
            for worker, parcel in numbers["blocked"]
        )
        self._serving = [
            (Parcel.restored(parcel), arrays[f"serving{place}"]) for place, parcel in enumerate(numbers["serving"])
        ]
        self._joined = [Parcel.restored(parcel) for parcel in numbers.get("joined", ())]  # unknown to older checkpoints
        with (folder / _QUEUE_FILE).open("rb") as file:
            self.queue.restore([Parcel.restored(item) for item in numbers["queue"]], file)
