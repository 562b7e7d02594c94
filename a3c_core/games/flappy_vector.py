"""Thousands of Flappy Birds in one compiled call: `gymnasium.make_vec("a3c_core/FlappyBird-v0", num_envs=1000)`."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from a3c_core.games import flappy
from a3c_core.games.flappy_env import OBSERVATIONS
from a3c_core.games.options import MAX_EPISODE_STEPS, require_choice, require_positive
from a3c_core.streams import write_words
from a3c_core.system.jit import copy, exact

COMPILED_OBSERVATIONS = ("report", "raw")
_ONE_WORD = 1 << 32
_PLAYING, _OVER = 0, 1  # an episode that is over begins anew with the next step, whatever its action


@exact(allocates=True)
def _begin(game, seed, episode):
    entropy, words = np.zeros(6, np.uint32), np.empty((2, 4), np.uint64)
    entropy[0], entropy[5] = seed, episode  # of worker 0
    write_words(entropy, words)
    game.legacy = 0
    copy(words[0], game.stream)
    flappy.reset(game)


@exact
def _observe(game, scaled, out):
    if scaled:
        flappy.write_observation(game, out)
    else:
        flappy.write_state(game, out)


@exact
def _reset_all(games, seeds, episodes, steps, states, scaled, observations):
    for i in range(games.size):
        _begin(games[i], seeds[i], episodes[i])
        steps[i], states[i] = 0, _PLAYING
        _observe(games[i], scaled, observations[i])


@exact
def _step_all(games, actions, seeds, episodes, steps, states, limit, prices, scaled, observations, rewards, deaths):
    """Play a step of every game, or begin the next episode where the last is over; `prices`: pipe, death, alive."""
    for i in range(games.size):
        game = games[i]
        if states[i] == _OVER:
            episodes[i] += 1
            _begin(game, seeds[i], episodes[i])
            steps[i], states[i], rewards[i], deaths[i] = 0, _PLAYING, 0.0, False
        else:
            passed, died = flappy.step(game, actions[i] == 1)
            steps[i] += 1
            deaths[i], rewards[i] = died, prices[0] * passed + (prices[1] if died else prices[2])
            states[i] = _OVER if died or steps[i] >= limit else _PLAYING
        _observe(game, scaled, observations[i])


class FlappyBirdVectorEnv(gymnasium.vector.VectorEnv[NDArray[Any], NDArray[np.int64], NDArray[Any]]):
    """What `SyncVectorEnv` makes of as many FlappyBirdEnv, to the last bit: game i of `reset(seed=s)` has seed s + i.

    An episode that is over begins anew with the next step (Gymnasium's AutoresetMode.NEXT_STEP). `info` holds the
    arrays `score` and `steps`. Observations "report" and "raw" are compiled; "frames" is for single environments.
    """

    metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP}  # noqa: RUF012, as Gymnasium has it

    def __init__(
        self,
        num_envs: int = 1,
        observation: str = "report",
        reward: str = "ple",
        max_episode_steps: int = MAX_EPISODE_STEPS,
    ):
        require_choice("observation", observation, COMPILED_OBSERVATIONS)
        require_choice("reward", reward, flappy.REWARDS)
        self.num_envs = require_positive("num_envs", num_envs)
        self.single_observation_space = OBSERVATIONS[observation][0]
        self.single_action_space = gymnasium.spaces.Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._limit = require_positive("max_episode_steps", max_episode_steps)
        self._prices, self._scaled = flappy.REWARDS[reward], observation == "report"
        self._games = np.zeros(num_envs, flappy.GAME)
        self._seeds = np.zeros(num_envs, np.uint32)
        self._episodes, self._steps = np.full(num_envs, -1, np.int64), np.zeros(num_envs, np.int64)
        self._states = np.zeros(num_envs, np.uint8)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Begin an episode of every game: the first of seeds `seed`, `seed` + 1, …; without a seed, each its next."""
        if options:
            raise ValueError(f"no reset options are known, not {', '.join(options)}")
        if seed is not None or self._episodes[0] < 0:
            first = int(self.np_random.integers(_ONE_WORD - self.num_envs)) if seed is None else seed
            if not 0 <= first <= _ONE_WORD - self.num_envs:
                raise ValueError(f"seed must be at least 0 and below {_ONE_WORD - self.num_envs + 1}, not {seed}")
            self._seeds[:] = np.arange(first, first + self.num_envs)
            self._episodes[:] = -1
        self._episodes += 1
        observations = self._new_observations()
        _reset_all(self._games, self._seeds, self._episodes, self._steps, self._states, self._scaled, observations)
        return observations, self._info()

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Play one step of every game; actions [num_envs], 1 flaps."""
        if self._episodes[0] < 0:
            raise gymnasium.error.ResetNeeded("no episode has begun: call reset() before the next step()")
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,) or not ((actions == 0) | (actions == 1)).all():
            raise gymnasium.error.InvalidAction(f"actions must be {self.num_envs} times 0 (nothing) or 1 (flap)")
        observations, rewards = self._new_observations(), np.empty(self.num_envs)
        deaths = np.empty(self.num_envs, np.bool_)
        _step_all(
            self._games,
            actions,
            self._seeds,
            self._episodes,
            self._steps,
            self._states,
            self._limit,
            tuple(self._prices),
            self._scaled,
            observations,
            rewards,
            deaths,
        )
        truncations = (self._states == _OVER) & ~deaths
        return observations, rewards, deaths, truncations, self._info()

    def _new_observations(self) -> NDArray[Any]:
        return np.empty((self.num_envs, flappy.STATE_SIZE), self.single_observation_space.dtype)

    def _info(self) -> dict[str, Any]:
        return {"score": self._games["score"].copy(), "steps": self._steps.copy()}
