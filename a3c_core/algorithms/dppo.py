"""Distributed proximal policy optimization (DPPO; Heess et al. 2017): PPO whose workers compute the gradients.

With `topology: synchronous`, where the gradients of all workers are averaged, this is DPPO: all go through their epochs
in lockstep. With others each goes through its own, by parameters that others' gradients have changed meanwhile. The
paper penalises how far policies are apart; the objective here is the clipped one (Schulman et al. 2017).
"""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from a3c_core.algorithms.actor_critic import ActorCritic
from a3c_core.algorithms.base import HandsOver, LearnerSettings
from a3c_core.algorithms.ppo import PPO, ClippedSettings, PPOSettings
from a3c_core.algorithms.trajectories import Batch, Column


class DPPOSettings(ClippedSettings):
    """PPO's, but for the learner's batches: a worker's batch is what its agents have played at once.

    Rate, horizon and epochs are the best of grids/search_dppo.yaml.
    """

    epochs: int = Field(8, ge=1, le=1_000, description="gradients that a worker hands over of what it played at once")


class DPPO(ActorCritic):
    """A worker plays a piece of at most `horizon` steps, and hands over `epochs` gradients of it, one after the other.

    Before each it pulls parameters; only before the first it plays. A gradient is the mean over the steps, and those
    of several workers count alike, however many steps they are of. One that comes too late for a round with backups is
    dropped, and its epoch with it: the worker goes on with its next. So does one that joins amid the others' epochs.
    """

    Settings: ClassVar[type[LearnerSettings]] = DPPOSettings
    hands_over: ClassVar[HandsOver] = "gradient"
    statistics: ClassVar[tuple[str, ...]] = PPO.statistics

    def __init__(self, settings: DPPOSettings):
        self.settings = settings
        self.batches = PPO(PPOSettings(batch_steps=1, minibatches=1, **dict(settings)))  # whose gradients these are

    @property
    def steps_at_once(self) -> int:
        return self.settings.horizon

    @property
    def gradients_of_play(self) -> int:
        return self.settings.epochs

    def first_losses(self, batch: Batch, targets: NDArray[np.float32]) -> Column:
        """Return float32 [N]: the losses by the policy that has just played, to which the ratio is 1.

        `targets` [N, 4] are PPO's. An entropy is estimated from the action, whose log-probability averages to it.
        """
        settings = self.settings
        sizes = np.abs(targets[:, 1] - batch.values)
        value_losses = 0.5 * np.square(sizes)
        if settings.value_loss == "huber":
            value_losses = np.where(sizes > 1.0, sizes - 0.5, value_losses)
        entropy_losses = settings.entropy_coefficient * batch.log_probabilities
        losses: Column = settings.value_coefficient * value_losses + entropy_losses - targets[:, 0]
        return losses
