"""V-trace (IMPALA, Espeholt et al. 2018): actor-critic updates that importance weights correct for stale trajectories.

One departure: the value of the state after a trajectory's last step is the worker's, not computed anew.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from a3c_core.algorithms.advantages import vtrace_targets
from a3c_core.algorithms.trajectories import Batch, Column, Evaluate, TrajectoryAlgorithm, TrajectorySettings
from a3c_core.section import LARGEST_FACTOR


class VTraceSettings(TrajectorySettings):
    """Truncated importance weights. Rate, horizon and batch are the best of grids/search_vtrace.yaml."""

    learning_rate: float = Field(3e-3, gt=0, le=LARGEST_FACTOR)
    rho_bar: float = Field(1.0, gt=0, le=LARGEST_FACTOR, description="largest weight of a step's own difference")
    c_bar: float = Field(1.0, gt=0, le=LARGEST_FACTOR, description="largest weight in the trace of later differences")


class VTrace(TrajectoryAlgorithm):
    """One update a batch, summed over its steps. Targets: advantage, and what the critic should predict."""

    Settings: ClassVar[type[TrajectorySettings]] = VTraceSettings
    target_columns: ClassVar[int] = 2
    averages: ClassVar[bool] = False
    settings: VTraceSettings

    def batch_targets(self, batch: Batch, evaluate: Evaluate) -> NDArray[np.float32]:
        """Return float32 [N, 2]: the policy's advantage, weighted, and what the critic should predict."""
        settings = self.settings
        log_probabilities, values = evaluate()
        weights = np.exp(log_probabilities - batch.log_probabilities)
        ends = batch.lengths, batch.bootstrap_values
        bounds = settings.gamma, settings.rho_bar, settings.c_bar
        targets: NDArray[np.float32] = vtrace_targets(batch.rewards, values, weights, *ends, *bounds)
        return targets

    def policy_losses(self, log_probabilities: Any, targets: Any) -> Any:
        return -log_probabilities * targets[:, 0]

    def clipped(self, log_probabilities: Column, batch: Batch, targets: NDArray[np.float32]) -> NDArray[np.bool_]:
        outside: NDArray[np.bool_] = np.exp(log_probabilities - batch.log_probabilities) > self.settings.rho_bar
        return outside
