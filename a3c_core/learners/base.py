"""What every learner is: the owner of the parameters. A parcel in; none, one or many updates; a publication out."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from a3c_core.learners.optimizers import Optimizer, UpdateResult
from a3c_core.models.parameters import Vector
from a3c_core.progress import START, Progress


class Effort(NamedTuple):
    """What a learner does with a parcel: virtual time asks before it does it."""

    updates: int = 1  # 0: the parcel only joins others
    steps: int = 0  # whose gradients it computes itself; a step counts in every epoch


class Learner(Protocol):
    """Which clock it runs on, and how parcels and publications travel, is the runtime's business."""

    parameters: Vector  # of the model [P]
    optimizer: Optimizer

    @property
    def version(self) -> int:
        """Updates applied so far."""
        ...

    @property
    def parcel_size(self) -> int:
        """How many float32 numbers a worker hands over at once, at most."""
        ...

    @property
    def publication(self) -> Vector:
        """What workers pull: the parameters, and behind them whatever else the algorithm wants published."""
        ...

    def effort(self, parcel: Vector | None) -> Effort:
        """Return what `receive` would do with this parcel; without one, what `learn_rest` would."""
        ...

    def receive(self, parcel: Vector, progress: Progress = START) -> UpdateResult:
        """Learn from what a worker has handed over, or keep it for later, or refuse it if it is not finite."""
        ...

    def learn_rest(self, progress: Progress) -> UpdateResult:
        """Learn from what was kept for later, of which there must be some: nobody will add to it."""
        ...

    def follow(self, progress: Progress) -> bool:
        """Do what is due when the run has come so far; return whether anything but the parameters has changed."""
        ...

    def forget_batch(self) -> None:
        """Give up what was kept for later."""
        ...

    def statistics(self, progress: Progress) -> Mapping[str, float]:
        """Return what is to be recorded of the latest update, by name; `progress` is that of its parcel's worker."""
        ...

    def save(self) -> tuple[dict[str, Any], dict[str, Vector]]:
        """Return (numbers for JSON, arrays) that it needs to go on, beside the parameters and the optimizer's."""
        ...

    def restore(self, numbers: dict[str, Any], arrays: dict[str, Vector]) -> None: ...
