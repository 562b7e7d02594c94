"""One worker's Gymnasium environment, played step by step in Python."""

from typing import Any, Protocol

import gymnasium
import numpy as np
from numpy.typing import NDArray

from a3c_core.games.base import EnvironmentConfig, Score, Spaces
from a3c_core.streams import shared_actions, stream_words, uniform


class GymnasiumBased(Protocol):
    """What this environment needs of its game."""

    config: EnvironmentConfig

    @property
    def spaces(self) -> Spaces: ...

    @property
    def score(self) -> Score: ...

    def make(self, render_mode: str | None) -> Any:
        """Return a Gymnasium environment whose info has a score, and that has `get_state` and `set_state`."""
        ...

    def reset(self, env: Any, words: NDArray[np.uint64]) -> NDArray[Any]:
        """Begin the episode that belongs to `words`, uint64 [4]; return its first observation."""
        ...


class GymEnvironment:
    """The environment, its action stream, and the observation that it is to act on next."""

    def __init__(self, game: GymnasiumBased, render_mode: str | None = None):
        self._game = game
        self.env: Any = game.make(render_mode)
        self.stream: NDArray[np.uint64] = np.zeros(4, np.uint64)
        self.observation: NDArray[Any] = np.empty(0)
        self.score: float = 0
        self.chosen = -1

    def begin_episode(self, seed: int, worker: int, episode: int) -> None:
        words, actions = stream_words(seed, worker, episode)
        if self._game.config.actions == "own":
            self.stream[:] = actions
        elif not self.stream.any():  # its first episode
            self.stream[:] = shared_actions(seed)
        self.observation = self._game.reset(self.env, words)
        self.score, self.chosen = 0, -1

    def step(self, action: int) -> tuple[float, bool, bool]:
        """Play `action`; return (reward, terminated, truncated)."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.observation = self._shown(observation)
        self.score = info.get("score", self.score)
        if self._game.config.clip_rewards:
            reward = min(max(float(reward), -1.0), 1.0)
        return float(reward), terminated, truncated

    def _shown(self, observation: NDArray[Any]) -> NDArray[Any]:
        """Return the observation, or by chance nothing in its place (Hausknecht & Stone 2015): memory must help out."""
        flicker = self._game.config.flicker
        if not flicker or uniform(self.stream) >= flicker:
            return observation
        spaces = self._game.spaces
        nothing = spaces.scaling[0] if spaces.are_pictures else 0.0  # what a network sees as 0
        return np.full_like(observation, nothing)

    def get_state(self) -> NDArray[np.uint8]:
        game = np.frombuffer(self.env.get_state(), np.uint8)
        ours = np.array((self.stream, self.score, self.observation), self._state_dtype())
        return np.concatenate([np.frombuffer(ours.tobytes(), np.uint8), game])

    def set_state(self, state: NDArray[np.uint8]) -> None:
        dtype = self._state_dtype()
        self.env.set_state(state[dtype.itemsize :].tobytes())
        ours = state[: dtype.itemsize].view(dtype)[0]
        self.stream[:], self.score, self.observation = ours["stream"], ours["score"].item(), ours["observation"].copy()

    def _state_dtype(self) -> np.dtype[Any]:
        spaces = self._game.spaces
        score = "i8" if self._game.score.whole else "f8"
        observation = ("observation", spaces.observation_dtype, spaces.observation_shape)
        return np.dtype([("stream", "u8", 4), ("score", score), observation])


class Replayed(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Any environment that is seeded at every reset: its state is that seed and the actions since, played again.

    So nothing that is read from a disk is ever run, whatever an environment keeps inside. The score is the episode's
    return, unless the environment gives one of its own.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]):
        super().__init__(env)
        self._seed, self._actions, self._return = 0, [], 0.0  # type: int, list[int], float

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        assert seed is not None, "an episode without a seed can't be played again"
        self._seed, self._actions, self._return = seed, [], 0.0
        observation, info = super().reset(seed=seed, options=options)
        return observation, {"score": 0.0, **info}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._actions.append(action)
        observation, reward, terminated, truncated, info = super().step(action)
        self._return += float(reward)
        return observation, float(reward), bool(terminated), bool(truncated), {"score": self._return, **info}

    def get_state(self) -> bytes:
        """Return the episode's seed and its actions."""
        return np.array([self._seed, *self._actions], np.int64).tobytes()

    def set_state(self, state: bytes) -> None:
        """Play the episode again up to where it was."""
        seed, *actions = np.frombuffer(state, np.int64).tolist()
        self.reset(seed=seed)
        for action in actions:
            self.step(action)
