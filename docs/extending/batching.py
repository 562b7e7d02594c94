"""A topology: a master that takes all waiting gradients, up to eight, as one update with their mean."""

import numpy as np

from a3c_core.topologies.master import MasterTopology

MOST = 8  # gradients of one update


class Batching(MasterTopology):
    """topology: batching:Batching"""

    @classmethod
    def take(cls, exchange, waiting, playing):
        return min(waiting, MOST)

    @classmethod
    def combine(cls, exchange, gradients):
        return np.mean(gradients, axis=0, dtype=np.float32)
