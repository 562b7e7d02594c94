"""Our Flappy Bird as a game to learn. Engines that play it in compiled code need nothing of Gymnasium."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from a3c_core.games.base import EnvironmentConfig, Score, Spaces, why_not_atari
from a3c_core.games.options import FLAPPY_ACTIONS

if TYPE_CHECKING:
    from a3c_core.games.environment import GymEnvironment
    from a3c_core.games.flappy_env import FlappyBirdEnv

OBSERVED: dict[str, tuple[tuple[int, ...], str]] = {  # shape and type, as the environment's spaces have them
    "report": ((8,), "float32"),
    "pixels": ((8,), "float32"),
    "raw": ((8,), "float64"),
    "frames": ((84, 84, 4), "uint8"),
    "frame": ((84, 84, 1), "uint8"),
}


class FlappyGame:
    """Each episode has the stream of its (seed, worker, episode)."""

    score = Score("pipes passed", "pipes", learned_above=1.0, marks=(1.0, 5.0, 10.0, 20.0, 50.0, 100.0), whole=True)

    def __init__(self, config: EnvironmentConfig):
        self.config = config

    def why_not(self) -> str | None:
        return why_not_atari(self.config)

    def why_not_saved(self) -> None:
        return None

    @property
    def spaces(self) -> Spaces:
        return Spaces(*OBSERVED[self.config.observation], len(FLAPPY_ACTIONS))

    def new_environment(self, render_mode: str | None = None) -> "GymEnvironment":
        from a3c_core.games.environment import GymEnvironment

        return GymEnvironment(self, render_mode)

    def make(self, render_mode: str | None) -> "FlappyBirdEnv":
        from a3c_core.games.flappy_env import FlappyBirdEnv

        config = self.config
        return FlappyBirdEnv(config.observation, config.reward, config.max_episode_steps, config.seeding, render_mode)

    def reset(self, env: Any, words: NDArray[np.uint64]) -> NDArray[Any]:
        one_stream = self.config.seeding != "episode"
        return env.reset()[0] if one_stream else env.reset(options={"words": words})[0]
