"""The engines by name; one is imported only when asked for, and TensorFlow only when one that needs it is made."""

from typing import Any

from a3c_core.algorithms.base import Algorithm
from a3c_core.engines.base import Engine
from a3c_core.games.base import Game
from a3c_core.machine.tf import allow_onednn
from a3c_core.models.base import Model, memory_shape_of
from a3c_core.registry import Registry, load

ENGINES = Registry(
    "engine",
    {
        "compiled": "a3c_core.engines.compiled:CompiledEngine",
        "tensorflow": "a3c_core.engines.tensorflow:TensorFlowEngine",
        "report": "a3c_core.engines.report:ReportEngine",
    },
)
FOR_PLAY = {  # engines that are another class where workers hand over what they play: (engine, what they hand over)
    ("compiled", "trajectory"): "a3c_core.engines.compiled_trajectories:CompiledTrajectories",
    ("compiled", "experience"): "a3c_core.engines.compiled_replay:CompiledReplay",
}
FOR_MEMORY = {"tensorflow": "a3c_core.engines.recurrent:RecurrentEngine"}  # and where the network remembers


def why_not(name: str, game: Game, model: Model | None, algorithm: Algorithm) -> str | None:
    """Return what keeps the engine called `name` from computing these parts, or None if nothing does."""
    reason = _class_of(name, model, algorithm).why_not(game, model, algorithm)
    return None if reason is None else f"{name} can't run this: {reason}"


def build_engine(name: str, game: Game, model: Model, algorithm: Algorithm) -> Engine:
    """Return the engine called `name`, or say why it can't compute these parts."""
    reason = why_not(name, game, model, algorithm)
    if reason is not None:
        raise ValueError(reason)
    if model.onednn:
        allow_onednn()
    engine: Engine = _class_of(name, model, algorithm)(game, model, algorithm)
    return engine


def _class_of(name: str, model: Model | None, algorithm: Algorithm) -> Any:
    """Return the engine's class for a model and an algorithm."""
    if memory_shape_of(model) is not None and name in FOR_MEMORY:
        return load(FOR_MEMORY[name])
    row = FOR_PLAY.get((name, algorithm.hands_over))
    return ENGINES.get(name) if row is None else load(row)
