"""What every learner is: the owner of the parameters. A parcel in; none, one or many updates; a publication out."""

from collections.abc import Mapping
from typing import Any, Protocol

from a3c_core.learners.optimizers import UpdateResult
from a3c_core.models.parameters import Vector
from a3c_core.progress import Progress


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
        """What workers pull: the parameters, and behind them whatever else the algorithm wants published."""
        ...

    def receive(self, parcel: Vector, progress: Progress, rate: float = 1.0) -> UpdateResult:
        """Learn from what a worker has handed over, or refuse it if it is not finite.

        `rate`: what the learning rate is multiplied by, for this parcel alone.
        """
        ...

    def follow(self, progress: Progress) -> bool:
        """Do what is due when the run has come so far; return whether anything but the parameters has changed."""
        ...

    def statistics(self, progress: Progress) -> Mapping[str, float]:
        """Return what is to be recorded of the latest update, by name; `progress` is that of its parcel's worker."""
        ...

    def save(self) -> tuple[dict[str, Any], dict[str, Vector]]:
        """Return (numbers for JSON, arrays) that it needs to go on, beside the parameters and the optimizer's."""
        ...

    def restore(self, numbers: dict[str, Any], arrays: dict[str, Vector]) -> None: ...
