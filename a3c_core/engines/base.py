"""What every engine offers: play from parameters, the gradient of what was played, and both in one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from a3c_core.algorithms.base import Algorithm, HandsOver, Trajectory
from a3c_core.algorithms.trajectories import Batch, Column
from a3c_core.engines.packing import Packing
from a3c_core.games.base import Game
from a3c_core.models.base import Model, memory_shape_of
from a3c_core.models.parameters import Vector
from a3c_core.progress import START, Progress

NOT_CHOSEN = -1  # in place of an action
Purpose = HandsOver | Literal["memory"]


def purpose_of(model: Model | None, algorithm: Algorithm) -> Purpose:
    """Return what an engine computes for: what workers hand over, or a network that remembers."""
    return algorithm.hands_over if memory_shape_of(model) is None else "memory"


@dataclass  # not frozen: thousands are made a second, and setting a frozen one's fields takes three times as long
class Play:
    """The numbers of a trajectory that records need."""

    loss: float  # summed over the trajectory
    entropy: float  # mean per step, in nats
    env_steps: int
    reward: float  # sum over the trajectory
    score: float  # so far in the episode
    terminated: bool
    truncated: bool
    repeated_steps: int = field(default=0, kw_only=True)  # of earlier play, that were differentiated again
    measured: Mapping[str, float] = field(default_factory=dict, kw_only=True)  # of all that was differentiated with it

    @property
    def episode_over(self) -> bool:
        return self.terminated or self.truncated


@dataclass
class Rollout(Play):
    """A trajectory's numbers and what is handed over of it, which belongs to the receiver."""

    gradient: Vector  # float32 [P], of the loss summed over the trajectory; or the trajectory itself, packed


def play_of(trajectory: Trajectory, score: float, loss: float, entropy: float) -> Play:
    """Return the numbers of a trajectory."""
    reward = float(trajectory.rewards.sum(dtype=np.float64))
    return Play(loss, entropy, trajectory.env_steps, reward, score, trajectory.terminated, trajectory.truncated)


def rollout_of(trajectory: Trajectory, score: float, gradient: Vector, loss: float, entropy: float) -> Rollout:
    """Return the rollout that a trajectory and its gradient make."""
    return Rollout(**vars(play_of(trajectory, score, loss, entropy)), gradient=gradient)


def chosen_action(environment: Any) -> int:
    """Return the action that was chosen with the last piece of play and is still to be taken, or NOT_CHOSEN."""
    chosen: int = getattr(environment, "chosen", NOT_CHOSEN)
    return chosen


def memory_of(environment: Any) -> NDArray[np.float32] | None:
    """Return what the agent remembers of its episode, which is kept beside the environment, if it remembers at all."""
    memory: NDArray[np.float32] | None = getattr(environment, "memory", None)
    return memory


def act_share_of(engine: Any) -> float:
    """Return the share of a rollout's time that was spent on asking for actions; 0 if the engine does not know it."""
    share: float = getattr(engine, "act_share", 0.0)
    return share


class Engine(Protocol):
    """Plays with given parameters and computes gradients.

    Inherit from nothing: a class with these members is an engine. It is made by calling its class with (game, model,
    algorithm). One engine serves any number of environments, one after the other.

    `published` is what the learner publishes: the parameters [P], followed by those of a target network [P] where the
    algorithm has one. An engine may also have `act_share`: see `act_share_of`.

    Example:
        >>> engine = build_engine("compiled", game, model, algorithm)  # doctest: +SKIP
        >>> environment = engine.new_environment()  # doctest: +SKIP
        >>> environment.begin_episode(seed=0, worker=0, episode=0)  # doctest: +SKIP
        >>> rollout = engine.rollout(parameters, environment)  # plays an episode; its gradient  # doctest: +SKIP
    """

    sample_times: bool  # measure `play_share`, which may change the last bits of a gradient
    play_share: float  # of a rollout's time, spent on playing

    @property
    def model(self) -> Model: ...

    @classmethod
    def why_not(cls, game: Game, model: Model | None, algorithm: Algorithm) -> str | None:
        """Return the reason why the engine can't compute these parts, or None if it can.

        Args:
            model: None if the game itself can't be played, so that there is no model for it.
        """
        ...

    def new_environment(self) -> Any:
        """Return an environment that this engine can play."""
        ...

    def play(self, published: Vector, environment: Any, progress: Progress = START) -> Trajectory:
        """Play to the end of the episode, or for as many steps as the algorithm plays at once."""
        ...

    def gradient(self, parameters: Vector, trajectory: Trajectory) -> tuple[Vector, float, float]:
        """Return (gradient of the summed loss [P], loss, mean entropy) of a trajectory."""
        ...

    def gradient_together(self, parameters: Vector, trajectories: Sequence[Trajectory]) -> Vector:
        """Return the gradient [P] of the loss summed over several trajectories."""
        ...

    def rollout(self, published: Vector, environment: Any, progress: Progress = START) -> Rollout:
        """Play, and return the gradient of it with its numbers; where trajectories are handed over, the trajectory."""
        ...

    def rollout_together(
        self, published: Vector, environments: Sequence[Any], progress: Progress = START
    ) -> tuple[Vector, Sequence[Play]]:
        """Let several agents play.

        Returns:
            (sum of their gradients [P], or their trajectories as one vector; the numbers of what each played).
        """
        ...


class LearningEngine(Protocol):
    """What engines offer a learner beside, where workers hand over trajectories."""

    def evaluate(self, parameters: Vector, batch: Batch) -> tuple[Column, Column]:
        """Return (log-probabilities of the actions [N], values [N]) by `parameters`."""
        ...

    def batch_gradient(
        self, parameters: Vector, batch: Batch, targets: NDArray[np.float32], rows: NDArray[Any]
    ) -> tuple[Vector, Column]:
        """Return (gradient of the loss summed over the steps `rows` [n], log-probabilities of their actions [n])."""
        ...


def packed_rollouts(
    packing: Packing, trajectories: Sequence[Trajectory], scores: Sequence[float]
) -> tuple[Vector, Sequence[Play]]:
    """Return (trajectories as one parcel, the numbers of each).

    Nobody knows their loss yet; the entropy is estimated from the actions, whose log-probabilities average to it, or
    is none where these are not known.
    """
    plays = []
    for trajectory, score in zip(trajectories, scores, strict=True):
        known = trajectory.log_probabilities
        entropy = 0.0 if known is None else -float(known.mean(dtype=np.float64))
        plays.append(play_of(trajectory, score, 0.0, entropy))
    return packing.pack(trajectories), plays


class OneAfterAnother:
    """For engines that gain nothing from a batch: several agents take turns, and several trajectories."""

    def rollout_together(
        self, published: Vector, environments: Sequence[Any], progress: Progress = START
    ) -> tuple[Vector, Sequence[Play]]:
        rollouts = [self.rollout(published, environment, progress) for environment in environments]
        return np.sum([rollout.gradient for rollout in rollouts], axis=0), rollouts

    def rollout(self, published: Vector, environment: Any, progress: Progress = START) -> Rollout:
        raise NotImplementedError

    def gradient_together(self, parameters: Vector, trajectories: Sequence[Trajectory]) -> Vector:
        total = np.zeros_like(parameters)
        for trajectory in trajectories:
            total += self.gradient(parameters, trajectory)[0]
        return total

    def gradient(self, parameters: Vector, trajectory: Trajectory) -> tuple[Vector, float, float]:
        raise NotImplementedError
