"""A topology: a master that takes all waiting gradients, up to eight, as one update with their mean."""

import numpy as np

from a3c_core.topologies.master import MasterTopology

MOST = 8  # gradients of one update


class Batching(MasterTopology):
    """topology: batching:Batching"""

    def take(self, waiting, playing):
        return min(waiting, MOST)

    def combine(self, gradients):
        return np.mean(gradients, axis=0, dtype=np.float32)
