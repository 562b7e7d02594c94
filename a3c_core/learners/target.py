"""The learner of gradients that needs a target network: parameters of the past, published beside the present ones."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from a3c_core.learners.gradients import GradientLearner
from a3c_core.models.parameters import Vector
from a3c_core.optimizers import Optimizer
from a3c_core.progress import Progress


class TargetLearner(GradientLearner):
    """Sets the target network anew whenever the run's env steps pass another multiple of `target_every`."""

    def __init__(
        self,
        parameters: Vector,
        optimizer: Optimizer,
        target_every: int,
        exploration: Callable[[Progress], Mapping[str, float]] = lambda progress: {},
    ):
        """`exploration`: how a worker explores by then, for the record."""
        self._published = np.concatenate([parameters, parameters])
        super().__init__(self._published[: parameters.size], optimizer)
        self.target = self._published[parameters.size :]
        self.target_set_at = 0  # env steps of the run
        self._target_every, self._exploration = target_every, exploration

    @property
    def publication(self) -> Vector:
        """The parameters and the target network, [2 P]."""
        return self._published

    def follow(self, progress: Progress) -> bool:
        due = progress.env_steps // self._target_every > self.target_set_at // self._target_every
        if due:
            self.target[:] = self.parameters
            self.target_set_at = progress.env_steps
        return due

    def statistics(self, progress: Progress) -> Mapping[str, float]:
        """Return the age of the target network in env steps, and what the algorithm says."""
        return {"target_age": progress.env_steps - self.target_set_at, **self._exploration(progress)}

    def save(self) -> tuple[dict[str, Any], dict[str, Vector]]:
        return {"target_set_at": self.target_set_at}, {"target": self.target}

    def restore(self, numbers: dict[str, Any], arrays: dict[str, Vector]) -> None:
        self.target_set_at = int(numbers["target_set_at"])
        self.target[:] = arrays["target"]
