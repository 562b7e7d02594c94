"""What every learner is: the owner of the parameters. A parcel in; none, one or many updates; a publication out."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from a3c_core.models.parameters import Vector
from a3c_core.optimizers import Optimizer, UpdateResult
from a3c_core.progress import START, Progress

One = TypeVar("One")  # parcel, as whoever deals with it knows it


class Effort(NamedTuple):
    """What a learner does with a parcel: virtual time asks before it does it."""

    updates: int = 1  # 0: the parcel only joins others
    steps: int = 0  # whose gradients it computes itself; a step counts in every epoch


ONE_UPDATE = Effort()


class Learner(Protocol):
    """Owns the parameters: receives what workers hand over, and publishes what they play with.

    It knows neither clock nor transport; these belong to the runtime. A new learner is a class with these members and a
    row in `LEARNERS` of build.py.
    """

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

    def effort_at(self, env_steps: float) -> tuple[int, Effort]:
        """Return (how many parcels of so many env steps it learns from at once, what it does with all of them)."""
        ...

    def receive(self, parcel: Vector, progress: Progress = START, rate: float = 1.0) -> UpdateResult:
        """Learn from what a worker has handed over, or keep it for later, or refuse it if it is not finite.

        Args:
            parcel: float32 vector, such as a gradient [P].
            progress: how far the run has come.
            rate: factor on the learning rate for this parcel alone.
        """
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


def settled_by(result: UpdateResult | None, joined: list[One], taken: list[One]) -> tuple[list[One], list[One]]:
    """Return (those of which it is known now what became of them, those that wait for the rest of their batch).

    `result`: of those `taken`, after the others that had `joined` before; None: the learner did not get them.
    """
    settles = "parcel" if result is None else result.settles
    if settles == "nothing":
        return [], [*joined, *taken]
    return ([*joined, *taken], []) if settles == "batch" else (taken, joined)
