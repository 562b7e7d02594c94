"""What every engine offers: play from parameters, the gradient of what was played, and both in one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from a3c_core.algorithms.base import Algorithm, Trajectory
from a3c_core.games.base import Game
from a3c_core.models.base import Model
from a3c_core.models.parameters import Vector
from a3c_core.progress import START, Progress

NOT_CHOSEN = -1  # in place of an action


@dataclass(frozen=True)
class Play:
    """The numbers of a trajectory that records need."""

    loss: float  # summed over the trajectory
    entropy: float  # mean per step, in nats
    env_steps: int
    reward: float  # sum over the trajectory
    score: float  # so far in the episode
    terminated: bool
    truncated: bool

    @property
    def episode_over(self) -> bool:
        return self.terminated or self.truncated


@dataclass(frozen=True)
class Rollout(Play):
    """A trajectory's numbers and its gradient, which belongs to the receiver."""

    gradient: Vector  # float32 [P], of the loss summed over the trajectory


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


class Engine(Protocol):
    """Plays and differentiates. Made by calling its class with (game, model, algorithm).

    One engine serves any number of environments, one after the other. It plays with what the learner has `published`:
    the parameters [P], and behind them, where the algorithm has one, a target network's [P].
    """

    sample_times: bool  # measure `play_share`, which may change the last bits of a gradient
    play_share: float  # of a rollout's time, spent on playing

    @property
    def model(self) -> Model: ...

    @classmethod
    def why_not(cls, game: Game, model: Model | None, algorithm: Algorithm) -> str | None:
        """Return what keeps the engine from computing these parts, or None; `model` is None if the game allows none."""
        ...

    def new_environment(self) -> Any: ...

    def play(self, published: Vector, environment: Any, progress: Progress = START) -> Trajectory:
        """Play on to the end of the episode, or for as many steps as the algorithm plays at once."""
        ...

    def gradient(self, parameters: Vector, trajectory: Trajectory) -> tuple[Vector, float, float]:
        """Return (gradient of the summed loss [P], loss, mean entropy) of a trajectory."""
        ...

    def rollout(self, published: Vector, environment: Any, progress: Progress = START) -> Rollout:
        """Play and differentiate."""
        ...

    def rollout_together(
        self, published: Vector, environments: Sequence[Any], progress: Progress = START
    ) -> tuple[Vector, Sequence[Play]]:
        """Let several agents play and return (the sum of their gradients [P], what each has played)."""
        ...


class OneAfterAnother:
    """For engines that gain nothing from a batch: several agents take turns."""

    def rollout_together(
        self, published: Vector, environments: Sequence[Any], progress: Progress = START
    ) -> tuple[Vector, Sequence[Play]]:
        rollouts = [self.rollout(published, environment, progress) for environment in environments]
        return np.sum([rollout.gradient for rollout in rollouts], axis=0), rollouts

    def rollout(self, published: Vector, environment: Any, progress: Progress = START) -> Rollout:
        raise NotImplementedError
