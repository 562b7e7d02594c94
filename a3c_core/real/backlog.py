"""What has arrived at a real master and has no outcome yet: it outlives an interruption of the run."""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from a3c_core.episode_log import Totals
from a3c_core.models.parameters import Vector
from a3c_core.real.arrivals import Arrival, arrival_from, waiting_slots
from a3c_core.real.roster import Roster
from a3c_core.topologies.parcel_queue import ParcelQueue

_FILE = "queue.f32"  # of a checkpoint


class Backlog(ParcelQueue):
    """The master's queue, what it has taken from there, and what its learner has kept for a batch."""

    def __init__(self, size: int):
        super().__init__(size)
        self.serving: list[tuple[Arrival, Vector]] = []  # where an update takes its time
        self.joined: list[Arrival] = []  # whose batch the learner still collects

    def append(self, item: Arrival, gradient: Vector) -> None:
        """Let an arrival wait, with a copy of its gradient, whose place in shared memory will be used again."""
        super().append(item, gradient.copy())

    @property
    def unserved(self) -> int:
        """Parcels that wait or are being served."""
        return len(self.serving) + len(self)

    def arrivals(self) -> Iterator[Arrival]:
        """Yield all that has no outcome yet, oldest first."""
        yield from self.joined
        yield from (arrival for arrival, _ in self.serving)
        yield from self.items()

    def has_rest(self, roster: Roster, workers_wait: bool) -> bool:
        """Return whether the learner's batch will have no more: all have left, or wait for what becomes of it."""
        if not self.joined or self.unserved:
            return False
        waiting = waiting_slots(self.joined, roster) if workers_wait else set()
        return not roster.at_work() - waiting

    def clear(self) -> list[Arrival]:
        """Return all that is left, and leave nothing."""
        left = list(self.arrivals())
        self.serving, self.joined = [], []
        while len(self):
            self.popleft()
        return left

    def save(self) -> tuple[dict[str, Any], dict[str, Callable[[IO[bytes]], object]]]:
        """Return (arrivals as numbers for JSON; what writes their gradients to a file, by its name)."""
        waiting = [arrival for arrival, _ in self.serving] + self.items()
        untaken = [arrival[:4] for arrival in waiting]  # what was being served waits again
        return {"queue": untaken, "joined": self.joined}, {_FILE: self._write}

    def load(self, numbers: dict[str, Any], folder: Path) -> None:
        """Fill an empty backlog with what `save` gave."""
        self.joined = [arrival_from(one) for one in numbers["joined"]]
        with (folder / _FILE).open("rb") as file:
            self.restore([arrival_from(one) for one in numbers["queue"]], file)

    def ungranted(self, recorded: list[int], episodes: int) -> tuple[list[int], int]:
        """Return (numbers of episodes below which all were played, by slot; how many of `episodes` are to be played).

        `recorded` and `episodes` count what is here as not played.
        """
        played = list(recorded)
        for arrival in self.arrivals():
            episodes -= len(arrival.episodes)
            played[arrival.slot] = max([played[arrival.slot], *(one.number + 1 for one in arrival.episodes)])
        return played, episodes

    def _write(self, file: IO[bytes]) -> None:
        for _, gradient in self.serving:
            file.write(gradient.tobytes())
        self.write_gradients(file)


def say_that_nothing_waits(totals: Totals) -> None:
    """Warn that a run goes on with an empty queue, if it had one: older checkpoints do not hold it."""
    if waited := totals.sent - totals.outcomes:
        warnings.warn(
            f"the checkpoint, of an older version, does not hold the {waited:,} gradients that waited for the master: "
            "the run goes on with an empty queue, and their episodes are played again",
            stacklevel=3,
        )
