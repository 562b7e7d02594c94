"""When the records of a run in virtual time were made, in real seconds: a file beside them, so that they stay equal.

Real runs have it in their records (`wall_s`). A run's seconds don't count while it is interrupted. Compiled virtual
time hands over blocks of records, which share their moment.
"""

import os
import struct
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

FILE = "wall_times.f64"  # one number per episode, little-endian
_SIZE = 8  # bytes


class WallTimes:
    """Writes down at once when each record was made, so that a killed run has those of all its records."""

    def __init__(self, directory: Path):
        self._file = os.open(directory / FILE, os.O_RDWR | os.O_CREAT, 0o666)
        self._now_s, self._began_s = time.monotonic, time.monotonic()
        self._is_new = True

    def note(self, episode: int, records: int = 1) -> None:
        """Records were made, from this episode's on."""
        if self._is_new:
            self._go_on_from(episode)
        os.pwrite(self._file, struct.pack("<d", self._now_s() - self._began_s) * records, _SIZE * episode)

    def _go_on_from(self, episode: int) -> None:
        """Forget what will be played again, and count on from what was before it."""
        os.ftruncate(self._file, _SIZE * episode)
        last = os.pread(self._file, _SIZE, _SIZE * (episode - 1)) if episode else b""
        self._began_s -= struct.unpack("<d", last)[0] if len(last) == _SIZE else 0.0
        self._is_new = False


def with_wall_times(records: pa.Table, directory: Path) -> pa.Table:
    """Return the records with real seconds in virtual time too; empty where a run has left none, as older ones."""
    known = records["wall_s"].to_numpy()
    beside = np.full(len(records), np.nan)
    if (directory / FILE).exists():
        found = np.fromfile(directory / FILE, "<f8", len(records))
        beside[: len(found)] = found
    column = records.schema.get_field_index("wall_s")
    return records.set_column(column, "wall_s", pa.array(np.where(np.isnan(known), beside, known)))
