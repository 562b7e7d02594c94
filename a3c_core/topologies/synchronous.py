"""The `synchronous` topology: rounds. All workers play with the same parameters, and one update is made of them all.

With b backups the master does not wait for the last b of them (Chen et al. 2016): gradients that come too late for
their round are dropped, and their workers join the round that is under way. Without backups it is A2C. Staleness is 0
by construction; what it costs instead is the time for which workers wait for the slowest.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from a3c_core.episode_log import Parcel
from a3c_core.models.parameters import Vector
from a3c_core.topologies.base import Arrow, Description
from a3c_core.topologies.exchange import RoundsConfig
from a3c_core.topologies.master import MasterTopology
from a3c_core.topologies.workers import WorkerSlot


class SynchronousTopology(MasterTopology):
    """N + b workers, and a master that waits for N of them."""

    description = Description(
        ("N + b workers", "round", "master"),
        (
            Arrow("N + b workers", "round", "gradients"),
            Arrow("round", "master", "the mean of\nthe first N"),
            Arrow("master", "N + b workers", "parameters, to all at once"),
        ),
    )
    Settings = RoundsConfig
    counts_players = True
    has_limit = False  # a round is one update, however many play in it

    @classmethod
    def take(cls, exchange: Any, waiting: int, playing: int) -> int:
        """Return of how many parcels the round is made: all that are there, when no more than the backups play on."""
        return waiting if playing <= exchange.backups else 0

    @classmethod
    def combine(cls, exchange: Any, gradients: Sequence[Vector]) -> Vector:
        return np.mean(gradients, axis=0, dtype=np.float32)

    @classmethod
    def is_late(cls, staleness: int) -> bool:
        return staleness > 0

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
        if self.is_serving or self.is_late(self.learner.version - parcel.version_pulled):
            self.settle(parcel, "dropped")
            self.begin(slot.worker.id)
        else:
            super().played(slot, parcel, gradient)
