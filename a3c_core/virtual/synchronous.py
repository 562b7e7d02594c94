"""Virtual time of `synchronous`: rounds. A worker that is too late for its round joins the one that is under way."""

from a3c_core.episode_log import Parcel
from a3c_core.models.parameters import Vector
from a3c_core.virtual.master import MasterStations
from a3c_core.virtual.workers import WorkerSlot


class RoundStations(MasterStations):
    """N + b workers, and a master that waits for N of them."""

    @property
    def playing(self) -> int:
        return sum(slot.parcel is not None for slot in self.slots.values())

    def left(self, worker: int) -> None:
        super().left(worker)
        self.look(idle=True)  # perhaps it was the one that the round waited for

    def begin(self, worker: int) -> None:
        """Let a worker begin, with what the update under way will give, if there is one."""
        if self.is_serving:
            self.let_wait(worker)
        else:
            super().begin(worker)

    def played(self, slot: WorkerSlot, parcel: Parcel, gradient: Vector) -> None:
        """The parcel is one of its round's, or too late for it."""
        if self.is_serving or self.rules.is_late(self.learner.version - parcel.version_pulled):
            self.settle(parcel, "dropped")
            self.begin(slot.worker.id)
        else:
            super().played(slot, parcel, gradient)
