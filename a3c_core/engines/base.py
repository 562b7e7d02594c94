"""What every engine offers: play from parameters, the gradient of what was played, and both in one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from a3c_core.models import Model
from a3c_core.parameters import Vector


@dataclass(frozen=True)
class Trajectory:
    """A stretch of play: a whole episode, or a piece of one."""

    observations: NDArray[Any]  # [T, ...]
    actions: NDArray[np.uint8]  # [T]
    rewards: NDArray[np.float32]  # [T]
    values: NDArray[np.float32]  # [T], the critic's estimates while playing
    bootstrap_value: float  # the critic's estimate of the state after the last step; 0 if that was death
    terminated: bool  # the bird died
    truncated: bool  # the time limit ended the episode

    @property
    def env_steps(self) -> int:
        return len(self.actions)


@dataclass(frozen=True)
class Play:
    """The numbers of a trajectory that records need."""

    loss: float  # summed over the trajectory
    entropy: float  # mean per step, in nats
    env_steps: int
    reward: float  # sum over the trajectory
    score: int  # pipes passed so far in the episode
    terminated: bool
    truncated: bool

    @property
    def episode_over(self) -> bool:
        return self.terminated or self.truncated


@dataclass(frozen=True)
class Rollout(Play):
    """A trajectory's numbers and its gradient, which belongs to the receiver."""

    gradient: Vector  # float32 [P], of the loss summed over the trajectory


def play_of(trajectory: Trajectory, score: int, loss: float, entropy: float) -> Play:
    """Return the numbers of a trajectory."""
    reward = float(trajectory.rewards.sum(dtype=np.float64))
    return Play(loss, entropy, trajectory.env_steps, reward, score, trajectory.terminated, trajectory.truncated)


def rollout_of(trajectory: Trajectory, score: int, gradient: Vector, loss: float, entropy: float) -> Rollout:
    """Return the rollout that a trajectory and its gradient make."""
    return Rollout(**vars(play_of(trajectory, score, loss, entropy)), gradient=gradient)


class Environment(Protocol):
    """One worker's game and its generators."""

    def begin_episode(self, seed: int, worker: int, episode: int) -> None:
        """Start the episode whose randomness belongs to (seed, worker, episode) alone."""
        ...

    def get_state(self) -> NDArray[np.uint8]:
        """Return everything that the rest of the episode depends on."""
        ...

    def set_state(self, state: NDArray[np.uint8]) -> None: ...


class Engine(Protocol):
    """Plays and differentiates. One engine serves any number of environments, one after the other."""

    sample_times: bool  # measure `play_share`, which may change the last bits of a gradient
    play_share: float  # of a rollout's time, spent on playing

    @property
    def model(self) -> Model: ...

    def new_environment(self) -> Any: ...

    def play(self, parameters: Vector, environment: Any) -> Trajectory:
        """Play on to the end of the episode, or for `t_max` steps where updates are made that often."""
        ...

    def gradient(self, parameters: Vector, trajectory: Trajectory) -> tuple[Vector, float, float]:
        """Return (gradient of the summed loss [P], loss, mean entropy) of a trajectory."""
        ...

    def rollout(self, parameters: Vector, environment: Any) -> Rollout:
        """Play and differentiate."""
        ...

    def rollout_together(self, parameters: Vector, environments: Sequence[Any]) -> tuple[Vector, Sequence[Play]]:
        """Let several agents play and return (the sum of their gradients [P], what each has played)."""
        ...


class OneAfterAnother:
    """For engines that gain nothing from a batch: several agents take turns."""

    def rollout_together(self, parameters: Vector, environments: Sequence[Any]) -> tuple[Vector, Sequence[Play]]:
        rollouts = [self.rollout(parameters, environment) for environment in environments]
        return np.sum([rollout.gradient for rollout in rollouts], axis=0), rollouts

    def rollout(self, parameters: Vector, environment: Any) -> Rollout:
        raise NotImplementedError
