"""The real PLE (ntasfi/PyGame-Learning-Environment) behind the same interface: `gymnasium.make("ple/FlappyBird-v0")`.

PLE is no dependency: it is looked for when an environment is made, and `make setup-ple` brings it. It plays on pygame's
one display, so an environment that looks at pictures (`frames`, `render`) should be the only one in its process.
"""

import contextlib
import copy
import functools
import importlib
import io
import os
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from a3c_core.games import flappy, frames
from a3c_core.games.base import PLE_GAMES, EnvironmentConfig, Score, Spaces, why_not_atari
from a3c_core.games.environment import GymEnvironment, Replayed
from a3c_core.games.flappy_env import METADATA, OBSERVATIONS, RENDER_MODES
from a3c_core.games.flappy_game import FlappyGame
from a3c_core.games.options import MAX_EPISODE_STEPS, read_action, require_choice, require_positive

# Parts of a state that vary in length: (items kept of each list, numbers per item). Missing items read ABSENT.
LISTS = {"snake_body": (32, 1), "snake_body_pos": (32, 2), "creep_dist": (3, 1), "creep_pos": (3, 2)}
ABSENT = -1.0
PICTURES = ("frames", "frame")  # among observations
FRAMES_PER_SECOND = 30
INSTALL = "`make setup-ple` (or `make setup-ple PLE=/path/to/a/checkout`)"


class PleEnv(gymnasium.Env[NDArray[Any], np.int64]):
    """A game of PLE. Action 0 does nothing; the others press the keys named in `action_names`: 1 flaps.

    game: one of those that have a state: Catcher, FlappyBird, Pixelcopter, Pong, PuckWorld, Snake, WaterWorld.
    observation: "raw", float64 [n], PLE's game state in PLE's order, with lists filled up by -1 to a fixed length;
        "frames", uint8 [84, 84, 4], PLE's own screen in grey, oldest first (black at first: PLE draws only in a step);
        "frame", uint8 [84, 84, 1], the newest of them alone;
        "report", float32 [8], for FlappyBird alone and its default, and "pixels", as in `a3c_core/FlappyBird-v0`.
    reward: "ple" pays what PLE pays; "alive" pays +1 for a step survived and -1000 for the end of the game.
    max_episode_steps, render_mode: as in `a3c_core/FlappyBird-v0`; only "human" needs a screen.

    `reset(seed=s)` builds the game anew with `RandomState(s)`; `reset()` goes on with its stream, which is PLE's 24 if
    no seed was given. `info["score"]` counts the pipes passed in FlappyBird, and is PLE's own score in other games.
    """

    metadata = METADATA

    def __init__(
        self,
        game: str = "FlappyBird",
        observation: str | None = None,
        reward: str = "ple",
        max_episode_steps: int = MAX_EPISODE_STEPS,
        render_mode: str | None = None,
    ):
        is_flappy = game == "FlappyBird"
        observation = observation or ("report" if is_flappy else "raw")
        require_choice("game", game, PLE_GAMES)
        require_choice("observation", observation, OBSERVATIONS if is_flappy else ("raw", *PICTURES))
        require_choice("reward", reward, flappy.REWARDS)
        require_choice("render_mode", render_mode, (None, *RENDER_MODES))
        self._max_episode_steps = require_positive("max_episode_steps", max_episode_steps)
        self._game_name, self._observation, self.render_mode = game, observation, render_mode
        self._alive = flappy.REWARDS["alive"] if reward == "alive" else None
        self._package = import_ple(headless=render_mode != "human")
        self._build(flappy.PLE_SEED)

        self.action_names = ("nothing", *self._ple.game.actions)
        self._keys = (None, *self._ple.game.actions.values())
        self.action_space = gymnasium.spaces.Discrete(len(self._keys))
        self.observation_space = self._measure_space()
        self._stack = np.zeros_like(OBSERVATIONS["frame" if observation == "frame" else "frames"][0].low)
        self._score: float = 0
        self._steps, self._playing = 0, False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self._build(seed)
        self._ple.reset_game()
        self._ple.game.screen.fill((0, 0, 0))
        self._stack[:] = 0
        self._steps, self._score, self._playing = 0, 0, True
        return self._observe(), {"score": self._score, "steps": 0}

    def step(self, action: Any) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        if not self._playing:
            raise gymnasium.error.ResetNeeded("no game is running: call reset() before the next step()")
        reward = float(self._ple.act(self._keys[read_action(action, self.action_names)]))
        terminated = bool(self._ple.game_over())
        self._steps += 1
        self._score = self._next_score(reward, terminated)
        info: dict[str, Any] = {"score": self._score, "steps": self._steps}
        truncated = not terminated and self._steps >= self._max_episode_steps
        if truncated:
            info["truncated_by"] = f"max_episode_steps={self._max_episode_steps}"
        self._playing = not (terminated or truncated)
        if self._alive is not None:
            reward = self._alive.death if terminated else self._alive.alive
        if self.render_mode == "human":
            self.render()
        return self._observe(), reward, terminated, truncated, info

    def render(self) -> NDArray[np.uint8] | None:
        """Return PLE's screen, uint8 [height, width, 3]; PLE fills a window by itself, so there only wait a frame."""
        if self.render_mode == "human":
            self._ple.game.clock.tick(FRAMES_PER_SECOND)
            return None
        return np.ascontiguousarray(self._ple.getScreenRGB().swapaxes(0, 1))

    def _build(self, seed: int) -> None:
        game = make_game(self._package, self._game_name)
        self._ple = self._package.PLE(game, display_screen=self.render_mode == "human", rng=LegacyRandom(seed))

    def _measure_space(self) -> gymnasium.spaces.Box:
        if self._game_name == "FlappyBird" or self._observation in PICTURES:
            return copy.deepcopy(OBSERVATIONS[self._observation][0])
        return gymnasium.spaces.Box(-np.inf, np.inf, flatten(self._ple.getGameState()).shape, np.float64)

    def _next_score(self, reward: float, terminated: bool) -> float:
        if self._game_name != "FlappyBird":
            return float(self._ple.score())
        pay = flappy.REWARDS["ple"]
        return self._score + round((reward - (pay.death if terminated else 0.0)) / pay.pipe)

    def _observe(self) -> NDArray[Any]:
        if self._observation in PICTURES:
            self._stack[..., :-1] = self._stack[..., 1:]
            self._stack[..., -1] = frames.shrink(self._ple.getScreenRGB().swapaxes(0, 1))
            return self._stack.copy()
        state = flatten(self._ple.getGameState())
        return state if self._observation == "raw" else AS_OBSERVED[self._observation](state)


def import_ple(headless: bool = True) -> Any:
    """Return the package `ple`, with its games; if `headless`, pygame shall do without a screen."""
    os.environ["PYGAME_HIDE_SUPPORT_PROMPT"] = "1"
    if headless:
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
        os.environ.setdefault("SDL_AUDIODRIVER", "dummy")  # the games are silent, but PLE starts all of pygame
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # PLE prints as it loads
            importlib.import_module("ple.games")
            return importlib.import_module("ple")
    except ImportError as error:
        raise gymnasium.error.DependencyNotInstalled(
            f"this environment plays the real PLE, and the package `ple` can't be imported ({error}). No package index"
            f' has it; {INSTALL} installs it. Or play "a3c_core/FlappyBird-v0", which needs nothing and follows the'
            " same rules to the last bit."
        ) from None


def make_game(package: Any, name: str) -> Any:
    """Return a new game of PLE; say how to mend a PLE that was installed without its pictures."""
    try:
        return getattr(package.games, name)()
    except FileNotFoundError as error:
        raise gymnasium.error.DependencyNotInstalled(
            f"the installed PLE lacks its pictures, which a plain `pip install` of it leaves out ({error}); {INSTALL}"
            " installs it with them"
        ) from None


def flatten(state: dict[str, Any]) -> NDArray[np.float64]:
    """Return a PLE game state as float64 [n], in the order of its entries; n is the same throughout a game."""
    numbers: list[float] = []
    for name, value in state.items():
        if name not in LISTS:
            numbers.append(float(value))
            continue
        items, width = LISTS[name]
        for entries in value.values() if isinstance(value, dict) else [value]:
            padded = np.full((items, width), ABSENT)
            padded[: len(entries)] = np.reshape(entries[:items], (-1, width))
            numbers.extend(padded.ravel())
    return np.array(numbers)


def as_report(state: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return PLE's Flappy Bird state, float64 [8], as the report's observation, float32 [8]."""
    scales = (flappy.HEIGHT, flappy.MAX_FALL_SPEED, *(flappy.WIDTH, flappy.HEIGHT, flappy.HEIGHT) * 2)
    return (_relative(state) / scales).astype(np.float32)


def as_pixels(state: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return PLE's Flappy Bird state, float64 [8], as the published code sees it, float32 [8]."""
    return _relative(state).astype(np.float32)


def _relative(state: NDArray[np.float64]) -> NDArray[np.float64]:
    relative = state.copy()
    relative[[3, 4, 6, 7]] -= state[0]
    return relative


AS_OBSERVED = {"report": as_report, "pixels": as_pixels}


class LegacyRandom(np.random.RandomState):
    """NumPy's legacy generator with a method that PLE calls and NumPy deprecated; the draws are the same."""

    def random_integers(self, low: int, high: int) -> int:  # type: ignore[override]
        return self.randint(low, high + 1)


class PleGame:
    """A game of PLE to learn. With `seeding: episode` it is built anew for each episode, from that episode's seed."""

    def __init__(self, config: EnvironmentConfig):
        self.config = config
        self._name = gymnasium.spec(config.id).kwargs["game"]

    def why_not(self) -> str | None:
        if reason := why_not_atari(self.config):
            return reason
        if self.config.seeding in ("recreated", "resets_4"):
            return f"seeding: {self.config.seeding} is for a3c_core/FlappyBird-v0; this game has ple and episode"
        try:
            self.spaces  # noqa: B018  asking builds the game once
        except (gymnasium.error.DependencyNotInstalled, ValueError) as error:
            return str(error)
        return None

    def why_not_saved(self) -> str | None:
        if self.config.seeding == "ple":
            return f"{self.config.id} with seeding: ple goes on with one stream for ever, which can't be saved"
        return None

    @functools.cached_property
    def spaces(self) -> Spaces:
        env = self.make(None)
        space = env.observation_space
        return Spaces(space.shape, str(space.dtype), int(env.action_space.n))

    @property
    def score(self) -> Score:
        return FlappyGame.score if self._name == "FlappyBird" else Score("score")

    def new_environment(self, render_mode: str | None = None) -> GymEnvironment:
        return GymEnvironment(self, render_mode)

    def make(self, render_mode: str | None) -> Any:
        config = self.config
        env = PleEnv(self._name, config.observation, config.reward, config.max_episode_steps, render_mode)
        return env if config.seeding == "ple" else Replayed(env)

    def reset(self, env: Any, words: NDArray[np.uint64]) -> NDArray[Any]:
        one_stream = self.config.seeding == "ple"
        return env.reset()[0] if one_stream else env.reset(seed=int(words[0] >> np.uint64(33)))[0]
