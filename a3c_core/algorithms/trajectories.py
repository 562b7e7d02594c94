"""What algorithms have in common whose workers hand over trajectories, from batches of which the learner learns."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from a3c_core.algorithms.actor_critic import ActorCritic
from a3c_core.algorithms.base import HandsOver, LearnerSettings, Trajectory
from a3c_core.section import LARGEST_FACTOR
from a3c_core.system.tensorflow import import_tensorflow

Column = NDArray[np.float32]  # [N]


class PieceSettings(LearnerSettings):
    """Pieces of play, and the loss of their steps."""

    gamma: float = Field(0.99, ge=0, le=1)
    horizon: int = Field(128, ge=1, le=65_536, description="most env steps of a trajectory; longer episodes are cut")
    value_loss: Literal["huber", "squared"] = "squared"
    value_coefficient: float = Field(0.5, ge=0, le=LARGEST_FACTOR)
    entropy_coefficient: float = Field(0.0, ge=0, le=LARGEST_FACTOR)


class TrajectorySettings(PieceSettings):
    """The same, and of how many steps a learner makes a batch."""

    batch_steps: int = Field(1, ge=1, le=10_000_000, description="env steps from which on a batch is learned from")


class Batch(NamedTuple):
    """Trajectories one after the other, N steps in all."""

    observations: NDArray[Any]  # [N, ...]
    actions: NDArray[np.int32]  # [N]
    rewards: Column
    values: Column  # the network's estimates while playing
    log_probabilities: Column  # of the actions, by the policy that played
    lengths: NDArray[np.int64]  # [B], of the trajectories
    bootstrap_values: NDArray[np.float32]  # [B], of the states after their ends

    @property
    def env_steps(self) -> int:
        return len(self.actions)


Evaluate = Callable[[], tuple[Column, Column]]  # log-probabilities and values of a batch by the present parameters


def batch_of(trajectories: Sequence[Trajectory]) -> Batch:
    """Return trajectories as one batch."""

    def joined(name: str, kind: Any = np.float32) -> NDArray[Any]:
        return np.concatenate([getattr(trajectory, name) for trajectory in trajectories]).astype(kind, copy=False)

    return Batch(
        observations=np.concatenate([trajectory.observations for trajectory in trajectories]),
        actions=joined("actions", np.int32),
        rewards=joined("rewards"),
        values=joined("values"),
        log_probabilities=joined("log_probabilities"),
        lengths=np.array([trajectory.env_steps for trajectory in trajectories], np.int64),
        bootstrap_values=np.array([trajectory.bootstrap_value for trajectory in trajectories], np.float32),
    )


class TrajectoryAlgorithm(ActorCritic, ABC):
    """Base class of algorithms whose workers hand over trajectories, from batches of which the learner learns.

    The learner improves policy and value in `epochs` passes over each batch, each in `minibatches` parts.
    `vtrace.py` is the shortest example.
    """

    Settings: ClassVar[type[TrajectorySettings]]
    hands_over: ClassVar[HandsOver] = "trajectory"
    # columns of the targets: advantage, target of the critic, and whatever else the policy's loss needs
    target_columns: ClassVar[int]
    averages: ClassVar[bool]  # whether an update takes the mean over its steps, or their sum
    statistics: ClassVar[tuple[str, ...]] = ("clip_fraction", "kl", "importance_weight")
    epochs = 1
    minibatches = 1

    def __init__(self, settings: TrajectorySettings):
        self.settings = settings

    @property
    def steps_at_once(self) -> int:
        return self.settings.horizon

    @abstractmethod
    def batch_targets(self, batch: Batch, evaluate: Evaluate) -> NDArray[np.float32]:
        """Return the targets of the losses, float32 [N, target_columns].

        Args:
            batch: N steps of trajectories that stand one after the other.
            evaluate: returns (log-probabilities [N], values [N]) by the present parameters; costs a forward pass.
        """

    @abstractmethod
    def policy_losses(self, log_probabilities: Any, targets: Any) -> Any:
        """Return the policy's losses [T] as tensors, given log-probabilities [T] of the actions, and the targets."""

    @abstractmethod
    def clipped(self, log_probabilities: Column, batch: Batch, targets: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Return [N]: at which steps a bound holds the policy's loss."""

    def losses(self, outputs: tuple[Any, ...], actions: Any, targets: Any) -> tuple[Any, Any, Any]:
        """Return (losses [T], the policy's entropies [T], log-probabilities [T] of the actions) as tensors.

        loss = policy loss + value_coefficient * value loss - entropy_coefficient * entropy,
        where the value loss is half the squared error, or Huber's.
        """
        tf, settings = import_tensorflow(), self.settings
        log_policy = tf.nn.log_softmax(outputs[0])  # [T, actions]
        log_probabilities = tf.gather(log_policy, actions, batch_dims=1)  # [T]
        entropies = -tf.reduce_sum(tf.exp(log_policy) * log_policy, axis=1)
        sizes = tf.abs(targets[:, 1] - outputs[1][:, 0])
        value_losses = 0.5 * tf.square(sizes)
        if settings.value_loss == "huber":
            value_losses = tf.where(sizes > 1.0, sizes - 0.5, value_losses)
        losses = (
            self.policy_losses(log_probabilities, targets)
            + settings.value_coefficient * value_losses
            - settings.entropy_coefficient * entropies
        )
        return losses, entropies, log_probabilities

    def measured(self, log_probabilities: Column, batch: Batch, targets: NDArray[np.float32]) -> tuple[float, ...]:
        """Return what `statistics` names, of a batch whose actions have these log-probabilities [N] by now.

        The divergence from the policy that played is Schulman's estimate, which is never negative: mean(w - 1 - log w).
        """
        log_weights = np.float64(log_probabilities - batch.log_probabilities)
        weights = np.exp(log_weights)
        clip_fraction = self.clipped(log_probabilities, batch, targets).mean()
        return float(clip_fraction), float((weights - 1 - log_weights).mean()), float(weights.mean())
