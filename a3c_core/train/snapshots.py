"""Checkpoints kept at even parts of a run, so that one can see how it learned: `python -m a3c.play --learning`."""

from pathlib import Path

from a3c_core.records import checkpoints
from a3c_core.records.files import remove_directory

_LOOKS = 10  # between two snapshots, so that they lie where they should


class Snapshots:
    """Which parts of a run are kept, and whether the next is due."""

    def __init__(self, folder: Path, wanted: int, episodes: int, so_far: int):
        self._wanted, self._episodes = wanted, episodes
        for path in checkpoints.found(folder):
            if (checkpoints.records_of(path) or 0) > so_far:  # of a time that the run has lost
                remove_directory(path)
        self._kept = self._part(so_far) if checkpoints.found(folder) else -1

    def is_due(self, episodes: int) -> bool:
        """Return whether a part has ended that is not kept yet; it is from now on."""
        is_new = bool(self._wanted) and self._part(episodes) > self._kept
        if is_new:
            self._kept = self._part(episodes)
        return is_new

    def steps(self, most: int) -> int:
        """Return how far a runtime may go before somebody asks again."""
        return min(most, max(1, self._episodes // (self._wanted * _LOOKS))) if self._wanted else most

    def _part(self, episodes: int) -> int:
        return episodes * self._wanted // self._episodes
