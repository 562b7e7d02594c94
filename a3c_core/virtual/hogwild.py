"""Virtual time of `hogwild`: no master; every worker applies its own gradient to the parameters that all share.

An update happens whole, at the end of the time that it costs its worker; others may pull, and update, in the meantime.
"""

from typing import Any

from a3c_core.episode_log import Parcel
from a3c_core.models.parameters import Vector
from a3c_core.virtual.workers import WorkerSlot, WorkerStations

APPLIED = "applied"
_APPLYING = 1 << 40  # keeps the jitter of updates apart from that of play


class HogwildStations(WorkerStations):
    """N workers, and nobody else."""

    def __init__(self, *parts: Any):
        super().__init__(*parts)
        self.handlers[APPLIED] = self._applied

    def pull(self, slot: WorkerSlot) -> bool:
        self.give_latest(slot)
        return True

    def played(self, slot: WorkerSlot, parcel: Parcel, gradient: Vector) -> None:
        """Begin to apply the gradient, at the worker's own cost."""
        parcel.taken_s = parcel.arrived_s
        slot.parcel, slot.gradient = parcel, gradient
        self.timeline.work(self.profile.apply_s, slot.worker.id, APPLIED, _APPLYING + slot.worker.rollouts)

    def _applied(self, worker: int) -> None:
        slot = self.slots[worker]
        parcel, gradient = slot.parcel, slot.gradient
        assert parcel is not None
        assert gradient is not None
        slot.parcel = slot.gradient = None
        staleness = self.learner.version - parcel.version_pulled
        result = self.learner.receive(gradient, self.progress(worker))
        self.settle(parcel, "applied" if result.applied else "rejected", staleness, result.gradient_norm)
        self.begin(worker)
