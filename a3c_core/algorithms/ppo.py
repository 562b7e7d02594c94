"""Proximal policy optimization (Schulman et al. 2017), and its decoupled objective for stale data (AReaL 2025).

AReaL follows Hilton et al. 2022: the ratio that is clipped is to a proximal policy, here the one that the learner has
when it begins with a batch, and the policy that played enters as an importance weight.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from a3c_core.algorithms.advantages import generalised_advantages
from a3c_core.algorithms.trajectories import (
    Batch,
    Column,
    Evaluate,
    PieceSettings,
    TrajectoryAlgorithm,
    TrajectorySettings,
)
from a3c_core.section import LARGEST_FACTOR
from a3c_core.system.tensorflow import import_tensorflow

_EPSILON = 1e-8  # guards against advantages that are all alike


class ClippedSettings(PieceSettings):
    """Advantages, epochs and the clipped objective."""

    learning_rate: float = Field(3e-3, gt=0, le=LARGEST_FACTOR)
    trace_decay: float = Field(0.95, ge=0, le=1, description="lambda of the generalised advantages")
    standardise: bool = Field(True, description="advantages to mean 0 and deviation 1 within each batch")
    epochs: int = Field(8, ge=1, le=1_000, description="times that each batch is learned from")
    clip: float = Field(0.2, gt=0, le=LARGEST_FACTOR, description="how far the ratio of probabilities may move from 1")


class PPOSettings(ClippedSettings, TrajectorySettings):
    """The same, and the learner's batches. Rate, batch and epochs are the best of grids/search_ppo.yaml."""

    batch_steps: int = Field(2048, ge=1, le=10_000_000, description="env steps from which on a batch is learned from")
    minibatches: int = Field(4, ge=1, le=100_000, description="updates an epoch, each from another part of the batch")
    decoupled: bool = Field(False, description="clip the ratio to the learner's policy, not to the one that played")


class PPO(TrajectoryAlgorithm):
    """Epochs of clipped updates on batches of trajectories. Targets: advantage, return, log-probability, weight."""

    Settings: ClassVar[type[TrajectorySettings]] = PPOSettings
    target_columns: ClassVar[int] = 4
    averages: ClassVar[bool] = True
    settings: PPOSettings

    def __init__(self, settings: PPOSettings):
        super().__init__(settings)
        self.epochs, self.minibatches = settings.epochs, settings.minibatches

    def batch_targets(self, batch: Batch, evaluate: Evaluate) -> NDArray[np.float32]:
        """Return float32 [N, 4]: advantage, return, log-probability by the proximal policy, importance weight."""
        settings = self.settings
        advantages = generalised_advantages(
            batch.rewards, batch.values, batch.lengths, batch.bootstrap_values, settings.gamma, settings.trace_decay
        )
        returns = advantages + batch.values
        if settings.standardise:
            deviations = advantages - advantages.mean(dtype=np.float64)
            advantages = deviations / (deviations.std(dtype=np.float64) + _EPSILON)
        proximal, weights = batch.log_probabilities, np.ones_like(batch.values)
        if settings.decoupled:
            proximal, _ = evaluate()
            weights = np.exp(proximal - batch.log_probabilities)
        return np.stack([advantages, returns, proximal, weights], axis=1).astype(np.float32)

    def policy_losses(self, log_probabilities: Any, targets: Any) -> Any:
        tf, clip = import_tensorflow(), self.settings.clip
        advantages, proximal, weights = targets[:, 0], targets[:, 2], targets[:, 3]
        ratios = tf.exp(log_probabilities - proximal)
        bounded = tf.clip_by_value(ratios, 1.0 - clip, 1.0 + clip)
        return -weights * tf.minimum(ratios * advantages, bounded * advantages)

    def clipped(self, log_probabilities: Column, batch: Batch, targets: NDArray[np.float32]) -> NDArray[np.bool_]:
        outside: NDArray[np.bool_] = np.abs(np.exp(log_probabilities - targets[:, 2]) - 1) > self.settings.clip
        return outside
