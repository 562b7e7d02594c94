"""The learner that a run's settings ask for."""

from a3c_core.algorithms.base import TargetSettings
from a3c_core.config import RunConfig
from a3c_core.learners.gradients import GradientLearner, new_optimizer
from a3c_core.learners.target import TargetLearner
from a3c_core.parts import parts_of


def new_learner(config: RunConfig) -> GradientLearner:
    """Return a learner with the run's initial parameters."""
    _, model, algorithm = parts_of(config)
    parameters = model.initial_parameters(config.seed)
    optimizer = new_optimizer(config, parameters.size)
    if isinstance(config.learner, TargetSettings):
        explored = {"exploration": algorithm.exploration} if hasattr(algorithm, "exploration") else {}
        return TargetLearner(parameters, optimizer, config.learner.target_every, **explored)
    return GradientLearner(parameters, optimizer)
