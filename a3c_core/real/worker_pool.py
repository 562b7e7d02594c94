"""What every pool of workers offers, whether processes or threads (`local_pool`) or Ray actors (`ray_pool`)."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

NO_BELL = -1  # in place of a descriptor


class Loss(NamedTuple):
    """A worker that has ended, told to or not, or that is given up."""

    slot: int
    reason: str
    hopeless: bool = False  # an exception kept it from coming up, and would keep others from it


class Pool(Protocol):
    """All workers of a run, wherever they are. Each is known by its slot, which outlives it."""

    @property
    def members(self) -> Mapping[int, Any]:
        """The workers by slot; of each, `heard_s` is when it last delivered something."""

    @property
    def bell(self) -> int:
        """Descriptor that the workers ring; NO_BELL where they can't."""

    def spawn(self, slot: int, episode: int) -> None:
        """Start a worker in `slot` that goes on with its episode number `episode`."""

    def look(self) -> None:
        """Bring what has arrived into the slots, if the workers can't do that themselves."""

    def wait(self, limit_s: float) -> None:
        """Block until a worker says something or dies, or the limit has passed."""

    def wake(self, slot: int) -> None:
        """Let a worker see what has changed in its slot."""

    def lost(self) -> Iterable[Loss]:
        """Return the workers that have ended, told to or not; those that are stuck are made to."""

    def remove(self, slot: int) -> None:
        """Clear away a worker that was lost."""

    def close(self) -> None:
        """Dismiss everyone."""
