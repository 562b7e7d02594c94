"""What an algorithm is: how to act on a network's outputs, and how experience becomes a loss."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from a3c_core.models.base import Heads, Outputs
from a3c_core.optimizers import DECAY, OptimizerName
from a3c_core.progress import Progress
from a3c_core.section import LARGEST_FACTOR, Section

HandsOver = Literal["gradient", "trajectory", "experience"]


class LearnerSettings(Section):
    """What every algorithm has: how a gradient changes the parameters."""

    optimizer: OptimizerName = "adam"
    learning_rate: float = Field(1e-4, gt=0, le=LARGEST_FACTOR)
    anneal: bool = Field(False, description="learning rate falls linearly to 0 over the run's episodes")
    clip_norm: float | None = Field(
        None, gt=0, le=LARGEST_FACTOR, description="largest global norm of a gradient; null: no limit"
    )
    epsilon: float | None = Field(
        None, gt=0, le=LARGEST_FACTOR, description="of the optimizer; null: 1e-7 with adam, 0.1 with rmsprop"
    )
    decay: float = Field(DECAY, ge=0, lt=1, description="of rmsprop's average")


class TargetSettings(LearnerSettings):
    """What an algorithm with a target network has: its learner publishes one beside the parameters."""

    target_every: int = Field(
        10_000, ge=1, le=10**12, description="env steps of the run after which the target network is set anew"
    )


@dataclass(frozen=True)
class Trajectory:
    """A stretch of play: a whole episode, or a piece of one."""

    observations: NDArray[Any]  # [T, ...]
    actions: NDArray[Any]  # [T], whole numbers
    rewards: NDArray[np.float32]  # [T]
    values: NDArray[np.float32]  # [T], the network's estimates while playing, or its target network's if there is one
    bootstrap_value: float  # its estimate of the state after the last step; 0 if that was the end
    terminated: bool  # the game ended
    truncated: bool  # the time limit ended the episode
    next_observation: NDArray[Any] | None = None  # [...], after the last step, unless that was the end
    next_action: int = -1  # chosen there, if the algorithm counts the action that follows
    log_probabilities: NDArray[np.float32] | None = None  # [T], of the actions; where trajectories are handed over
    memory: NDArray[np.float32] | None = None  # [...], what the agent remembered at the first step, if it remembers

    @property
    def env_steps(self) -> int:
        return len(self.actions)


class Algorithm(Protocol):
    """How to act on a network's outputs, and how experience becomes a loss.

    Inherit from nothing: a class with these members is an algorithm. It is made by calling its class with its settings.
    All methods take and return NumPy arrays, except `losses`, which is of TensorFlow's tensors. An algorithm whose
    workers hand over trajectories inherits from `trajectories.TrajectoryAlgorithm` instead.

    Three more members are optional:
        statistics: names of numbers that are added to the record of each update, by its learner or by the worker whose
            gradient it is.
        value_of(outputs, action): replaces `value` where the action that is taken in a state counts. Such an algorithm
            chooses the action after a piece of play together with that piece, and the next piece begins with it.
        gradients_of_play: how many gradients a worker makes of what it has played, each with the parameters that it
            has pulled by then; see `dppo.DPPO`.

    Example:
        `algorithm: my_module:MyAlgorithm` in a grid uses the class `MyAlgorithm` of my_module.py; docs/extending.md
        has a whole one.
    """

    Settings: ClassVar[type[LearnerSettings]]  # the section `learner:` of a run
    hands_over: ClassVar[HandsOver]  # what a worker gives the master

    @property
    def steps_at_once(self) -> int | None:
        """Env steps that a worker plays for one gradient; None: a whole episode."""
        ...

    def heads(self, actions: int) -> Heads:
        """Return the outputs that the network needs.

        Args:
            actions: number of the game's actions.

        Returns:
            (name, size) of each output. The first has one number per action, of which a larger one is better.
        """
        ...

    def act(self, outputs: Outputs, stream: NDArray[np.uint64], progress: Progress) -> int:
        """Return the action to take.

        Args:
            outputs: of the network for one observation, [size] each.
            stream: random stream of the worker, the only source of chance; see `streams.uniform`.
            progress: how far the run has come, for instance for annealed exploration.
        """
        ...

    def value(self, outputs: Outputs) -> float:
        """Return the value of a state by the network's outputs, [size] each; cut-off returns bootstrap from it."""
        ...

    def targets(self, trajectory: Trajectory) -> NDArray[np.float32]:
        """Return float32 [T]: the targets of the losses, for instance discounted returns."""
        ...

    def losses(self, outputs: tuple[Any, ...], actions: Any, targets: Any) -> tuple[Any, Any]:
        """Return the losses of T steps.

        Args:
            outputs: tensors [T, size], one for each head.
            actions: tensor [T].
            targets: tensor [T], from `targets`.

        Returns:
            (losses [T], entropies of the policy [T]) as tensors.
        """
        ...


def has_target(algorithm: Algorithm) -> bool:
    """Return whether the algorithm learns with a target network."""
    return issubclass(algorithm.Settings, TargetSettings)


def is_repeated(algorithm: Any) -> bool:
    """Return whether an algorithm, or its class, lets workers differentiate what they have played again and again."""
    return hasattr(algorithm, "gradients_of_play")


def gradients_of_play(algorithm: Algorithm) -> int:
    """Return how many gradients a worker makes of what it has played at once."""
    gradients: int = getattr(algorithm, "gradients_of_play", 1)
    return gradients
