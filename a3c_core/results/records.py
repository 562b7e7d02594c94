"""One record per episode, and the columnar file they go to, part by part, so that a killed run keeps what it had."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from a3c_core.results.files import write_whole
from a3c_core.results.layout import EPISODES, PARTS

Status = Literal["applied", "dropped", "rejected"]


class EpisodeRecord(NamedTuple):
    """Everything the figures need, and nothing derived. Times are seconds of the run's clock unless said otherwise."""

    run: str
    episode: int  # position in this file: the order in which the master dealt with them
    worker: int
    worker_episode: int  # the worker's own count; (worker, worker_episode) names an episode's random streams
    workers_alive: int
    score: float  # as the game counts it, such as pipes passed
    return_: float  # undiscounted sum of rewards
    steps: int
    truncated: bool  # ended by the time limit, not by death
    started_s: float
    finished_s: float  # its last gradient reached the master
    applied_s: float  # its last gradient was applied, dropped or rejected
    wall_s: float  # real clock; empty in virtual time, where equal runs make equal files
    version_pulled: int  # of its last gradient
    version_applied: int  # updates made so far, this one included
    staleness: int  # updates between pull and apply
    queue_length: int  # gradients that its last one found waiting
    queue_wait_s: float
    master_busy_s: float  # seconds that the master has worked since the run began
    loss: float  # summed over the episode
    entropy: float  # mean per step, nats
    gradient_norm: float  # of its last gradient, before clipping
    status: Status


_TYPES: dict[str, pa.DataType] = {
    "run": pa.dictionary(pa.int32(), pa.string()),
    "status": pa.dictionary(pa.int32(), pa.string()),
    **dict.fromkeys(("worker", "workers_alive"), pa.int16()),
    **dict.fromkeys(("episode", "worker_episode", "score", "steps", "staleness", "queue_length"), pa.int32()),
    **dict.fromkeys(("version_pulled", "version_applied"), pa.int64()),
    "truncated": pa.bool_(),
    **dict.fromkeys(("started_s", "finished_s", "applied_s", "wall_s", "queue_wait_s", "master_busy_s"), pa.float64()),
    **dict.fromkeys(("return", "loss", "entropy", "gradient_norm"), pa.float32()),
}
SCHEMA = pa.schema([(name.rstrip("_"), _TYPES[name.rstrip("_")]) for name in EpisodeRecord._fields])  # whole scores
_PART_ROWS = 4096


class RecordsLost(Exception):
    """Records that a run had written are gone; the message is for the user."""


class RecordWriter:
    """Collects records; writes whole parts to `directory`/episodes.parts, and one episodes.parquet at the end.

    Without a directory everything stays in memory.
    """

    def __init__(self, directory: Path | None = None, whole_scores: bool = True):
        self._directory = directory
        self._schema = schema_of(pa.int32() if whole_scores else pa.float32())
        self._parts: list[pa.Table] = []  # in memory
        self._parts_on_disk = 0
        self._rows: list[EpisodeRecord] = []
        self._columns = self._schema.empty_table()  # of a runtime that gives whole columns
        self.count = 0

    def append(self, record: EpisodeRecord) -> None:
        self._rows.append(record)
        self.count += 1
        if len(self._rows) >= _PART_ROWS:
            self.flush()

    def extend(self, columns: pa.Table) -> None:
        """Append records that already are columns, cut into the same parts."""
        self._columns = _concatenate([self._columns, columns])
        self.count += len(columns)
        while len(self._columns) >= _PART_ROWS:
            rest = self._columns.slice(_PART_ROWS)
            self._columns = self._columns.slice(0, _PART_ROWS)
            self.flush()
            self._columns = rest

    def flush(self) -> None:
        """Bring all records so far to disk."""
        self._refuse_a_gap()
        if not self._rows and not len(self._columns):
            return
        part = _table(self._rows, self._schema) if self._rows else self._columns
        self._rows, self._columns = [], self._schema.empty_table()
        if self._directory is None:
            self._parts.append(part)
            return
        write_whole(_part_path(self._directory, self._parts_on_disk), lambda path: _write(part, path))
        self._parts_on_disk += 1

    def rewind(self, count: int) -> None:
        """Forget everything after the first `count` records, which must be sound: a resumed run plays it again."""
        assert self._directory is not None
        self._rows, self._columns = [], self._schema.empty_table()
        self.count, self._parts_on_disk = count, 0
        if count and sum(map(len, _in_order([self._directory / EPISODES]))) == count:
            return  # it ended just there
        kept = sound_records(self._directory)
        if count:
            write_whole(_part_path(self._directory, 0), lambda path: _write(kept.slice(0, count), path))
            self._parts_on_disk = 1
        (self._directory / EPISODES).unlink(missing_ok=True)
        for path in _part_paths(self._directory)[self._parts_on_disk :]:
            path.unlink()

    @property
    def parts_on_disk(self) -> int:
        return self._parts_on_disk

    def table(self) -> pa.Table:
        """Return all records so far."""
        self.flush()
        if self._directory is None:
            return _concatenate(self._parts)
        records = read_records(self._directory)
        if len(records) != self.count:
            raise RecordsLost(self._loss(len(records)))
        return records

    def finish(self) -> pa.Table:
        """Merge the parts into episodes.parquet, whose bytes do not depend on where they were cut; return all."""
        table = self.table()
        if self._directory is not None:
            write_whole(self._directory / EPISODES, lambda path: _write(table, path))
            shutil.rmtree(self._directory / PARTS, ignore_errors=True)
        return table

    def _refuse_a_gap(self) -> None:
        """Raise RecordsLost if the last part is gone, as when somebody removed the directory."""
        if self._directory is None or not self._parts_on_disk:
            return
        if not _part_path(self._directory, self._parts_on_disk - 1).exists():
            raise RecordsLost(self._loss(len(sound_records(self._directory))))

    def _loss(self, left: int) -> str:
        return f"{left:,} of {self.count:,} records are left in {self._directory}: the run can't go on without them"


def read_records(directory: Path) -> pa.Table:
    """Return the records in `directory`; of an unfinished run those before the first gap, should any be lost."""
    if (directory / EPISODES).exists():
        return _read(directory / EPISODES)
    return _concatenate(list(_in_order(_part_paths(directory))))


def sound_records(directory: Path) -> pa.Table:
    """Return the records that can be relied on: episodes 0, 1, 2, … as far as they are there and readable."""
    whole = list(_in_order([directory / EPISODES]))
    return _concatenate(whole or list(_in_order(_part_paths(directory))))


def _in_order(paths: list[Path]) -> Iterator[pa.Table]:
    """Yield the records in the files, up to the first that can't be read or does not go on where the last one ended."""
    count = 0
    for path in paths:
        try:
            part = _read(path)
        except (pa.ArrowException, OSError):
            return
        if not np.array_equal(part["episode"].to_numpy(), np.arange(count, count + len(part))):
            return
        count += len(part)
        yield part


def _part_paths(directory: Path) -> list[Path]:
    return sorted((directory / PARTS).glob("*.parquet"))


def schema_of(score: pa.DataType) -> pa.Schema:
    """Return the records' schema, with scores of the type that the game's have."""
    return SCHEMA.set(SCHEMA.get_field_index("score"), pa.field("score", score))


def _read(path: Path) -> pa.Table:
    return pq.read_table(path, schema=schema_of(pq.read_schema(path).field("score").type))


def _part_path(directory: Path, number: int) -> Path:
    return directory / PARTS / f"{number:06d}.parquet"


def _table(rows: list[EpisodeRecord], schema: pa.Schema) -> pa.Table:
    columns = [_column(values, field) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def _column(values: tuple[Any, ...], field: pa.Field) -> pa.Array:
    if field.name == "score":
        return pa.array(values).cast(field.type)  # refuses scores that are not whole where the game says they are
    return pa.array(values, field.type)


def _concatenate(parts: list[pa.Table]) -> pa.Table:
    table = pa.concat_tables(parts) if parts else SCHEMA.empty_table()
    return table.unify_dictionaries().combine_chunks()


def _write(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, compression="zstd", row_group_size=65_536)
