"""The `hogwild` topology: no master; every worker applies its own gradient to the parameters that all share.

Recht et al. 2011; Mnih et al. 2016. In virtual time an update happens whole, at the end of the time that it costs its
worker; others may pull, and update, in the meantime.
"""

from typing import Any

from a3c_core.episode_log import Parcel
from a3c_core.models.parameters import Vector
from a3c_core.section import Section
from a3c_core.topologies.base import Arrow, Description
from a3c_core.topologies.workers import WorkerSlot, WorkerTopology

APPLIED = "applied"
_APPLYING = 1 << 40  # keeps the jitter of updates apart from that of play


class HogwildTopology(WorkerTopology):
    """N workers, and nobody else: there is nothing to set."""

    description = Description(
        ("N workers", "shared parameters"),
        (
            Arrow("N workers", "shared parameters", "updates,\nwithout a lock"),
            Arrow("shared parameters", "N workers", "parameters, perhaps amid an update"),
        ),
    )
    Settings = Section
    has_master = False

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
