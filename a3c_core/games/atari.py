"""Atari 2600 games: `ALE/Pong-v5` and all others of ale-py, as 84 x 84 grey frames (Mnih et al. 2015).

ale-py is an extra (`make setup-atari`), with the games inside. Frames are those of Gymnasium's AtariPreprocessing and
FrameStackObservation, which a test compares. Agents that share a worker play single games too: ale-py's native vector
environment shows the same frames, but can't save a game, which virtual time needs.
"""

import functools
import importlib
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from a3c_core.errors import near_miss, shown
from a3c_core.games.base import SETUP_ATARI, AtariSettings, EnvironmentConfig, Score, Spaces
from a3c_core.games.environment import GymEnvironment
from a3c_core.games.frames import SIDE, STACK
from a3c_core.streams import stream_words, uniform

PREFIX, VERSION = "ALE/", "-v5"
REPEAT = 4  # frames that an action is held for
CHANNELS = {"report": STACK, "frames": STACK, "frame": 1}  # by environment.observation; "report" is its default
GREY_UNIT = 128.0  # grey levels that a network sees as 1
UNDER_WAY = 60  # frames: a second, after which a game shows its field
_NOT_INSTALLED = f"it needs ale-py and OpenCV, which are not installed: `{SETUP_ATARI}` adds them"

# A random policy scores -20.7, 1.7 and 148 (Mnih et al. 2015, extended data table 2).
SCORES = {
    "Pong": Score("score", "points", learned_above=-19.0, marks=(-10.0, 0.0, 10.0, 15.0, 20.0), whole=True),
    "Breakout": Score("score", "points", learned_above=4.0, marks=(5.0, 10.0, 30.0, 100.0, 300.0), whole=True),
    "SpaceInvaders": Score("score", "points", learned_above=250.0, marks=(300.0, 500.0, 1000.0), whole=True),
}


class AtariEnv:
    """One game in an emulator of its own. A life that is lost ends an episode where lives are the unit.

    Actions are made sticky here: ale-py's own way of it keeps the last action where no state can reach it.
    """

    def __init__(self, name: str, settings: AtariSettings, channels: int, max_episode_steps: int):
        ale_py, self._cv2 = import_ale()
        self._ale_py, self._settings = ale_py, settings
        self._max_episode_steps = max_episode_steps
        self.ale: Any = ale_py.ALEInterface()
        self.ale.setFloat("repeat_action_probability", 0.0)
        self.ale.loadROM(rom_of(name))  # a fifth of a second, so that episodes begin from this state instead
        self.ale.reset_game()
        self._start, self._first_screen = self.ale.cloneState(include_rng=True), self.ale.getScreenGrayscale()
        self.actions: list[Any] = self.ale.getMinimalActionSet()
        self._screen: NDArray[np.uint8] = np.zeros_like(self._first_screen)
        self._before: NDArray[np.uint8] = np.zeros_like(self._screen)  # one frame before that
        self._stack: NDArray[np.uint8] = np.zeros((SIDE, SIDE, channels), np.uint8)
        self._chance: NDArray[np.uint64] = np.zeros(4, np.uint64)  # the stream that sticky actions are drawn from
        self._steps, self._score, self._held = 0, 0, 0  # the last is the action that the stick was left at

    def begin(self, seed: int) -> NDArray[np.uint8]:
        """Begin the episode that belongs to `seed`, or go on with the next life; return its first observation."""
        if self._settings.unit == "life" and self._steps and not self.ale.game_over():
            self._wait(1)
        else:
            self._begin_game(seed)
        self._steps, self._score = 0, 0
        self._before[:] = 0
        self._stack[:] = self._frame()[:, :, None]
        return self._stack.copy()

    def step(self, action: int) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        reward, terminated = self._hold(action)
        self._steps, self._score = self._steps + 1, self._score + reward
        self._stack[:, :, :-1] = self._stack[:, :, 1:]
        self._stack[:, :, -1] = self._frame()
        truncated = not terminated and self._steps >= self._max_episode_steps
        return self._stack.copy(), float(reward), terminated, truncated, {"score": self._score}

    def render(self) -> NDArray[np.uint8]:
        """Return the screen, uint8 [210, 160, 3]."""
        return self.ale.getScreenRGB()

    def get_state(self) -> bytes:
        """Return the emulator, the newest screen, the frames, the stream and the counters."""
        counters = np.array([self._steps, self._score, self._held], np.int64)
        ours = b"".join(part.tobytes() for part in (counters, self._chance, self._screen, self._stack))
        return ours + self.ale.cloneState(include_rng=True).serialize()

    def set_state(self, state: bytes) -> None:
        counters = np.zeros(3, np.int64)
        start = 0
        for part in (counters, self._chance, self._screen, self._stack):
            part[...] = np.frombuffer(state, part.dtype, part.size, start).reshape(part.shape)
            start += part.nbytes
        self._steps, self._score, self._held = counters.tolist()
        self.ale.restoreState(self._ale_py.ALEState(state[start:]))

    def _begin_game(self, seed: int) -> None:
        """Begin with as many idle frames as Gymnasium has after `reset(seed=seed)`."""
        self.ale.restoreState(self._start)
        self._screen[:] = self._first_screen  # which a restored emulator draws no more
        self._chance[:], self._held = stream_words(seed)[0], 0
        if most := self._settings.noops:
            generator = np.random.default_rng(int(np.random.SeedSequence(seed).generate_state(2)[0]))
            self._wait(int(generator.integers(1, most + 1)))

    def _wait(self, frames: int) -> None:
        for _ in range(frames):
            self.ale.act(self.actions[0])
        self.ale.getScreenGrayscale(self._screen)

    def _hold(self, action: int) -> tuple[int, bool]:
        """Hold `action` for some frames, or until the episode ends; return (reward, whether it has)."""
        reward, lives = 0, self.ale.lives()
        self._before[:] = 0
        for frame in range(REPEAT):
            reward += self.ale.act(self.actions[self._stuck(action)])
            if self.ale.game_over() or (self._settings.unit == "life" and self.ale.lives() < lives):
                return reward, True
            if frame == REPEAT - 2:
                self.ale.getScreenGrayscale(self._before)
            elif frame == REPEAT - 1:
                self.ale.getScreenGrayscale(self._screen)
        return reward, False

    def _stuck(self, action: int) -> int:
        """Return the action of the next frame: the last one again by chance, where actions are sticky."""
        sticky = self._settings.sticky
        if not sticky or uniform(self._chance) >= sticky:
            self._held = action
        return self._held

    def _frame(self) -> NDArray[np.uint8]:
        """Return uint8 [84, 84]: the last two screens' maximum, since sprites are drawn in every second one."""
        np.maximum(self._screen, self._before, out=self._screen)
        return self._cv2.resize(self._screen, (SIDE, SIDE), interpolation=self._cv2.INTER_AREA)


class AtariGame:
    """A game of ale-py to learn, by its id."""

    def __init__(self, config: EnvironmentConfig):
        self.config = config
        self._name = config.id.removeprefix(PREFIX).removesuffix(VERSION)

    def why_not(self) -> str | None:
        if self.config.observation not in CHANNELS:
            return f"environment.observation must be frames or frame with {self.config.id}"
        if self.config.reward != "ple" or self.config.seeding != "episode":
            return f"environment.reward and seeding are of Flappy Bird: leave them out with {self.config.id}"
        try:
            self.spaces  # noqa: B018  asking starts the emulator once
        except (gymnasium.error.DependencyNotInstalled, ValueError) as error:
            return str(error)
        return None

    def why_not_saved(self) -> None:
        return None

    @property
    def spaces(self) -> Spaces:
        channels, (actions, background) = CHANNELS[self.config.observation], _actions_and_background(self.config.id)
        return Spaces((SIDE, SIDE, channels), "uint8", actions, (background, GREY_UNIT))

    @property
    def score(self) -> Score:
        return SCORES.get(self._name, Score("score", whole=True))

    def new_environment(self, render_mode: str | None = None) -> GymEnvironment:
        return GymEnvironment(self, render_mode)

    def make(self, render_mode: str | None) -> AtariEnv:
        channels = CHANNELS[self.config.observation]
        return AtariEnv(self.config.id, self.config.atari, channels, self.config.max_episode_steps)

    def reset(self, env: AtariEnv, words: NDArray[np.uint64]) -> NDArray[Any]:
        return env.begin(int(words[0] >> np.uint64(33)))


@functools.cache
def import_ale() -> tuple[Any, Any]:
    """Return the modules `ale_py` and `cv2`, told to be quiet and to use one thread."""
    try:
        ale_py, cv2 = importlib.import_module("ale_py"), importlib.import_module("cv2")
    except ImportError:
        raise gymnasium.error.DependencyNotInstalled(_NOT_INSTALLED) from None
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    cv2.setNumThreads(1)
    return ale_py, cv2


def rom_of(environment_id: str) -> Any:
    """Return the path of the game called `ALE/Name-v5`; raise ValueError if ale-py has none of that name."""
    roms = importlib.import_module("ale_py.roms")
    ids = {f"{PREFIX}{rom.title().replace('_', '')}{VERSION}": rom for rom in roms.get_all_rom_ids()}
    if environment_id not in ids:
        meant = near_miss(environment_id, ids)
        hint = f"; did you mean {meant}?" if meant else f"; their names are like {PREFIX}Pong{VERSION}"
        raise ValueError(f"ale-py has no game {shown(environment_id)}{hint}")
    return roms.get_rom_path(ids[environment_id])


@functools.cache
def _actions_and_background(environment_id: str) -> tuple[int, float]:
    """Return how many actions a game has, and the grey level that most of its screen shows.

    A network sees that level as 0. Pong's is 87: seen as a third of white, it is nearly all that reaches a ReLU unit,
    and most of them die of it before they have noticed the ball.
    """
    ale: Any = import_ale()[0].ALEInterface()
    ale.loadROM(rom_of(environment_id))
    ale.reset_game()
    actions = ale.getMinimalActionSet()
    for _ in range(UNDER_WAY):
        ale.act(actions[0])
    return len(actions), float(np.bincount(ale.getScreenGrayscale().ravel()).argmax())
