"""The `compiled` engine: the dense model on Flappy Bird, play and gradient without Python in between.

`ARITHMETIC` says which kernels compute which algorithm.
"""

import functools
import itertools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from a3c_core.algorithms import ALGORITHMS
from a3c_core.algorithms.a3c import A3C
from a3c_core.algorithms.base import Algorithm, Trajectory
from a3c_core.algorithms.dqn import DQN
from a3c_core.algorithms.n_step_q import NStepQ
from a3c_core.algorithms.q import Q
from a3c_core.algorithms.sarsa import Sarsa
from a3c_core.algorithms.values import ValueAlgorithm
from a3c_core.engines import actor_critic_kernels, value_kernels
from a3c_core.engines.actor_critic_kernels import buffers_in, new_memory
from a3c_core.engines.base import NOT_CHOSEN, OneAfterAnother, Rollout
from a3c_core.games import flappy
from a3c_core.games import published as published_game
from a3c_core.games.base import FLAPPY_BIRD, EnvironmentConfig, Game
from a3c_core.games.options import FLAPPY_ACTIONS
from a3c_core.models.base import Model
from a3c_core.models.dense import DenseModel
from a3c_core.models.parameters import Vector
from a3c_core.progress import START, Progress
from a3c_core.streams import ONE_WORD, shared_actions, stream_words, write_words
from a3c_core.system.jit import direct, exact


class Arithmetic(NamedTuple):
    """The kernels of one algorithm and the scalars that they take."""

    # a module with `new_buffers`, `rollout`, `play`, `evaluate`, `differentiate`, and `judge` where there is a target
    kernels: Any
    settings: Callable[[EnvironmentConfig, Any], Any]


def _rewards(environment: EnvironmentConfig) -> dict[str, np.float32]:
    reward = flappy.REWARDS[environment.reward]
    each = {f"reward_{name}": np.float32(getattr(reward, name)) for name in ("pipe", "death", "alive")}
    return {**each, "reward_limit": np.float32(1.0 if environment.clip_rewards else np.inf)}


def _a3c(environment: EnvironmentConfig, algorithm: A3C) -> actor_critic_kernels.Settings:
    learner = algorithm.settings
    return actor_critic_kernels.Settings(
        gamma=np.float32(learner.gamma),
        t_max=learner.t_max or 0,
        standardise=learner.standardise,
        stretched=learner.discounts == "stretched",
        pixels=environment.observation == "pixels",
        huber=learner.value_loss == "huber",
        value_coefficient=np.float32(learner.value_coefficient),
        entropy_coefficient=np.float32(learner.entropy_coefficient),
        **_rewards(environment),
    )


def _values(environment: EnvironmentConfig, algorithm: ValueAlgorithm) -> value_kernels.Settings:
    return value_kernels.Settings(
        gamma=np.float32(algorithm.settings.gamma),
        one_step=algorithm.one_step,
        follows=hasattr(algorithm, "value_of"),
        pixels=environment.observation == "pixels",
        **_rewards(environment),
    )


ARITHMETIC: dict[type, Arithmetic] = {
    A3C: Arithmetic(actor_critic_kernels, _a3c),
    **dict.fromkeys((Q, Sarsa, NStepQ, DQN), Arithmetic(value_kernels, _values)),
}


_SAMPLED = 64  # one in so many rollouts is measured
_FLOAT32 = np.dtype(np.float32)  # NumPy takes a while to find it by the type


class CompiledFlappy:
    """One worker's game, its action stream and how far the episode has come."""

    def __init__(self, seeding: str = "episode", actions: str = "own"):
        self.game = flappy.new_game()
        self.stream: NDArray[np.uint64] = np.zeros(4, np.uint64)
        self.episode_steps: NDArray[np.int64] = np.zeros(1, np.int64)
        self.chosen = NOT_CHOSEN
        self._is_new = True  # no episode has begun
        self._streams = _new_streams()
        self._begin = _compiled_begin()
        # whether it has streams of its own, for the game and for actions, and how often the game is reset
        self.ways = seeding == "episode", actions == "own", published_game.RESETS[seeding]
        if seeding != "episode":
            published_game.seed_before_first(self.game, seeding)

    def begin_episode(self, seed: int, worker: int, episode: int) -> None:
        if self._is_new:
            self.stream[:] = shared_actions(seed)
            self._is_new = False
        if seed | worker | episode < ONE_WORD:
            own_stream, own_actions, resets = self.ways
            entropy, words = self._streams
            begin = self._begin
            begin(self.game, self.stream, entropy, words, seed, worker, episode, own_stream, own_actions, resets)
        else:
            flappy.begin_episode(self.game[0], self.stream, stream_words(seed, worker, episode), *self.ways)
        self.episode_steps[0] = 0
        self.chosen = NOT_CHOSEN

    def get_state(self) -> NDArray[np.uint8]:
        return np.concatenate([part.view(np.uint8) for part in (self.game, self.stream, self.episode_steps)])

    def set_state(self, state: NDArray[np.uint8]) -> None:
        self._is_new = False
        start = 0
        for part in (self.game, self.stream, self.episode_steps):
            part.view(np.uint8)[:] = state[start : start + part.nbytes]
            start += part.nbytes


@exact
def _begin(games, stream, entropy, words, seed, worker, episode, own_stream, own_actions, resets):
    """Start an episode with streams of its own: one call, since a short episode takes hardly longer."""
    entropy[0], entropy[4], entropy[5] = seed, worker, episode
    write_words(entropy, words)
    flappy.begin_episode(games[0], stream, words, own_stream, own_actions, resets)


def _new_streams() -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """Return what an episode's streams are made of, and where they are put."""
    return np.zeros(6, np.uint32), np.empty((2, 4), np.uint64)


@functools.cache
def _compiled_begin() -> Callable[..., None]:
    return direct(_begin, flappy.new_game(), np.zeros(4, np.uint64), *_new_streams(), 0, 0, 0, True, True, 1)


class CompiledEngine(OneAfterAnother):
    """Numba kernels over buffers that are reused from rollout to rollout."""

    def __init__(self, game: Game, model: Model, algorithm: Any):
        self.model = model
        self._size = model.spec.size
        self._environment = environment = game.config
        self.steps_at_once = min(
            environment.max_episode_steps, algorithm.steps_at_once or environment.max_episode_steps
        )
        arithmetic = ARITHMETIC[type(algorithm)]
        self._kernels = arithmetic.kernels
        self.settings = arithmetic.settings(environment, algorithm)
        self._handed: tuple[NDArray[np.void], Vector] | None = None  # settings and working memory in two arrays
        if self._kernels is actor_critic_kernels:
            memory = new_memory(self.steps_at_once)
            lengths = self.steps_at_once, environment.max_episode_steps
            self._handed = np.array([(*self.settings, *lengths)], actor_critic_kernels.HANDED), memory
            self.buffers: Any = buffers_in(memory, self.steps_at_once)
        else:
            self.buffers = self._kernels.new_buffers(self.steps_at_once)
        self._epsilon = getattr(algorithm, "epsilon", None)  # of those that explore at random
        self.sample_times = False
        self.play_share = 0.5
        self._turns = itertools.cycle(range(_SAMPLED))
        self._sampled_s = np.zeros(2)  # playing, differentiating

    @classmethod
    def why_not(cls, game: Game, model: Model | None, algorithm: Algorithm) -> str | None:
        if type(algorithm) not in ARITHMETIC:
            known = ", ".join(name for name in ALGORITHMS.names() if ALGORITHMS.get(name) in ARITHMETIC)
            return f"it computes the algorithms {known} only"
        if game.config.id != FLAPPY_BIRD or game.config.observation not in ("report", "pixels"):
            return f"it plays {FLAPPY_BIRD} with observation 'report' or 'pixels' only"
        if game.config.flicker:
            return "its game does not flicker"
        if model != DenseModel(heads=algorithm.heads(len(FLAPPY_ACTIONS))):
            return "it runs the model 'dense' with 8 inputs, 128 units and 2 actions only"
        return None

    def new_environment(self) -> CompiledFlappy:
        return CompiledFlappy(self._environment.seeding, self._environment.actions)

    def rollout(self, published: Vector, environment: CompiledFlappy, progress: Progress = START) -> Rollout:
        sampled = self.sample_times and next(self._turns) == 0
        if sampled or self._handed is None:
            return self._rollout_by_parts(published, environment, progress, sampled)
        settings, memory = self._handed
        gradient = np.empty(self._size, _FLOAT32)
        steps, died, truncated, score, reward, loss, entropy = self._rollout_on(
            published, environment.game, environment.stream, environment.episode_steps, settings, memory, gradient
        )
        return Rollout(loss, entropy, steps, reward, score, died, truncated, gradient)

    @functools.cached_property
    def _rollout_on(self) -> Callable[..., Any]:
        environment, parameters = self.new_environment(), np.empty(self._size, _FLOAT32)
        game, stream, episode_steps = environment.game, environment.stream, environment.episode_steps
        assert self._handed is not None
        return direct(
            actor_critic_kernels.rollout_on, parameters, game, stream, episode_steps, *self._handed, parameters
        )

    def _rollout_by_parts(
        self, published: Vector, environment: CompiledFlappy, progress: Progress, sampled: bool
    ) -> Rollout:
        gradient = np.empty(self._size, np.float32)
        play_and_differentiate = self._rollout_in_two if sampled else self._kernels.rollout
        self._prepare(environment, progress)
        steps, died, reward, loss, entropy = play_and_differentiate(
            published,
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
        """Do what the kernels' `rollout` does, and measure how its time divides."""
        *played, gradient = arguments
        settings, buffers = played[-2:]
        times = [time.perf_counter()]
        steps, died = self._kernels.play(*played)
        times.append(time.perf_counter())
        loss, entropy = self._kernels.differentiate(steps, died, settings, buffers, gradient)
        times.append(time.perf_counter())
        self._sampled_s += np.diff(times)
        self.play_share = float(self._sampled_s[0] / self._sampled_s.sum())
        return steps, died, float(buffers.rewards[:steps].sum(dtype=np.float64)), loss, entropy

    def play(self, published: Vector, environment: CompiledFlappy, progress: Progress = START) -> Trajectory:
        buffers, settings = self.buffers, self.settings
        self._prepare(environment, progress)
        steps_left = self._steps_left(environment)
        steps, died = self._kernels.play(published, environment.game, environment.stream, steps_left, settings, buffers)
        if published.size > self._size:
            self._kernels.judge(published, 0, steps, died, settings, buffers)  # those, too, that no return needs
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
        steps, gradient, kernels = trajectory.env_steps, np.empty_like(parameters), self._kernels
        buffers = self.buffers if steps <= self.steps_at_once else kernels.new_buffers(steps)
        buffers.observations[:steps, : flappy.STATE_SIZE] = trajectory.observations
        buffers.actions[:steps] = trajectory.actions
        buffers.rewards[:steps] = trajectory.rewards
        buffers.values[:steps] = trajectory.values  # a target network's; its own are evaluated again
        kernels.evaluate(parameters, steps, buffers)
        buffers.values[steps] = trajectory.bootstrap_value
        loss, entropy = kernels.differentiate(steps, trajectory.terminated, self.settings, buffers, gradient)
        return gradient, loss, entropy

    def _prepare(self, environment: CompiledFlappy, progress: Progress) -> None:
        """Tell the kernels how to explore, and which action was chosen already."""
        if self._epsilon is not None:
            self.buffers.epsilon[0] = self._epsilon(progress)
            self.buffers.chosen[0] = environment.chosen

    def _steps_left(self, environment: CompiledFlappy) -> int:
        return min(self.steps_at_once, self._environment.max_episode_steps - int(environment.episode_steps[0]))

    def _advance(self, environment: CompiledFlappy, steps: int, died: bool) -> bool:
        """Count the steps; return whether the time limit ended the episode."""
        environment.episode_steps[0] += steps
        truncated = not died and bool(environment.episode_steps[0] >= self._environment.max_episode_steps)
        if self._epsilon is not None:
            environment.chosen = NOT_CHOSEN if truncated else int(self.buffers.chosen[0])
        return truncated
