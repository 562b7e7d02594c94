"""What every runtime offers: one run, on its own clock, that saves and restores itself."""

from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

from numpy.typing import NDArray

from a3c_core.episode_log import EpisodeLog

Arrays = dict[str, NDArray[Any]]


class Saved(NamedTuple):
    """The state of a run, or of a part of one."""

    numbers: dict[str, Any]  # for JSON
    arrays: Arrays
    streams: dict[str, Callable[[IO[bytes]], object]]  # what is too large for memory: file's name -> what writes it


class Runtime(Protocol):
    """On which clock and machine a run happens."""

    steps_between_looks: int  # at the real clock, and at whether we were interrupted
    log: EpisodeLog

    @property
    def clock_s(self) -> float:
        """Seconds since the run began, on its own clock."""
        ...

    @property
    def overloaded(self) -> bool:
        """Whether more gradients wait than the run may bear."""
        ...

    def start(self, is_asked_to_stop: Callable[[], bool]) -> None:
        """Bring up the workers, or go on with those that were restored."""
        ...

    def advance(self, steps: int) -> bool:
        """Let up to `steps` things happen; return whether the run goes on."""
        ...

    def stop(self) -> dict[str, float]:
        """End what runs in the background; return where the workers' time went, in seconds."""
        ...

    def save(self) -> Saved:
        """Return what the run needs in order to go on."""
        ...

    def restore(self, numbers: dict[str, Any], arrays: Arrays, folder: Path) -> None:
        """Bring a run that has not started to the state that `save` saw; `folder` holds the streams' files."""
        ...
