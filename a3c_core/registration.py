"""Our games under their ids in Gymnasium, which is imported by whoever plays them there, and by no other run.

This stands outside games/, because `import a3c_core` needs it and must not load NumPy.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from a3c_core.system.imports import load_within

_GYMNASIUM = "gymnasium"


def register_when_imported() -> None:
    """Register the games with Gymnasium: now, if it has been imported, or else as soon as it is.

    `import a3c_core` calls this, so that `gymnasium.make("a3c_core/FlappyBird-v0")` works after it.
    """
    if _GYMNASIUM in sys.modules:
        register(sys.modules[_GYMNASIUM])
    else:
        load_within(_GYMNASIUM, _then_registered)


@contextmanager
def _then_registered() -> Iterator[None]:
    yield
    register(sys.modules[_GYMNASIUM])


def register(gymnasium: Any) -> None:
    """Register the games; nothing of them is imported before one is made."""
    from a3c_core.games.base import FLAPPY_BIRD, PLE_GAMES
    from a3c_core.games.options import MAX_EPISODE_STEPS

    gymnasium.register(
        id=FLAPPY_BIRD,
        entry_point="a3c_core.games.flappy_env:FlappyBirdEnv",
        vector_entry_point="a3c_core.games.flappy_vector:FlappyBirdVectorEnv",
        max_episode_steps=MAX_EPISODE_STEPS,
    )
    for game in PLE_GAMES:
        gymnasium.register(id=f"ple/{game}-v0", entry_point="a3c_core.games.ple:PleEnv", kwargs={"game": game})
