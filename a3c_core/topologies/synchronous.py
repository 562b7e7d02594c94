"""The `synchronous` topology: rounds. All workers play with the same parameters, and one update is made of them all.

With b backups the master does not wait for the last b of them (Chen et al. 2016): gradients that come too late for
their round are dropped, and their workers join the round that is under way. Without backups it is A2C. Staleness is 0
by construction; what it costs instead is the time for which workers wait for the slowest.
"""

from collections.abc import Sequence

import numpy as np

from a3c_core.models.parameters import Vector
from a3c_core.topologies.base import Arrow, Description
from a3c_core.topologies.exchange import RoundsConfig
from a3c_core.topologies.master import MasterTopology


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
    simulated_as = "synchronous"
    counts_players = True
    has_limit = False  # a round is one update, however many play in it

    def take(self, waiting: int, playing: int) -> int:
        """Return of how many parcels the round is made: all that are there, when no more than the backups play on."""
        return waiting if playing <= self.exchange.backups else 0

    def combine(self, gradients: Sequence[Vector]) -> Vector:
        return np.mean(gradients, axis=0, dtype=np.float32)

    def is_late(self, staleness: int) -> bool:
        return staleness > 0
