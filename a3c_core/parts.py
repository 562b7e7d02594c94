"""The parts that a run is made of, and whether they fit each other: asked once, before anything runs."""

from collections.abc import Iterator
from typing import NamedTuple

from a3c_core import engines
from a3c_core.algorithms import make_algorithm
from a3c_core.algorithms.base import Algorithm
from a3c_core.config import RunConfig
from a3c_core.engines.base import Engine
from a3c_core.games import make_game
from a3c_core.games.base import Game
from a3c_core.models import make_model
from a3c_core.models.base import Model


class Parts(NamedTuple):
    """What is played, what plays it, and how that learns."""

    game: Game
    model: Model
    algorithm: Algorithm


def parts_of(config: RunConfig) -> Parts:
    """Return the run's parts, or raise ValueError with the first reason why they can't make a run."""
    for setting, reason in misfits(config):
        raise ValueError(f"{setting}: {reason}")
    game, algorithm = make_game(config.environment), make_algorithm(config.algorithm, config.learner)
    return Parts(game, _model(config, game, algorithm), algorithm)


def make_engine(config: RunConfig) -> Engine:
    """Return the run's engine with its parts inside."""
    return engines.build_engine(config.engine, *parts_of(config))


def misfits(config: RunConfig) -> Iterator[tuple[str, str]]:
    """Yield what keeps the parts of a run from working together, as (setting, reason)."""
    try:
        game = make_game(config.environment)
    except ValueError as error:
        yield "environment.id", str(error)
        return
    algorithm, model = make_algorithm(config.algorithm, config.learner), None
    if reason := game.why_not():
        yield "environment.id", reason
    else:
        model = _model(config, game, algorithm)
        yield from _misfits_of_game(config, game, model, algorithm)
    if reason := engines.why_not(config.engine, game, model, algorithm):
        yield "engine", reason


def _misfits_of_game(config: RunConfig, game: Game, model: Model, algorithm: Algorithm) -> Iterator[tuple[str, str]]:
    if reason := model.why_not():
        yield "model", reason
    elif game.spaces.are_pictures and algorithm.steps_at_once is None:
        yield "learner", "an episode of frames is too large to hold: set learner.update_every: t_max"
    if config.runtime == "simulate" and (reason := game.why_not_saved()):
        yield "environment.id", f"virtual time needs games that can be saved: {reason}"


def _model(config: RunConfig, game: Game, algorithm: Algorithm) -> Model:
    return make_model(config.model, config.network, game.spaces, algorithm.heads(game.spaces.actions))
