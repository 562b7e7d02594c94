"""The learner of `ga3c` with real processes: agents hand over what they played, and it is the trainer.

Where a trajectory of other algorithms has log-probabilities, it has the versions here that chose its actions.
"""

import math
from collections.abc import Mapping

import numpy as np

from a3c_core.algorithms.base import Trajectory
from a3c_core.algorithms.trajectories import batch_of
from a3c_core.engines.base import Engine
from a3c_core.engines.packing import Packing
from a3c_core.learners.gradients import GradientLearner
from a3c_core.models.parameters import Vector
from a3c_core.optimizers import Optimizer, UpdateResult
from a3c_core.progress import START, Progress


class Trainer(GradientLearner):
    """Makes one update of all trajectories that have enough steps together, by the parameters of then."""

    def __init__(
        self, parameters: Vector, optimizer: Optimizer, engine: Engine, packing: Packing, size: int, least: int
    ):
        """`size`: numbers of a trajectory, at most; `least`: env steps from which on it learns."""
        super().__init__(parameters, optimizer)
        self._engine, self._packing, self._size, self._least = engine, packing, size, least
        self._batch: list[Trajectory] = []
        self._statistics: dict[str, float] = {}  # of the latest batch

    @property
    def parcel_size(self) -> int:
        return self._size

    def receive(self, parcel: Vector, progress: Progress = START, rate: float = 1.0) -> UpdateResult:
        """Let a trajectory join the batch, and learn from that if it is large enough."""
        self._batch += self._packing.unpack(self._packing.without_rest(parcel))
        if sum(trajectory.env_steps for trajectory in self._batch) < self._least:
            return UpdateResult(True, math.nan, self.optimizer.rate_at(progress.share) * rate, settles="nothing")
        return self.learn_rest(progress, rate)

    def learn_rest(self, progress: Progress, rate: float = 1.0) -> UpdateResult:
        """Learn from the batch as it is, and begin another."""
        batch = self._batch
        self.forget_batch()
        versions = batch_of(batch).log_probabilities.astype(np.float64)
        self._statistics = {"lag_mean": self.version - float(versions.mean()), "batch_steps": versions.size}
        gradient = self._engine.gradient_together(self.parameters, batch)
        return self.optimizer.apply(self.parameters, gradient, progress.share, rate)._replace(settles="batch")

    def forget_batch(self) -> None:
        self._batch = []

    def statistics(self, progress: Progress) -> Mapping[str, float]:
        return self._statistics
