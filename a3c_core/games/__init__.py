"""The games by name; nothing of them is imported before one is made.

A game is added by writing a class with the members of `base.Game` and naming it in GAMES. Any other id is taken for
Gymnasium's.
"""

from a3c_core.games.base import FLAPPY_BIRD, PLE_GAMES, EnvironmentConfig, Game, Score
from a3c_core.registry import Registry, is_reference

GAMES = Registry(
    "game",
    {
        FLAPPY_BIRD: "a3c_core.games.flappy_game:FlappyGame",
        "ALE/*": "a3c_core.games.atari:AtariGame",
        **{f"ple/{game}-v0": "a3c_core.games.ple:PleGame" for game in PLE_GAMES},
    },
    otherwise="a3c_core.games.gymnasium_game:GymnasiumGame",
)


def make_game(config: EnvironmentConfig) -> Game:
    """Return the game that the settings name. It is not checked whether it can be played: ask its `why_not`.

    Raises:
        ValueError: the id names a module that can't be imported.

    Example:
        >>> make_game(EnvironmentConfig(id="CartPole-v1")).new_environment()  # doctest: +SKIP
    """
    game: Game = GAMES.get(config.id)(config)
    return game


def _is_gymnasiums(name: str) -> bool:
    import gymnasium

    return name in gymnasium.registry


def score_of(environment_id: str) -> Score:
    """Return what counts as score in a game: for who reads results. Never fails, and imports no module of others.

    What another package's game says of its score is known here only once its module has been imported.
    """
    name = environment_id.rpartition(":")[2]
    if is_reference(environment_id) or (name not in GAMES and not _is_gymnasiums(name)):
        return Score()
    try:
        return make_game(EnvironmentConfig(id=name)).score
    except Exception:  # such as a game whose packages are not installed here
        return Score()
