"""The parts that a run is made of, and whether they fit each other: asked once, before anything runs."""

from typing import NamedTuple

from a3c_core import engines
from a3c_core.algorithms import ALGORITHMS, make_algorithm
from a3c_core.algorithms.base import Algorithm, HandsOver, has_target, is_repeated
from a3c_core.config import RunConfig
from a3c_core.engines.base import Engine
from a3c_core.games import make_game
from a3c_core.games.base import Game
from a3c_core.models import make_model
from a3c_core.models.base import Model, memory_shape_of
from a3c_core.topologies import TOPOLOGIES

_WORDS: dict[HandsOver, str] = {"gradient": "gradients", "trajectory": "trajectories", "experience": "experience"}


class Parts(NamedTuple):
    """What is played, what plays it, and how that learns."""

    game: Game
    model: Model
    algorithm: Algorithm


def parts_of(config: RunConfig) -> Parts:
    """Return the run's parts, or raise ValueError with the reason why they can't make a run."""
    if (found := misfit(config)) is not None:
        raise ValueError(": ".join(found))
    game, algorithm = make_game(config.environment), make_algorithm(config.algorithm, config.learner)
    return Parts(game, _model(config, game, algorithm), algorithm)


def make_engine(config: RunConfig) -> Engine:
    """Return the run's engine with its parts inside."""
    return engines.build_engine(config.engine, *parts_of(config))


def misfit(config: RunConfig) -> tuple[str, str] | None:
    """Return the first thing that keeps the parts of a run from working together, as (setting, reason), or None."""
    try:
        game = make_game(config.environment)
    except ValueError as error:
        return "environment.id", str(error)
    algorithm = make_algorithm(config.algorithm, config.learner)
    if reason := game.why_not():
        limit = engines.why_not(config.engine, game, None, algorithm)
        said = f"{config.engine} can't run this" if limit is None else f"{limit}; no engine can"
        return "environment.id", f"{said}: {reason}"
    try:
        model = _model(config, game, algorithm)
    except ValueError as error:
        return "model", str(error)
    if reason := model.why_not():
        return "model", reason
    if game.spaces.are_pictures and algorithm.steps_at_once is None:
        return "learner", "an episode of frames is too large to hold: set learner.update_every: t_max"
    if memory_shape_of(model) is not None and not _learns_in_order(algorithm):
        return "model", f"{config.model} remembers, which {config.algorithm} can't learn from: algorithm: a3c can"
    if limit := engines.why_not(config.engine, game, model, algorithm):
        return "engine", f"{limit}; tensorflow runs everything"
    topology = TOPOLOGIES.get(config.topology)
    if algorithm.hands_over not in topology.takes:
        return "topology", _not_taken(config, algorithm.hands_over, topology.takes)
    if memory_shape_of(model) is not None and topology.has_predictors:
        return "model", f"{config.model} remembers, which predictors of {config.topology} can't for their agents"
    if algorithm.hands_over == "trajectory" and (found := _unfit_for_trajectories(config)):
        return found
    if found := topology.why_not(config):
        return found
    if config.runtime == "simulate" and (reason := game.why_not_saved()):
        return "environment.id", f"virtual time needs games that can be saved: {reason}"
    return None


def _learns_in_order(algorithm: Algorithm) -> bool:
    """Return whether steps are learned from once and in the order of play, as networks that remember need them."""
    return algorithm.hands_over == "gradient" and not has_target(algorithm) and not is_repeated(algorithm)


def _not_taken(config: RunConfig, handed_over: HandsOver, taken: tuple[HandsOver, ...]) -> str:
    """Say what an algorithm's workers hand over that the topology does not take, and which parts would do."""
    takers = [name for name in TOPOLOGIES.names() if handed_over in TOPOLOGIES.get(name).takes]
    givers = [name for name in ALGORITHMS.names() if ALGORITHMS.get(name).hands_over in taken]
    given, wanted = _WORDS[handed_over], " or ".join(_WORDS[one] for one in taken)
    hands = f"algorithm {config.algorithm} hands over {given}, which topology: {' or '.join(takers) or 'none'} takes"
    return f"{hands}; {config.topology} takes {wanted}, of algorithm: {' or '.join(givers)}"


def _unfit_for_trajectories(config: RunConfig) -> tuple[str, str] | None:
    """Return the first setting of the exchange, with the reason, that means something for gradients only."""
    learns = f"{config.algorithm} learns from trajectories"
    exchange = config.gradients
    if exchange.batch > 1:
        return "exchange.batch", f"{learns}, of which its learner makes batches: set learner.batch_steps"
    if exchange.rate != "constant":
        return "exchange.rate", f"{learns}, and only a gradient has a rate of its own: rate: constant"
    if exchange.compensation:
        return "exchange.compensation", f"{learns}, and only gradients can be corrected: compensation: 0"
    if exchange.makes_workers_wait:
        return "exchange.beyond", f"{learns}, which wait for their batch: beyond: drop, or pull: after_apply"
    return None


def _model(config: RunConfig, game: Game, algorithm: Algorithm) -> Model:
    return make_model(config.model, config.network, game.spaces, algorithm.heads(game.spaces.actions))
