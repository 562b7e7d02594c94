"""What a game is: its settings, its spaces, what counts as score, and one worker's play of it. It knows no learning."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from a3c_core.section import Section

FLAPPY_SKY = (173.0, 64.0)  # centred on the sky, a small bird stands out of zero, which grey levels would hide
FLAPPY_BIRD = "a3c_core/FlappyBird-v0"
SETUP_ATARI = "make setup-atari"  # what adds Atari's games
PLE_GAMES = ("Catcher", "FlappyBird", "Pixelcopter", "Pong", "PuckWorld", "Snake", "WaterWorld")  # those with a state


class AtariSettings(Section):
    """What only Atari's games have."""

    unit: Literal["episode", "life"] = Field("episode", description="what is played and recorded as one episode")
    noops: int = Field(30, ge=0, le=1_000, description="a game begins after 1 to so many idle frames; 0: at once")
    sticky: float = Field(0.0, ge=0, lt=1, description="chance that a frame repeats the last action instead")


class EnvironmentConfig(Section):
    """The game."""

    id: str = Field(FLAPPY_BIRD, description="any Gymnasium environment with discrete actions; own ones: module:Id-v0")
    observation: Literal["report", "pixels", "raw", "frames", "frame"] = Field(
        "report",
        description="of Flappy Bird and PLE's games; pixels: as in the published code, not scaled; frame: one picture",
    )
    reward: Literal["ple", "alive"] = Field("ple", description="of Flappy Bird and PLE's games")
    clip_rewards: bool = Field(False, description="what is learned from is at most 1 and at least -1; not the score")
    flicker: float = Field(0.0, ge=0, lt=1, description="chance that an observation after the first shows nothing")
    max_episode_steps: int = Field(20_000, ge=1, le=1_000_000, description="env steps after which it is truncated")
    seeding: Literal["episode", "ple", "recreated", "resets_4"] = Field(
        "episode",
        description="own stream per episode, or PLE's shared one; recreated: reset twice before each episode, as"
        " published; resets_4: four times, as its loop of December 2020 does",
    )
    actions: Literal["own", "shared"] = Field(
        "own", description="own stream per episode, or one that every worker begins with and goes on with (published)"
    )
    wait_s: float = Field(0.0, ge=0, le=3600, description="seconds that the game waits per env step, using no core")
    atari: AtariSettings = AtariSettings()


def why_not_atari(config: EnvironmentConfig) -> str | None:
    """Return what another game has against settings of Atari's games, or None if they were left out."""
    if config.atari == AtariSettings():
        return None
    return f"environment.atari is for games called ALE/...: leave it out with {config.id}"


class Score(NamedTuple):
    """What a game counts, and what the numbers mean."""

    name: str = "return"
    unit: str = "points"
    learned_above: float | None = None  # a mean score below this at the end is no learning at all; None: not known
    marks: tuple[float, ...] = ()  # scores whose first time is worth telling, rising
    whole: bool = False  # whether scores are always whole numbers


class Spaces(NamedTuple):
    """What a game shows, and how many actions it takes."""

    observation_shape: tuple[int, ...]
    observation_dtype: str  # as NumPy calls it
    actions: int
    scaling: tuple[float, float] = FLAPPY_SKY  # of pictures: the grey level that becomes 0, and how many make 1

    @property
    def are_pictures(self) -> bool:
        """Whether observations are [height, width, channels]."""
        return len(self.observation_shape) == 3


class Environment(Protocol):
    """One worker's game in play, with the random stream that its actions are drawn from.

    All randomness of an episode follows from (seed, worker, episode). So a worker can be killed, restarted or moved to
    another machine, and plays the same episode again.

    Example:
        >>> environment.begin_episode(seed=0, worker=3, episode=12)  # doctest: +SKIP
        >>> reward, terminated, truncated = environment.step(action)  # doctest: +SKIP
    """

    stream: NDArray[np.uint64]  # [4], of actions
    observation: NDArray[Any]  # what to act on next
    score: float  # in this episode so far
    chosen: int  # the action that was already chosen for the next step, or -1

    def begin_episode(self, seed: int, worker: int, episode: int) -> None:
        """Begin an episode.

        Args:
            seed: of the run.
            worker: number of the worker.
            episode: the worker's own count of its episodes.
        """
        ...

    def step(self, action: int) -> tuple[float, bool, bool]:
        """Play one step.

        Returns:
            (reward, whether the game ended, whether the time limit cut the episode off).
        """
        ...

    def get_state(self) -> NDArray[np.uint8]:
        """Return everything that the rest of the episode depends on, as bytes for a checkpoint."""
        ...

    def set_state(self, state: NDArray[np.uint8]) -> None:
        """Go on from what `get_state` returned, perhaps of another environment of the same game."""
        ...


Policy = Callable[[Environment], int]  # the action that it takes next


class Game(Protocol):
    """A game with its settings. Inherit from nothing: a class with these members is a game.

    It is made by calling its class with an EnvironmentConfig. That must be cheap, because it happens before it is known
    whether the game can be played. Most games need no class: any Gymnasium environment with discrete actions works by
    its id.

    Example:
        `environment: {id: my_module:MyGame}` in a grid plays the class `MyGame` of my_module.py.
    """

    config: EnvironmentConfig

    def why_not(self) -> str | None:
        """Return what keeps this game from being played with these settings, or None if nothing does."""
        ...

    def why_not_saved(self) -> str | None:
        """Return why an episode can't be saved and go on elsewhere, which virtual time needs, or None if it can."""
        ...

    @property
    def spaces(self) -> Spaces:
        """Shape and type of observations, and the number of actions."""
        ...

    @property
    def score(self) -> Score:
        """What counts as score, its unit, and above what it counts as learned."""
        ...

    def new_environment(self, render_mode: str | None = None) -> Any:
        """Return one worker's Environment.

        Args:
            render_mode: as in Gymnasium; None: nothing is drawn.
        """
        ...
