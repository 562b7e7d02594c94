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


def make_engine(name: EngineName, model: Model, environment: EnvironmentConfig, learner: LearnerConfig) -> Engine:
    """Return the engine called `name`, or say why it can't run this model and environment."""
    if name == "compiled":
        reason = why_not_compiled(model, environment)
        if reason is not None:
            raise ValueError(f"engine 'compiled' can't be used here: {reason}; engine 'tensorflow' runs every model")
        from a3c_core.engines.compiled import CompiledEngine

        return CompiledEngine(DenseModel(), environment, learner)
    if not isinstance(model, DenseModel):
        allow_onednn()
    if name == "tensorflow":
        from a3c_core.engines.tensorflow import TensorFlowEngine

        return TensorFlowEngine(model, environment, learner)
    from a3c_core.engines.report import ReportEngine

    return ReportEngine(model, environment, learner)
