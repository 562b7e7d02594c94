"""Asynchronous advantage actor-critic (Mnih et al. 2016), by the episode as in the report, or in pieces."""

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from a3c_core.algorithms.actor_critic import ActorCritic
from a3c_core.algorithms.base import HandsOver, LearnerSettings, Trajectory
from a3c_core.algorithms.returns import learning_targets
from a3c_core.section import LARGEST_FACTOR
from a3c_core.system.tensorflow import import_tensorflow


class A3CSettings(LearnerSettings):
    """Returns, loss and optimizer."""

    gamma: float = Field(0.99, ge=0, le=1)
    t_max: int | None = Field(
        None, ge=1, le=1_000_000, description="n-step returns over chunks of t_max; null: to the episode's end"
    )
    discounts: Literal["exact", "stretched"] = Field(
        "exact", description="exponents 0, 1, 2, ...; stretched: each n/(n-1) times as large, in an episode of n steps"
    )
    update_every: Literal["episode", "t_max"] = "episode"
    standardise: bool = Field(True, description="returns to mean 0 and deviation 1 within each episode")
    value_loss: Literal["huber", "squared"] = "huber"
    value_coefficient: float = Field(1.0, ge=0, le=LARGEST_FACTOR)
    entropy_coefficient: float = Field(0.0, ge=0, le=LARGEST_FACTOR)

    @model_validator(mode="after")
    def _consistent(self) -> "A3CSettings":
        if self.update_every == "t_max" and self.t_max is None:
            raise ValueError("update_every: t_max needs a t_max, the number of env steps between updates")
        if self.t_max is not None and self.standardise:
            raise ValueError("standardise works on returns to the episode's end: set it to false with a t_max")
        if self.t_max is not None and self.discounts == "stretched":
            raise ValueError("discounts: stretched go by the whole episode's length: leave out the t_max")
        return self


class A3C(ActorCritic):
    """A policy that is drawn from, and a value that its advantage is measured by."""

    Settings: ClassVar[type[LearnerSettings]] = A3CSettings
    hands_over: ClassVar[HandsOver] = "gradient"

    def __init__(self, settings: A3CSettings):
        self.settings = settings

    @property
    def steps_at_once(self) -> int | None:
        return self.settings.t_max if self.settings.update_every == "t_max" else None

    def targets(self, trajectory: Trajectory) -> NDArray[np.float32]:
        """Return float32 [T]: the returns as the settings ask for them."""
        settings = self.settings
        return learning_targets(
            trajectory.rewards,
            trajectory.values,
            trajectory.bootstrap_value,
            trajectory.terminated,
            settings.gamma,
            settings.t_max or 0,
            settings.standardise,
            settings.discounts == "stretched",
        )

    def losses(self, outputs: tuple[Any, ...], actions: Any, targets: Any) -> tuple[Any, Any]:
        """Return (losses [T], entropies [T]).

        loss = -log policy(action) * advantage + value_coefficient * value loss - entropy_coefficient * entropy,
        where the advantage, targets - values, is a constant for the policy, and the value loss is half the squared
        error or Huber's.
        """
        tf, settings = import_tensorflow(), self.settings
        policy_logits, values = outputs[0], outputs[1][:, 0]
        log_policy = tf.nn.log_softmax(policy_logits)  # [T, actions]
        log_chosen = tf.gather(log_policy, actions, batch_dims=1)  # [T]
        entropies = -tf.reduce_sum(tf.exp(log_policy) * log_policy, axis=1)  # [T]
        errors = targets - values
        sizes = tf.abs(errors)
        squared = 0.5 * tf.square(errors)
        value_losses = tf.where(sizes > 1.0, sizes - 0.5, squared) if settings.value_loss == "huber" else squared
        losses = (
            -log_chosen * tf.stop_gradient(errors)
            + settings.value_coefficient * value_losses
            - settings.entropy_coefficient * entropies
        )
        return losses, entropies
