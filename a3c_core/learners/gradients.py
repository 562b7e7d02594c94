"""The learner of gradients: each parcel is a gradient, and becomes one update by the optimizer."""

from a3c_core.config import RunConfig
from a3c_core.learners.optimizers import Optimizer, UpdateResult
from a3c_core.models.parameters import Vector
from a3c_core.parts import parts_of


class GradientLearner:
    """Owns the parameters and the optimizer."""

    def __init__(self, parameters: Vector, optimizer: Optimizer):
        self.parameters = parameters
        self.optimizer = optimizer

    @property
    def version(self) -> int:
        """Updates applied so far."""
        return self.optimizer.updates

    @property
    def parcel_size(self) -> int:
        return self.parameters.size

    @property
    def publication(self) -> Vector:
        return self.parameters

    def receive(self, parcel: Vector, progress: float, rate: float = 1.0) -> UpdateResult:
        """Apply one gradient, or refuse it if it is not finite."""
        return self.optimizer.apply(self.parameters, parcel, progress, rate)


def new_learner(config: RunConfig) -> GradientLearner:
    """Return a learner with the run's initial parameters."""
    parameters = parts_of(config).model.initial_parameters(config.seed)
    return GradientLearner(parameters, new_optimizer(config, parameters.size))


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
