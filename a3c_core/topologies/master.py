"""The `master` topology: workers hand parcels to one master, which learns from one after the other and publishes.

The exchange's settings say whether its queue is bounded, whether workers wait until their gradient was applied, and
whether parameters come from one place or from mailboxes with a single slot (the report's).
"""

from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from a3c_core.episode_log import Parcel
from a3c_core.learners.optimizers import UpdateResult
from a3c_core.models.parameters import Vector
from a3c_core.runtime import Arrays, Saved
from a3c_core.topologies.exchange import ExchangeConfig
from a3c_core.topologies.parcel_queue import ParcelQueue
from a3c_core.topologies.workers import Publication, WorkerSlot, WorkerTopology, parcel_from
from a3c_core.virtual.timeline import MASTER

UPDATED = "updated"
_QUEUE_FILE = "queue.f32"


class MasterTopology(WorkerTopology):
    """N workers, one master with a first-in-first-out queue."""

    Settings = ExchangeConfig

    def __init__(self, *parts: Any):
        super().__init__(*parts)
        self._exchange = self.config.exchange
        self._has_mailboxes = self._exchange.channel == "mailbox"
        self._waits_for_apply = self._exchange.pull == "after_apply"
        self.queue = ParcelQueue(self.learner.parcel_size)
        self._blocked: deque[tuple[int, Parcel, Vector]] = deque()  # what workers wait to put into the queue
        self._serving: list[tuple[Parcel, Vector]] = []  # what the update under way is made of
        self._joined: list[Parcel] = []  # whose batch the learner still collects
        self._mail: dict[int, Publication] = {}  # what lies in mailboxes
        self._empty: set[int] = set()  # workers whose mailbox is empty
        self.handlers[UPDATED] = self._updated

    @property
    def waiting(self) -> int:
        return len(self.queue)

    def handle(self, station: int, kind: str) -> None:
        super().handle(station, kind)
        if self._joined and not self.timeline:  # everybody has left, or waits: nobody will add to the batch
            effort = self.learner.effort(None)
            self._learn(self.profile.service_s(len(self._empty), True, 0) + self.profile.learning_s(*effort))

    # Workers

    def joined(self, slot: WorkerSlot) -> None:
        if self._has_mailboxes:
            self._mail[slot.worker.id] = slot.held

    def left(self, worker: int) -> None:
        self._mail.pop(worker, None)
        self._empty.discard(worker)

    def pull(self, slot: WorkerSlot) -> bool:
        if not self._has_mailboxes:  # no copy: it plays at once, before the master can change them
            slot.held = Publication(self.learner.version, self.learner.publication)
            return True
        new = self._mail.pop(slot.worker.id, None)
        if new is None:
            return False
        slot.held = new
        self._empty.add(slot.worker.id)
        return True

    def played(self, slot: WorkerSlot, parcel: Parcel, gradient: Vector) -> None:
        """The parcel reaches the master's queue, or finds it full."""
        if self._exchange.queue == "unbounded" or len(self.queue) < self._exchange.queue_size:
            self._enqueue(slot, parcel, gradient)
        elif self._exchange.queue == "bounded":
            self._blocked.append((slot.worker.id, parcel, gradient))
            slot.waits += 1
        else:
            self.settle(parcel, "dropped")
            self.begin(slot.worker.id)

    def _enqueue(self, slot: WorkerSlot, parcel: Parcel, gradient: Vector) -> None:
        self.queue.append(parcel, gradient)
        totals, limit = self.log.totals, self._exchange.overload_limit
        totals.queue_peak = max(totals.queue_peak, len(self.queue))
        self.overloaded = limit is not None and len(self.queue) > limit
        if not self._serving:
            self._begin_update(idle=True)
        if self._waits_for_apply:
            slot.waits += 1
        else:
            self.begin(slot.worker.id)

    # Master

    @classmethod
    def take(cls, waiting: int) -> int:
        """Return how many of the `waiting` parcels, at least 1, the master takes for its next update."""
        return 1

    @classmethod
    def combine(cls, gradients: Sequence[Vector]) -> Vector:
        """Return the one gradient that is applied for those taken."""
        return gradients[0]

    def _begin_update(self, idle: bool = False) -> None:
        taken = self.take(len(self.queue))
        oldest = self.queue.popleft_many(taken)
        self._serving = [(parcel._replace(taken_s=self.timeline.now_s), gradient) for parcel, gradient in oldest]
        self._learn(self._service_s([gradient for _, gradient in self._serving], idle))
        for _ in range(min(taken, len(self._blocked))):
            worker, parcel, gradient = self._blocked.popleft()
            self._enqueue(self.slots[worker], parcel, gradient)

    def _service_s(self, gradients: list[Vector], idle: bool) -> float:
        """Return the seconds of a core that the learner needs for what was taken."""
        effort = self.learner.effort(gradients[0])
        if not effort.updates:
            return self.profile.joining_s(idle)
        return self.profile.service_s(len(self._empty), idle, len(gradients)) + self.profile.learning_s(*effort)

    def _learn(self, seconds: float) -> None:
        totals = self.log.totals
        count = totals.served + len(self._joined)
        totals.master_busy_s += self.timeline.work(seconds, MASTER, UPDATED, count)

    def _updated(self, station: int) -> None:
        serving, self._serving = self._serving, []
        parcels = [parcel for parcel, _ in serving]
        version = self.learner.version
        progress = self.progress((parcels or self._joined)[0].worker)
        if serving:
            result = self.learner.receive(self.combine([gradient for _, gradient in serving]), progress)
        else:
            result = self.learner.learn_rest(progress)
        if result.settles == "nothing":
            self._joined += parcels
        else:
            if result.settles == "batch":
                parcels, self._joined = [*self._joined, *parcels], []
            self._fill_mailboxes()
            self._settle_all(parcels, version, result)
        if len(self.queue):
            self._begin_update()

    def _settle_all(self, parcels: list[Parcel], version: int, result: UpdateResult) -> None:
        """Write down what became of parcels that met parameters of `version`; their workers may wait for it."""
        for parcel in parcels:
            staleness = version - parcel.version_pulled
            self.settle(parcel, "applied" if result.applied else "rejected", staleness, result.gradient_norm)
            if self._waits_for_apply:
                self.begin(parcel.worker)

    def _fill_mailboxes(self) -> None:
        if self._empty:
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
            "mail": [(worker, mail.version) for worker, mail in self._mail.items()],
            "empty": sorted(self._empty),
            "blocked": [(worker, parcel) for worker, parcel, _ in self._blocked],
            "serving": [parcel for parcel, _ in self._serving],
            "joined": self._joined,
            "queue": self.queue.items(),
        }
        return Saved(numbers, arrays, {_QUEUE_FILE: self.queue.write_gradients})

    def restore(self, numbers: dict[str, Any], arrays: Arrays, folder: Path) -> None:
        super().restore(numbers, arrays, folder)
        self.overloaded = numbers["overloaded"]
        self._mail = {
            worker: Publication(version, arrays[f"worker{worker}_mail"]) for worker, version in numbers["mail"]
        }
        self._empty = set(numbers["empty"])
        self._blocked.extend(
            (worker, parcel_from(parcel), arrays[f"worker{worker}_blocked"]) for worker, parcel in numbers["blocked"]
        )
        self._serving = [
            (parcel_from(parcel), arrays[f"serving{place}"]) for place, parcel in enumerate(numbers["serving"])
        ]
        self._joined = [parcel_from(parcel) for parcel in numbers.get("joined", ())]  # older checkpoints know of none
        with (folder / _QUEUE_FILE).open("rb") as file:
            self.queue.restore([parcel_from(item) for item in numbers["queue"]], file)
