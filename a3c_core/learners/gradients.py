"""The learner of gradients: each parcel is a gradient, and becomes one update by the optimizer."""

from collections.abc import Mapping
from typing import Any

from a3c_core.learners.base import ONE_UPDATE, Effort
from a3c_core.models.parameters import Vector
from a3c_core.optimizers import Optimizer, UpdateResult
from a3c_core.progress import START, Progress


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

    def effort(self, parcel: Vector | None) -> Effort:
        return ONE_UPDATE

    def effort_at(self, env_steps: float) -> tuple[int, Effort]:
        return 1, ONE_UPDATE

    def receive(self, parcel: Vector, progress: Progress = START, rate: float = 1.0) -> UpdateResult:
        """Apply one gradient, or refuse it if it is not finite."""
        result = self.optimizer.apply(self.parameters, parcel, progress.share, rate)
        self.follow(progress)
        return result

    def learn_rest(self, progress: Progress) -> UpdateResult:
        raise AssertionError("a gradient is never kept for later")

    def forget_batch(self) -> None:
        """Nothing is ever kept for later."""

    def follow(self, progress: Progress) -> bool:
        return False

    def statistics(self, progress: Progress) -> Mapping[str, float]:
        return {}

    def save(self) -> tuple[dict[str, Any], dict[str, Vector]]:
        return {}, {}

    def restore(self, numbers: dict[str, Any], arrays: dict[str, Vector]) -> None:
        """There is nothing beside the parameters and the optimizer's averages."""
