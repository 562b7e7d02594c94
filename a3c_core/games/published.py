"""What the report's published environment does around PLE's Flappy Bird: what it shows, and how often it resets."""

import numpy as np
from numpy.typing import NDArray

from a3c_core.games import flappy
from a3c_core.system.jit import exact

# Resets before each episode. The published code builds a new PLE around the same game, which resets it, and then calls
# `reset_game()`: so every second start is never played. PLE keeps the random stream that the game has.
# The training loop of December 2020 did that before and after every episode.
RESETS = {"episode": 1, "ple": 1, "recreated": 2, "resets_4": 4}


def seed_before_first(game: NDArray[np.void], seeding: str, seed: int = flappy.PLE_SEED) -> None:
    """Give `game` PLE's stream and what is drawn from it before a worker's first reset, as `seeding` has it."""
    flappy.seed_like_ple(game, seed)
    if seeding in ("recreated", "resets_4"):
        flappy.reset(game[0])  # the published environment is reset once when it is made


@exact
def write_pixels(game, out):
    """Write the published code's observation [8]: PLE's game state with gaps relative to the bird, all in pixels."""
    y = game.bird_y
    out[0] = y
    out[1] = game.bird_speed
    first, second = flappy.nearest_pipes(game)
    for k, i in enumerate((first, second)):
        out[2 + 3 * k] = game.pipe_x[i] + flappy.PIPE_WIDTH / 2 - flappy.BIRD_X
        out[3 + 3 * k] = game.pipe_gap[i] - y
        out[4 + 3 * k] = game.pipe_gap[i] + flappy.PIPE_GAP - y
