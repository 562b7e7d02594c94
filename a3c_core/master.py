"""The master: owns the parameters, the optimizer and the version."""

from a3c_core.config import RunConfig
from a3c_core.models.parameters import Vector
from a3c_core.optimizers import Optimizer, UpdateResult
from a3c_core.parts import parts_of


class Master:
    """Gradient in, parameters out. Which clock it runs on is the runtime's business."""

    def __init__(self, parameters: Vector, optimizer: Optimizer):
        self.parameters = parameters
        self.optimizer = optimizer

    @property
    def version(self) -> int:
        """Updates applied so far."""
        return self.optimizer.updates

    def apply(self, gradient: Vector) -> UpdateResult:
        """Apply one gradient, or refuse it if it is not finite."""
        return self.optimizer.apply(self.parameters, gradient)


def new_master(config: RunConfig) -> Master:
    """Return a master with the run's initial parameters."""
    parameters = parts_of(config).model.initial_parameters(config.seed)
    return Master(parameters, new_optimizer(config, parameters.size))


def new_optimizer(config: RunConfig, size: int) -> Optimizer:
    """Return the run's optimizer for `size` parameters."""
    learner = config.learner
    return Optimizer(
        size,
        learner.optimizer,
        learner.learning_rate,
        anneal_over=config.episodes if learner.anneal else None,
        clip_norm=learner.clip_norm,
    )
