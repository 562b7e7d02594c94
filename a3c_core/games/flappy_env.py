"""Flappy Bird as a Gymnasium environment: `gymnasium.make("a3c_core/FlappyBird-v0")` after `import a3c_core`."""

import copy
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from a3c_core.games import flappy, frames, published
from a3c_core.games.options import FLAPPY_ACTIONS, MAX_EPISODE_STEPS, read_action, require_choice, require_positive
from a3c_core.streams import stream_words
from a3c_core.system.jit import exact

SEEDINGS = tuple(published.RESETS)
RENDER_MODES = ("rgb_array", "human")
METADATA: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 30}
_FLAPS: dict[Any, bool] = {0: False, 1: True}  # looking the usual actions up is the fastest check


# These take GAME [1] instead of its record: Numba needs three times as long to recognise a record at every call.
@exact
def _advance_report(games, flap, latest):
    passed, died = flappy.step(games[0], flap)
    flappy.write_observation(games[0], latest)
    return passed, bool(died), games[0].score


@exact
def _advance_pixels(games, flap, latest):
    passed, died = flappy.step(games[0], flap)
    published.write_pixels(games[0], latest)
    return passed, bool(died), games[0].score


@exact
def _advance_raw(games, flap, latest):
    passed, died = flappy.step(games[0], flap)
    flappy.write_state(games[0], latest)
    return passed, bool(died), games[0].score


@exact
def _advance_frames(games, flap, latest):
    passed, died = flappy.step(games[0], flap)
    frames.push_frame(games[0], latest)
    return passed, bool(died), games[0].score


@exact
def _advance_frame(games, flap, latest):
    passed, died = flappy.step(games[0], flap)
    frames.draw_frame(games[0], latest[:, :, 0])
    return passed, bool(died), games[0].score


@exact
def _write_frame(game, latest):
    frames.draw_frame(game, latest[:, :, 0])


# name: (space, what writes an episode's first observation, what plays a step and writes the next)
OBSERVATIONS: dict[str, tuple[gymnasium.spaces.Box, Any, Any]] = {
    "report": (gymnasium.spaces.Box(-2.0, 2.0, (8,), np.float32), flappy.write_observation, _advance_report),
    "pixels": (gymnasium.spaces.Box(-512.0, 512.0, (8,), np.float32), published.write_pixels, _advance_pixels),
    "raw": (gymnasium.spaces.Box(-512.0, 512.0, (8,), np.float64), flappy.write_state, _advance_raw),
    "frames": (gymnasium.spaces.Box(0, 255, (84, 84, frames.STACK), np.uint8), frames.fill_stack, _advance_frames),
    "frame": (gymnasium.spaces.Box(0, 255, (84, 84, 1), np.uint8), _write_frame, _advance_frame),
}


class FlappyBirdEnv(gymnasium.Env[NDArray[Any], np.int64]):
    """Flappy Bird by PLE's exact rules. Actions: 0 does nothing, 1 flaps.

    observation: "report", float32 [8], gaps relative to the bird and all scaled to about [-1, 1];
        "pixels", float32 [8], the same without scaling, as in the report's published code;
        "raw", float64 [8], PLE's game state as it is (see `flappy.write_state`);
        "frames", uint8 [84, 84, 4], the last four pictures in grey, oldest first;
        "frame", uint8 [84, 84, 1], the last one alone.
    reward: "ple" pays +1 for a pipe and -5 for death; "alive" pays +1 for a step survived and -1000 for death.
    max_episode_steps: an episode that lives this long is truncated, and `info["truncated_by"]` says so. Note that
        `gymnasium.make` keeps an argument of this name for its own TimeLimit wrapper, which can only shorten episodes
        further; for longer ones, build this class directly.
    seeding: with "episode" every episode has an independent stream: `reset(seed=s)` plays that of (s, worker 0,
        episode 0), the next `reset()` that of episode 1, and so on; `reset(options={"words": words})` plays any stream,
        uint64 [4], as `streams.stream_words(seed, worker, episode)[0]` gives it. With "ple", `reset(seed=s)` does what
        building `PLE(FlappyBird(), rng=s)` and `reset_game()` do, and every further `reset()` continues that one
        stream; without any seed it is PLE's own, 24. "recreated" is the same with the published code's extra resets.
    render_mode: "rgb_array" makes `render()` return a picture, uint8 [512, 288, 3]; "human" opens a window.

    `info["score"]` counts the pipes passed in this episode, `info["steps"]` the steps.
    """

    metadata = METADATA

    def __init__(
        self,
        observation: str = "report",
        reward: str = "ple",
        max_episode_steps: int = MAX_EPISODE_STEPS,
        seeding: str = "episode",
        render_mode: str | None = None,
    ):
        require_choice("observation", observation, OBSERVATIONS)
        require_choice("reward", reward, flappy.REWARDS)
        require_choice("seeding", seeding, SEEDINGS)
        require_choice("render_mode", render_mode, (None, *RENDER_MODES))
        space, self._write_first, self._advance = OBSERVATIONS[observation]
        self.observation_space = copy.deepcopy(space)  # spaces hold a generator, which environments must not share
        self.action_space = gymnasium.spaces.Discrete(2)
        self.render_mode = render_mode
        self._seeding, self._kind = seeding, f"{observation}/{seeding}"
        self._reward = flappy.REWARDS[reward]
        self._max_episode_steps = require_positive("max_episode_steps", max_episode_steps)
        self._game = flappy.new_game()
        self._latest: NDArray[Any] = np.zeros_like(space.low)
        self._seed, self._episodes, self._steps, self._playing = 0, 0, 0, False
        self._window: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        super().reset(seed=seed)
        words = self._read_options(seed, options or {})
        if words is not None:
            flappy.seed_episode(self._game, words)
        elif self._seeding == "episode":
            self._seed_next_episode(seed)
        elif seed is not None or self._episodes == 0:
            published.seed_before_first(self._game, self._seeding, flappy.PLE_SEED if seed is None else seed)
        self._episodes += words is None
        for _ in range(published.RESETS[self._seeding]):
            flappy.reset(self._game[0])
        self._write_first(self._game[0], self._latest)
        self._steps, self._playing = 0, True
        if self.render_mode == "human":
            self.render()
        return self._latest.copy(), {"score": 0, "steps": 0}

    def step(self, action: Any) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        if not self._playing:
            raise gymnasium.error.ResetNeeded(f"{self._why_not_playing()}: call reset() before the next step()")
        try:
            flap = _FLAPS[action]
        except (KeyError, TypeError):
            flap = bool(read_action(action, FLAPPY_ACTIONS))
        passed, died, score = self._advance(self._game, flap, self._latest)
        self._steps += 1
        info = {"score": score, "steps": self._steps}
        truncated = not died and self._steps >= self._max_episode_steps
        if truncated:
            info["truncated_by"] = f"max_episode_steps={self._max_episode_steps}"
        self._playing = not (died or truncated)
        reward = self._reward.pipe * passed + (self._reward.death if died else self._reward.alive)
        if self.render_mode == "human":
            self.render()
        return self._latest.copy(), reward, died, truncated, info

    def render(self) -> NDArray[np.uint8] | None:
        """Return the picture, uint8 [512, 288, 3], or show it in the window."""
        if self.render_mode is None:
            gymnasium.logger.warn('nothing to render: make the environment with render_mode="rgb_array" or "human"')
            return None
        if not self._playing and not self._steps:
            raise gymnasium.error.ResetNeeded("no episode has begun: call reset() before render()")
        from a3c_core.games import render  # pygame, which only those who look need to load

        picture = render.draw(self._game[0], self._steps)
        if self.render_mode == "rgb_array":
            return picture
        self._window = self._window or render.Window()
        self._window.show(picture)
        return None

    def close(self) -> None:
        if self._window is not None:
            self._window.close()
            self._window = None

    def get_state(self) -> bytes:
        """Return all that decides how this environment goes on, for a checkpoint."""
        counters = self._seed, self._episodes, self._steps, self._playing
        state = np.zeros(
            (), self._state_dtype()
        )  # zeros: the same state is the same bytes, those between fields included
        state[()] = (self._kind, *counters, self._game[0], self._latest)
        return state.tobytes()

    def set_state(self, state: bytes) -> None:
        """Go on exactly where the environment that gave `state` was; its observation and seeding must be the same."""
        dtype = self._state_dtype()
        if len(state) != dtype.itemsize or np.frombuffer(state, dtype)["kind"][0] != self._kind.encode():
            raise ValueError(f"this state was not saved by an environment with {self._kind} (observation, seeding)")
        saved = np.frombuffer(state, dtype)[0]
        self._seed, self._episodes = int(saved["seed"]), int(saved["episodes"])
        self._steps, self._playing = int(saved["steps"]), bool(saved["playing"])
        self._game[0] = saved["game"]
        self._latest[...] = saved["latest"]

    def _state_dtype(self) -> np.dtype[Any]:
        counters = [("seed", "u8"), ("episodes", "i8"), ("steps", "i8"), ("playing", "?")]
        latest = ("latest", self._latest.dtype, self._latest.shape)
        return np.dtype([("kind", "S16"), *counters, ("game", flappy.GAME), latest])

    def _read_options(self, seed: int | None, options: dict[str, Any]) -> NDArray[np.uint64] | None:
        for name in options:
            require_choice("reset option", name, ("words",))
        if "words" not in options:
            return None
        if seed is not None or self._seeding != "episode":
            raise ValueError('options={"words": ...} need seeding="episode" and no seed beside them')
        words = np.asarray(options["words"])
        if words.dtype != np.uint64 or words.shape != (4,) or not words.any():
            raise ValueError(f"words must be uint64 [4], not all zero (see streams.stream_words), not {words!r}")
        return words

    def _seed_next_episode(self, seed: int | None) -> None:
        """Seed the game for (seed, worker 0, next episode); the seed is drawn if none was ever given."""
        if seed is not None:
            self._seed, self._episodes = int(np.uint64(seed)), 0
        elif self._episodes == 0:
            self._seed = int(self.np_random.integers(2**63))
        flappy.seed_episode(self._game, stream_words(self._seed, 0, self._episodes)[0])

    def _why_not_playing(self) -> str:
        if self._game["over"][0]:
            return "the bird is dead"
        return f"the episode was truncated after {self._steps} steps" if self._steps else "no episode has begun"
