"""Deep Q-learning from a replay memory (Mnih et al. 2015), as Gorila spreads it (Nair et al. 2015): r + γ Q(s', a').

a' is the action that the target network likes best, or (Double DQN, van Hasselt et al. 2016) the one that the network
itself does, at the target network's value.
"""

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from a3c_core.algorithms.base import HandsOver, LearnerSettings
from a3c_core.algorithms.values import ValueAlgorithm, ValueSettings
from a3c_core.system.tensorflow import import_tensorflow


class DQNSettings(ValueSettings):
    """Returns, memory, minibatches, exploration and optimizer."""

    t_max: int = Field(
        20, ge=1, le=1_000_000, description="env steps that an actor plays before it hands them over and fetches anew"
    )
    double: bool = Field(True, description="the network chooses the action that the target network values")
    value_loss: Literal["huber", "squared"] = Field("squared", description="huber: errors beyond 1 count as 1")
    minibatch: int | None = Field(
        32, ge=1, le=65_536, description="steps drawn from the memory for one gradient; null: all, in their order"
    )
    memory_steps: int = Field(50_000, ge=1, le=100_000_000, description="latest env steps that a memory holds")
    learn_from: int = Field(1_000, ge=1, le=100_000_000, description="env steps in a memory before it is drawn from")


class DQN(ValueAlgorithm):
    """Actors hand over what they have played; learners draw minibatches of it."""

    Settings: ClassVar[type[LearnerSettings]] = DQNSettings
    hands_over: ClassVar[HandsOver] = "experience"
    statistics: ClassVar[tuple[str, ...]] = ("target_age", "loss")  # env steps; mean per step of the minibatch
    one_step = True
    settings: DQNSettings

    def replay_targets(
        self,
        rewards: NDArray[np.float32],
        goes_on: NDArray[np.float32],
        target_values: NDArray[np.float32],
        own_values: NDArray[np.float32],
    ) -> NDArray[np.float32]:
        """Return float32 [n]. Both networks' values [n, actions] are of the states that followed; `goes_on` is 0 or 1.

        `own_values` count with `double` only.
        """
        best = (own_values if self.settings.double else target_values).argmax(axis=1)
        following = target_values[np.arange(len(best)), best] * goes_on
        targets: NDArray[np.float32] = rewards + np.float32(self.settings.gamma) * following
        return targets

    def losses(self, outputs: tuple[Any, ...], actions: Any, targets: Any) -> tuple[Any, Any]:
        """Return (losses [T] of the values of the actions taken, zeros [T]: such a policy has no entropy)."""
        squared, none = super().losses(outputs, actions, targets)
        if self.settings.value_loss == "squared":
            return squared, none
        tf = import_tensorflow()
        sizes = tf.abs(targets - tf.gather(outputs[0], actions, batch_dims=1))
        return tf.where(sizes > 1.0, 2.0 * sizes - 1.0, squared), none
