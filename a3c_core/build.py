"""From a RunConfig to game, model, algorithm, engine and learner, and whether they fit each other."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from a3c_core import engines
from a3c_core.algorithms import ALGORITHMS, make_algorithm
from a3c_core.algorithms.base import Algorithm, HandsOver, TargetSettings, has_target, is_repeated
from a3c_core.algorithms.trajectories import TrajectoryAlgorithm
from a3c_core.config import RunConfig
from a3c_core.engines.base import Engine
from a3c_core.engines.packing import Packing
from a3c_core.games import make_game
from a3c_core.games.base import Game
from a3c_core.learners.base import Learner
from a3c_core.learners.ga3c_trainer import Trainer
from a3c_core.learners.gradients import GradientLearner
from a3c_core.learners.target import TargetLearner
from a3c_core.learners.trajectories import TrajectoryLearner
from a3c_core.models import make_model
from a3c_core.models.base import Model, memory_shape_of
from a3c_core.models.parameters import Vector
from a3c_core.optimizers import Optimizer
from a3c_core.topologies import TOPOLOGIES

_WORDS: dict[HandsOver, str] = {"gradient": "gradients", "trajectory": "trajectories", "experience": "experience"}


class Parts(NamedTuple):
    """What is played, what plays it, and how that learns."""

    game: Game
    model: Model
    algorithm: Algorithm


def parts_of(config: RunConfig) -> Parts:
    """Return the run's game, model and algorithm.

    Raises:
        ValueError: they do not fit each other; the message is `setting: reason`.
    """
    if (found := misfit(config)) is not None:
        raise ValueError(": ".join(found))
    game, algorithm = make_game(config.environment), make_algorithm(config.algorithm, config.learner)
    return Parts(game, _model(config, game, algorithm), algorithm)


def make_engine(config: RunConfig) -> Engine:
    """Return the run's engine, made for its game, model and algorithm.

    Raises:
        ValueError: the parts of the run do not fit each other.
    """
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


def new_learner(config: RunConfig) -> Learner:
    """Return the run's learner with its initial parameters.

    What the algorithm's workers hand over decides which learner it is: see `LEARNERS`.

    Raises:
        ValueError: the parts of the run do not fit each other.
    """
    asks = TOPOLOGIES.get(config.topology).has_predictors and not config.is_virtual
    handed_over = "play" if asks else ALGORITHMS.get(config.algorithm).hands_over
    return LEARNERS[handed_over](config)


def _gradient_learner(config: RunConfig) -> Learner:
    """Return a learner of gradients, with a target network if the algorithm has one."""
    _, model, algorithm = parts_of(config)
    parameters = model.initial_parameters(config.seed)
    optimizer = new_optimizer(config, parameters.size)
    if isinstance(config.learner, TargetSettings):
        explored = {"exploration": algorithm.exploration} if hasattr(algorithm, "exploration") else {}
        return TargetLearner(parameters, optimizer, config.learner.target_every, **explored)
    return GradientLearner(parameters, optimizer)


def _trajectory_learner(config: RunConfig) -> Learner:
    """Return a learner of trajectories, which computes by the run's engine."""
    game, model, algorithm = parts_of(config)
    assert isinstance(algorithm, TrajectoryAlgorithm)
    engine: Any = make_engine(config)
    packing = Packing(game.spaces)
    capacity = packing.capacity(config.agents_per_worker, algorithm.steps_at_once)
    parameters = model.initial_parameters(config.seed)
    optimizer = new_optimizer(config, parameters.size)
    return TrajectoryLearner(parameters, optimizer, algorithm, engine, packing, capacity, config.seed)


def _ga3c_trainer(config: RunConfig) -> Learner:
    """Return a learner of trajectories whose actions were chosen by predictors."""
    game, model, algorithm = parts_of(config)
    packing, parameters = Packing(game.spaces), model.initial_parameters(config.seed)
    steps = min(config.environment.max_episode_steps, algorithm.steps_at_once or config.environment.max_episode_steps)
    size, least = packing.capacity(1, steps), getattr(config.exchange, "train_min", 1)
    optimizer = new_optimizer(config, parameters.size)
    return Trainer(parameters, optimizer, make_engine(config), packing, size, least)


LEARNERS: dict[str, Callable[[RunConfig], Learner]] = {  # by what workers hand over
    "gradient": _gradient_learner,
    "experience": _gradient_learner,  # others turn experience into gradients first
    "trajectory": _trajectory_learner,
    "play": _ga3c_trainer,  # trajectories of agents that have no model
}


def new_optimizer(config: RunConfig, size: int) -> Optimizer:
    """Return the run's optimizer for `size` parameters."""
    learner = config.learner
    return Optimizer(
        size,
        learner.optimizer,
        learner.learning_rate,
        anneal=learner.anneal,
        clip_norm=learner.clip_norm,
        epsilon=learner.epsilon,
        decay=learner.decay,
    )


def warm_up(config: RunConfig, parameters: Vector) -> None:
    """Apply one update to a copy of the parameters, so that the first real update finds the optimizer compiled."""
    new_optimizer(config, parameters.size).apply(parameters.copy(), np.zeros_like(parameters))
