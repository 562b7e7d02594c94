"""The engines by name; one is imported only when asked for, and TensorFlow only when one that needs it is made."""

from typing import Any

from a3c_core.algorithms.base import Algorithm, is_repeated
from a3c_core.engines.base import Engine, Purpose, purpose_of
from a3c_core.games.base import Game
from a3c_core.models.base import Model
from a3c_core.registry import Registry, load
from a3c_core.system.tensorflow import allow_onednn

COMPUTES: dict[str, dict[Purpose, str]] = {  # the class of each engine, by what it computes for
    "compiled": {
        "gradient": "a3c_core.engines.compiled:CompiledEngine",
        "trajectory": "a3c_core.engines.compiled_trajectories:CompiledTrajectories",
        "experience": "a3c_core.engines.compiled_replay:CompiledReplay",
    },
    "tensorflow": {
        "gradient": "a3c_core.engines.tensorflow:TensorFlowEngine",
        "memory": "a3c_core.engines.recurrent:RecurrentEngine",
    },
    "report": {"gradient": "a3c_core.engines.report:ReportEngine"},
}
_REPEATING = "a3c_core.engines.repeating:Repeating"  # around any that serves learners of trajectories
ENGINES = Registry("engine", {name: rows["gradient"] for name, rows in COMPUTES.items()}, needs=["why_not"])


def why_not(name: str, game: Game, model: Model | None, algorithm: Algorithm) -> str | None:
    """Return what keeps the engine called `name` from computing these parts, or None if nothing does."""
    computed = _computed(algorithm)
    engine = _class_of(name, model, computed)
    reason = engine.why_not(game, model, computed)
    if computed is not algorithm and not hasattr(engine, "batch_gradient"):
        reason = "it can't differentiate again what was played before"
    return None if reason is None else f"{name} can't run this: {reason}"


def build_engine(name: str, game: Game, model: Model, algorithm: Algorithm) -> Engine:
    """Return an engine for a game, a model and an algorithm.

    Args:
        name: `compiled`, `tensorflow`, `report`, or `package.module:Class`.

    Raises:
        ValueError: there is no such engine, or it can't compute these parts; the message says why.
    """
    reason = why_not(name, game, model, algorithm)
    if reason is not None:
        raise ValueError(reason)
    if model.onednn:
        allow_onednn()
    computed = _computed(algorithm)
    engine: Engine = _class_of(name, model, computed)(game, model, computed)
    return engine if computed is algorithm else load(_REPEATING)(engine, algorithm, game.spaces)


def _computed(algorithm: Any) -> Algorithm:
    """Return what an engine computes: the algorithm, or the one whose batches its workers differentiate repeatedly."""
    computed: Algorithm = algorithm.batches if is_repeated(algorithm) else algorithm
    return computed


def _class_of(name: str, model: Model | None, algorithm: Algorithm) -> Any:
    """Return the engine's class for these parts; one for gradients knows itself what else it can, or why it can't."""
    row = COMPUTES.get(name, {}).get(purpose_of(model, algorithm))
    return ENGINES.get(name) if row is None else load(row)
