"""The engines by name; one is imported only when asked for, and TensorFlow only when one that needs it is made."""

from typing import Any

from a3c_core.algorithms.base import Algorithm
from a3c_core.engines.base import Engine
from a3c_core.games.base import Game
from a3c_core.machine.tf import allow_onednn
from a3c_core.models.base import Model
from a3c_core.registry import Registry, load

ENGINES = Registry(
    "engine",
    {
        "compiled": "a3c_core.engines.compiled:CompiledEngine",
        "tensorflow": "a3c_core.engines.tensorflow:TensorFlowEngine",
        "report": "a3c_core.engines.report:ReportEngine",
    },
)
FOR_TRAJECTORIES = {  # engines that are another class where workers hand over trajectories
    "compiled": "a3c_core.engines.compiled_trajectories:CompiledTrajectories",
}


def why_not(name: str, game: Game, model: Model | None, algorithm: Algorithm) -> str | None:
    """Return what keeps the engine called `name` from computing these parts, or None if nothing does."""
    reason = _class_of(name, algorithm).why_not(game, model, algorithm)
    return None if reason is None else f"{name} can't run this: {reason}"


def build_engine(name: str, game: Game, model: Model, algorithm: Algorithm) -> Engine:
    """Return the engine called `name`, or say why it can't compute these parts."""
    reason = why_not(name, game, model, algorithm)
    if reason is not None:
        raise ValueError(reason)
    if model.onednn:
        allow_onednn()
    engine: Engine = _class_of(name, algorithm)(game, model, algorithm)
    return engine


def _class_of(name: str, algorithm: Algorithm) -> Any:
    """Return the engine's class for an algorithm."""
    if algorithm.hands_over == "trajectory" and name in FOR_TRAJECTORIES:
        return load(FOR_TRAJECTORIES[name])
    return ENGINES.get(name)
