"""The `master` topology: workers hand parcels to one master, which learns from one after the other and publishes.

The exchange's settings say whether its queue is bounded, whether workers wait until their gradient was applied, and
whether parameters come from one place or from mailboxes with a single slot (the report's).
"""

import functools
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from a3c_core.algorithms.base import HandsOver
from a3c_core.models.parameters import Vector
from a3c_core.section import Section
from a3c_core.topologies.base import Arrow, Description, Topology
from a3c_core.topologies.exchange import ExchangeConfig


class MasterTopology(Topology):
    """N workers, one master with a first-in-first-out queue."""

    description = Description(
        ("N workers", "queue", "master"),
        (
            Arrow("N workers", "queue", "gradients"),
            Arrow("queue", "master", "the oldest,\nor a batch"),
            Arrow("master", "N workers", "parameters, when a worker wants some"),
        ),
    )
    Settings: ClassVar[type[Section]] = ExchangeConfig
    simulated_as: ClassVar[str] = "master"
    takes: ClassVar[tuple[HandsOver, ...]] = ("gradient", "trajectory")

    def take(self, waiting: int, playing: int) -> int:
        """Return of how many parcels an update is made: the oldest, or a batch; nothing is held back for nobody."""
        held = self.gradients.hold if playing else 0
        return min(max(0, waiting - held), self.gradients.batch)

    def combine(self, gradients: Sequence[Vector]) -> Vector:
        if len(gradients) == 1:
            return gradients[0]
        total = functools.reduce(np.add, gradients)  # one after the other
        return total / np.float32(len(gradients)) if self.gradients.combine == "mean" else total
