"""The `compiled` engine: the dense model on Flappy Bird, play and gradient without Python in between."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from a3c_core.algorithms.a3c import A3C, A3CSettings
from a3c_core.algorithms.base import Algorithm, Trajectory
from a3c_core.engines import kernels
from a3c_core.engines.base import OneAfterAnother, Rollout
from a3c_core.games import flappy, published
from a3c_core.games.base import FLAPPY_BIRD, EnvironmentConfig, Game
from a3c_core.models.base import Model
from a3c_core.models.dense import DenseModel
from a3c_core.models.parameters import Vector
from a3c_core.streams import shared_actions, stream_words

_SAMPLED = 64  # one in so many rollouts is measured


class CompiledFlappy:
    """One worker's game, its action stream and how far the episode has come."""

    def __init__(self, seeding: str = "episode", actions: str = "own"):
        self.game = flappy.new_game()
        self.stream: NDArray[np.uint64] = np.zeros(4, np.uint64)
        self.episode_steps: NDArray[np.int64] = np.zeros(1, np.int64)
        self._ways = seeding == "episode", actions == "own", published.RESETS[seeding]
        if seeding != "episode":
            published.seed_before_first(self.game, seeding)

    def begin_episode(self, seed: int, worker: int, episode: int) -> None:
        if not self.stream.any():  # its first episode
            self.stream[:] = shared_actions(seed)
        flappy.begin_episode(self.game[0], self.stream, stream_words(seed, worker, episode), *self._ways)
        self.episode_steps[0] = 0

    def get_state(self) -> NDArray[np.uint8]:
        return np.concatenate([part.view(np.uint8) for part in (self.game, self.stream, self.episode_steps)])

    def set_state(self, state: NDArray[np.uint8]) -> None:
        start = 0
        for part in (self.game, self.stream, self.episode_steps):
            part.view(np.uint8)[:] = state[start : start + part.nbytes]
            start += part.nbytes


class CompiledEngine(OneAfterAnother):
    """Numba kernels over buffers that are reused from rollout to rollout."""

    def __init__(self, game: Game, model: Model, algorithm: A3C):
        self.model = model
        self._environment = environment = game.config
        self.steps_at_once = min(
            environment.max_episode_steps, algorithm.steps_at_once or environment.max_episode_steps
        )
        self.buffers = kernels.new_buffers(self.steps_at_once)
        self.settings = _settings(environment, algorithm.settings)
        self.sample_times = False
        self.play_share = 0.5
        self._rollouts = 0
        self._sampled_s = np.zeros(2)  # playing, differentiating

    @classmethod
    def why_not(cls, game: Game, model: Model | None, algorithm: Algorithm) -> str | None:
        if type(algorithm) is not A3C:
            return "it computes the algorithm a3c only"
        if game.config.id != FLAPPY_BIRD or game.config.observation not in ("report", "pixels"):
            return f"it plays {FLAPPY_BIRD} with observation 'report' or 'pixels' only"
        if game.config.clip_rewards:
            return "it does not clip rewards"
        if model != DenseModel():
            return "it runs the model 'dense' with 8 inputs, 128 units and 2 actions only"
        return None

    def new_environment(self) -> CompiledFlappy:
        return CompiledFlappy(self._environment.seeding, self._environment.actions)

    def rollout(self, parameters: Vector, environment: CompiledFlappy, progress: float = 0.0) -> Rollout:
        gradient = np.empty_like(parameters)
        self._rollouts += 1
        sampled = self.sample_times and self._rollouts % _SAMPLED == 1
        play_and_differentiate = self._rollout_in_two if sampled else kernels.rollout
        steps, died, reward, loss, entropy = play_and_differentiate(
            parameters,
            environment.game,
            environment.stream,
            self._steps_left(environment),
            self.settings,
            self.buffers,
            gradient,
        )
        truncated = self._advance(environment, steps, died)
        score = float(environment.game["score"][0])
        return Rollout(loss, entropy, steps, reward, score, died, truncated, gradient)

    def _rollout_in_two(self, *arguments: Any) -> tuple[int, bool, float, float, float]:
        """Do what `kernels.rollout` does, and measure how its time divides."""
        *played, gradient = arguments
        settings, buffers = played[-2:]
        times = [time.perf_counter()]
        steps, died = kernels.play(*played)
        times.append(time.perf_counter())
        loss, entropy = kernels.differentiate(steps, died, settings, buffers, gradient)
        times.append(time.perf_counter())
        self._sampled_s += np.diff(times)
        self.play_share = float(self._sampled_s[0] / self._sampled_s.sum())
        return steps, died, float(buffers.rewards[:steps].sum(dtype=np.float64)), loss, entropy

    def play(self, parameters: Vector, environment: CompiledFlappy, progress: float = 0.0) -> Trajectory:
        buffers = self.buffers
        steps, died = kernels.play(
            parameters,
            environment.game,
            environment.stream,
            self._steps_left(environment),
            self.settings,
            buffers,
        )
        return Trajectory(
            observations=buffers.observations[:steps, : flappy.STATE_SIZE].copy(),
            actions=buffers.actions[:steps].copy(),
            rewards=buffers.rewards[:steps].copy(),
            values=buffers.values[:steps].copy(),
            bootstrap_value=float(buffers.values[steps]),
            terminated=died,
            truncated=self._advance(environment, steps, died),
        )

    def gradient(self, parameters: Vector, trajectory: Trajectory) -> tuple[Vector, float, float]:
        steps, gradient = trajectory.env_steps, np.empty_like(parameters)
        buffers = self.buffers if steps <= self.steps_at_once else kernels.new_buffers(steps)
        buffers.observations[:steps, : flappy.STATE_SIZE] = trajectory.observations
        buffers.actions[:steps] = trajectory.actions
        buffers.rewards[:steps] = trajectory.rewards
        kernels.evaluate(parameters, steps, buffers)
        buffers.values[steps] = trajectory.bootstrap_value
        loss, entropy = kernels.differentiate(steps, trajectory.terminated, self.settings, buffers, gradient)
        return gradient, loss, entropy

    def _steps_left(self, environment: CompiledFlappy) -> int:
        return min(self.steps_at_once, self._environment.max_episode_steps - int(environment.episode_steps[0]))

    def _advance(self, environment: CompiledFlappy, steps: int, died: bool) -> bool:
        """Count the steps; return whether the time limit ended the episode."""
        environment.episode_steps[0] += steps
        return not died and bool(environment.episode_steps[0] >= self._environment.max_episode_steps)


def _settings(environment: EnvironmentConfig, learner: A3CSettings) -> kernels.Settings:
    reward = flappy.REWARDS[environment.reward]
    return kernels.Settings(
        gamma=np.float32(learner.gamma),
        t_max=learner.t_max or 0,
        standardise=learner.standardise,
        stretched=learner.discounts == "stretched",
        pixels=environment.observation == "pixels",
        huber=learner.value_loss == "huber",
        value_coefficient=np.float32(learner.value_coefficient),
        entropy_coefficient=np.float32(learner.entropy_coefficient),
        reward_pipe=np.float32(reward.pipe),
        reward_death=np.float32(reward.death),
        reward_alive=np.float32(reward.alive),
    )
