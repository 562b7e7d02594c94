"""What every learner is: the owner of the parameters. A parcel in; none, one or many updates; a publication out."""

from typing import Protocol

from a3c_core.learners.optimizers import UpdateResult
from a3c_core.models.parameters import Vector


class Learner(Protocol):
    """Which clock it runs on, and how parcels and publications travel, is the runtime's business."""

    parameters: Vector  # of the model [P]

    @property
    def version(self) -> int:
        """Updates applied so far."""
        ...

    @property
    def parcel_size(self) -> int:
        """How many float32 numbers a worker hands over at once."""
        ...

    @property
    def publication(self) -> Vector:
        """What workers pull: the parameters, and whatever else the algorithm wants published beside them."""
        ...

    def receive(self, parcel: Vector, progress: float, rate: float = 1.0) -> UpdateResult:
        """Learn from what a worker has handed over, or refuse it if it is not finite.

        `progress`: share of the run's episodes that has been dealt with; `rate`: what the learning rate is multiplied
        by, for this parcel alone.
        """
        ...
