"""The engines by name; one is imported only when it is made, so that `compiled` never loads TensorFlow."""

from typing import Literal

from a3c_core.config import EnvironmentConfig, LearnerConfig
from a3c_core.engines.base import Engine
from a3c_core.models import DenseModel, Model
from a3c_core.tf import allow_onednn

EngineName = Literal["compiled", "tensorflow", "report"]
_COMPILED_GAME = EnvironmentConfig().id


def why_not_compiled(model: Model, environment: EnvironmentConfig) -> str | None:
    """Return what keeps the compiled engine from running a model on an environment, or None if nothing does."""
    if model != DenseModel():
        return "it runs the model 'dense' with 8 inputs, 128 units and 2 actions only"
    if environment.id != _COMPILED_GAME or environment.observation != "report":
        return f"it plays {_COMPILED_GAME} with observation 'report' only"
    return None


def why_not(name: EngineName, model: Model, environment: EnvironmentConfig) -> str | None:
    """Return what keeps an engine from running a model on an environment, or None if nothing does."""
    limit = why_not_compiled(model, environment) if name == "compiled" else None
    if name == "compiled" and limit is None:
        return None
    from a3c_core.engines.fitting import why_not_playable  # makes the environment: not for every compiled worker

    reason = why_not_playable(model, environment)
    if limit is None:
        return reason
    way_out = "engine 'tensorflow' runs every model" if reason is None else f"no engine can: {reason}"
    return f"{limit}; {way_out}"


def make_engine(name: EngineName, model: Model, environment: EnvironmentConfig, learner: LearnerConfig) -> Engine:
    """Return the engine called `name`, or say why it can't run this model and environment."""
    reason = why_not(name, model, environment)
    if reason is not None:
        raise ValueError(f"engine {name!r} can't be used here: {reason}")
    if name == "compiled":
        from a3c_core.engines.compiled import CompiledEngine

        return CompiledEngine(DenseModel(), environment, learner)
    if not isinstance(model, DenseModel):
        allow_onednn()
    if name == "tensorflow":
        from a3c_core.engines.tensorflow import TensorFlowEngine

        return TensorFlowEngine(model, environment, learner)
    from a3c_core.engines.report import ReportEngine

    return ReportEngine(model, environment, learner)
