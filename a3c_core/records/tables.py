"""One record per episode and one per update, and the columnar files they go to, part by part while a run goes on."""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from a3c_core.records.columnar import (
    concatenate,
    from_rows,
    joined,
    numbers_in,
    read_column,
    write_part,
    write_stream,
)
from a3c_core.records.digests import digest_of_file
from a3c_core.records.files import write_whole
from a3c_core.records.layout import (
    EPISODES,
    PARTS,
    UPDATE_PARTS,
    UPDATES,
    ResultsError,
    is_of_another_run,
    read_digests,
)

Status = Literal["applied", "dropped", "rejected"]
# what reading a damaged file may raise: its columns may have other names, types or lengths than they had
UNREADABLE = (pa.ArrowException, OSError, LookupError, ValueError, TypeError, AttributeError, MemoryError)


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


class UpdateRecord(NamedTuple):
    """A gradient and what became of it: an episode may take many. Times are seconds of the run's clock."""

    update: int  # position in this file: the order in which they were dealt with
    worker: int
    version_pulled: int
    version: int  # updates made so far, this one included
    staleness: int  # updates between pull and apply; 0 where dropped
    queue_length: int  # gradients that it found waiting
    arrived_s: float  # it reached the master
    applied_s: float  # it was applied, dropped or rejected
    service_s: float  # from when it was taken up; 0 where dropped, empty where its own worker applied it unobserved
    gradient_norm: float  # before clipping; empty where dropped
    status: Status


UpdateRow = tuple[Any, ...]  # the fields of an UpdateRecord, then the algorithm's own numbers
_TYPES: dict[str, pa.DataType] = {
    "run": pa.dictionary(pa.int32(), pa.string()),
    "status": pa.dictionary(pa.int32(), pa.string()),
    **dict.fromkeys(("worker", "workers_alive", "episode", "worker_episode"), pa.int32()),
    **dict.fromkeys(("score", "steps", "staleness", "queue_length"), pa.int32()),
    **dict.fromkeys(("version_pulled", "version_applied"), pa.int64()),
    "truncated": pa.bool_(),
    **dict.fromkeys(("started_s", "finished_s", "applied_s", "wall_s", "queue_wait_s", "master_busy_s"), pa.float64()),
    **dict.fromkeys(("return", "loss", "entropy", "gradient_norm"), pa.float32()),
}
SCHEMA = pa.schema([(name.rstrip("_"), _TYPES[name.rstrip("_")]) for name in EpisodeRecord._fields])  # whole scores
_UPDATE_TYPES: dict[str, pa.DataType] = {
    **dict.fromkeys(("update", "version_pulled", "version"), pa.int64()),
    **dict.fromkeys(("worker", "staleness", "queue_length"), pa.int32()),
    **dict.fromkeys(("arrived_s", "applied_s", "service_s"), pa.float64()),
    "gradient_norm": pa.float32(),
    "status": _TYPES["status"],
}


class RecordTable(NamedTuple):
    """A kind of table: where it is in a run's directory, its columns, and the one that counts its rows 0, 1, 2, …."""

    file: str
    parts: str
    number: str
    part_rows: int  # a part costs some time, and its rows some memory
    schema: pa.Schema


EPISODE_TABLE = RecordTable(EPISODES, PARTS, "episode", 4096, SCHEMA)
UPDATE_TABLE = RecordTable(
    UPDATES, UPDATE_PARTS, "update", 16_384, pa.schema([(name, _UPDATE_TYPES[name]) for name in UpdateRecord._fields])
)


def update_table_with(statistics: Iterable[str]) -> RecordTable:
    """Return the table of updates with a column more for each number that the algorithm names."""
    added = [pa.field(name, pa.float32()) for name in statistics]
    return UPDATE_TABLE._replace(schema=pa.schema([*UPDATE_TABLE.schema, *added]))


class RecordsLost(Exception):
    """Records that a run had written are gone; the message is for the user."""


class RecordWriter:
    """Collects records; writes whole parts to the table's folder in `directory`, and its one file at the end.

    Without a directory everything stays in memory.
    """

    def __init__(self, directory: Path | None = None, whole_scores: bool = True, table: RecordTable = EPISODE_TABLE):
        self._directory, self._table, self._part_rows = directory, table, table.part_rows
        self.schema = table.schema if whole_scores else schema_of(pa.float32())
        self._parts: list[pa.Table] = []  # in memory
        self.part_digests: list[str] = []  # of the parts on disk
        self._rows: list[tuple[Any, ...]] = []
        self._columns: list[pa.Table] = []  # of a runtime that gives whole columns
        self.count = 0

    def append(self, record: EpisodeRecord | UpdateRow) -> None:
        rows = self._rows
        rows.append(record)
        self.count += 1
        if len(rows) >= self._part_rows:
            self.flush()

    def extend(self, columns: pa.Table) -> None:
        """Append records that already are columns, cut into the same parts."""
        self.count += len(columns)
        self._columns.append(columns)
        while sum(map(len, self._columns)) >= self._part_rows:
            waiting = concatenate(self._columns, self.schema)
            self._columns = [waiting.slice(0, self._part_rows)]
            self.flush()
            self._columns = [waiting.slice(self._part_rows)]

    def flush(self) -> None:
        """Bring all records so far to disk."""
        self._refuse_a_gap()
        if not self._rows and not sum(map(len, self._columns)):
            return
        part = from_rows(self._rows, self.schema) if self._rows else concatenate(self._columns, self.schema)
        self._rows, self._columns = [], []
        if self._directory is None:
            self._parts.append(part)
            return
        self._write_part(self._directory, part)

    def rewind(self, count: int, vouched: Sequence[str] = ()) -> None:
        """Forget everything after the first `count` records, which must be sound: a resumed run plays it again.

        `vouched`: the digests of the parts that hold them, if the checkpoint to go on from has any.
        """
        assert self._directory is not None
        self._rows, self._columns = [], []
        self.count, self.part_digests = count, []
        whole = self._directory / self._table.file
        if vouched and len(_intact_parts(self._directory, self._table, vouched)) == len(vouched):
            self.part_digests = list(vouched)
        elif count and sum(len(part) for _, part in _in_order([whole], self._table)) == count:
            return  # it ended just there
        else:
            self._keep(self._directory, count)
        whole.unlink(missing_ok=True)
        for path in _part_paths(self._directory, self._table)[self.parts_on_disk :]:
            path.unlink()

    @property
    def parts_on_disk(self) -> int:
        return len(self.part_digests)

    def finish(self) -> str:
        """Merge the parts into the one file, whose bytes do not depend on where they were cut; never holding all.

        Return the file's digest. The parts stay until `remove_parts`: until then the file has nothing to vouch for it.
        """
        self.flush()
        if self._directory is None:
            return ""
        parts = (part for _, part in _sound_parts(self._directory, self._table, self.part_digests))
        digests = []

        def write(path: Path) -> None:
            self._refuse_a_loss(write_stream(parts, self.schema, path))
            digests.append(digest_of_file(path))

        write_whole(self._directory / self._table.file, write)
        return digests[0]

    def remove_parts(self) -> None:
        """Remove what was merged, once the file's digest is kept."""
        if self._directory is not None:
            shutil.rmtree(self._directory / self._table.parts, ignore_errors=True)

    @property
    def file(self) -> str:
        return self._table.file

    def column(self, name: str) -> NDArray[Any]:
        """Return one column of all records that were finished [count]; of a long run nothing else is held meanwhile."""
        held = (part[name] for part in self._parts)
        parts = read_column(self._directory / self._table.file, name) if self._directory else held
        return joined(parts, self.count, self.schema.field(name).type)

    def _keep(self, directory: Path, count: int) -> None:
        """Let the first parts hold the first `count` records; each at any time its old self, or its beginning."""
        sound = _sound_parts(directory, self._table)
        while count > 0:
            path, part = next(sound)
            if path == self._part_path(directory, self.parts_on_disk) and len(part) <= count:
                self.part_digests.append(digest_of_file(path))
            else:
                self._write_part(directory, part.slice(0, count))
            count -= len(part)

    def _part_path(self, directory: Path, number: int) -> Path:
        return directory / self._table.parts / f"{number:06d}.parquet"

    def _write_part(self, directory: Path, part: pa.Table) -> None:
        digests = []

        def write(path: Path) -> None:
            write_part(part, path)
            digests.append(digest_of_file(path))

        write_whole(self._part_path(directory, self.parts_on_disk), write)
        self.part_digests += digests

    def _refuse_a_gap(self) -> None:
        """Raise RecordsLost if the last part is gone, as when somebody removed the directory."""
        if self._directory is None or not self.parts_on_disk:
            return
        if not self._part_path(self._directory, self.parts_on_disk - 1).exists():
            self._refuse_a_loss(sound_rows(self._directory, self._table, self.part_digests))

    def _refuse_a_loss(self, left: int) -> None:
        """Raise RecordsLost if fewer are left than were written."""
        if left != self.count:
            where = f"records are left in {self._directory}"
            raise RecordsLost(f"{left:,} of {self.count:,} {where}: the run can't go on without them")


def read_records(directory: Path, table: RecordTable = EPISODE_TABLE) -> pa.Table:
    """Return the records in `directory`; of an unfinished run those before the first gap, should any be lost."""
    if (directory / table.file).exists():
        if not _is_as_told(directory / table.file):
            raise ResultsError(f"{directory / table.file} is damaged: it is not what the run's summary tells of")
        return _read(directory / table.file, table)
    return concatenate([part for _, part in _in_order(_part_paths(directory, table), table)], table.schema)


def sound_rows(directory: Path, table: RecordTable, vouched: Sequence[str] = ()) -> int:
    """Return how many records can be relied on: 0, 1, 2, … as far as they are there and readable.

    `vouched`: the digests that their parts must have.
    """
    return sum(len(part) for _, part in _sound_parts(directory, table, vouched))


def sound_records(directory: Path) -> pa.Table:
    """Return the episodes' records that can be relied on."""
    return concatenate([part for _, part in _sound_parts(directory, EPISODE_TABLE)], SCHEMA)


def _sound_parts(directory: Path, table: RecordTable, vouched: Sequence[str] = ()) -> Iterator[tuple[Path, pa.Table]]:
    """Yield the files and records that can be relied on: parts where they are vouched for, else the one file."""
    intact = _intact_parts(directory, table, vouched)
    if vouched and len(intact) == len(vouched):
        return _in_order(intact, table)
    whole = directory / table.file
    if _is_sound(whole, table):
        return _in_order([whole], table)
    return _in_order(intact if vouched else _part_paths(directory, table), table)


def _intact_parts(directory: Path, table: RecordTable, vouched: Sequence[str]) -> list[Path]:
    """Return the parts up to the first whose digest is not the one that is vouched for."""
    intact: list[Path] = []
    for path, digest in zip(_part_paths(directory, table), vouched, strict=False):
        if path.stem != f"{len(intact):06d}" or _digest_of(path) != digest:
            break
        intact.append(path)
    return intact


def _digest_of(path: Path) -> str | None:
    try:
        return digest_of_file(path)
    except OSError:
        return None


def _is_as_told(path: Path) -> bool:
    """Return whether a run's file of records is the one of its summary, if this is there and has digests."""
    told = read_digests(path.parent).get(path.name)
    return told is None or (told == _digest_of(path) and not is_of_another_run(path.parent))


def _is_sound(path: Path, table: RecordTable) -> bool:
    try:
        rows = pq.read_metadata(path).num_rows
        return _is_as_told(path) and sum(len(part) for _, part in _in_order([path], table)) == rows
    except UNREADABLE:
        return False


def _in_order(paths: list[Path], table: RecordTable) -> Iterator[tuple[Path, pa.Table]]:
    """Yield the files and their records, a row group at a time, up to the first that can't be read or is not next."""
    count = 0
    for path in paths:
        try:
            for part in _groups(path, table):
                if not np.array_equal(numbers_in(part[table.number]), np.arange(count, count + len(part))):
                    return
                count += len(part)
                yield path, part
        except UNREADABLE:
            return


def _part_paths(directory: Path, table: RecordTable) -> list[Path]:
    return sorted((directory / table.parts).glob("*.parquet"))


def schema_of(score: pa.DataType) -> pa.Schema:
    """Return the episodes' schema, with scores of the type that the game's have."""
    return SCHEMA.set(SCHEMA.get_field_index("score"), pa.field("score", score))


def _read(path: Path, table: RecordTable) -> pa.Table:
    return pq.read_table(path, schema=_schema_in(pq.read_schema(path), table))


def _groups(path: Path, table: RecordTable) -> Iterator[pa.Table]:
    with pq.ParquetFile(path) as file:
        schema = _schema_in(file.schema_arrow, table)
        for group in range(file.num_row_groups):
            part = file.read_row_group(group).select(schema.names)
            yield part if part.schema.equals(schema) else part.cast(schema)


def _schema_in(found: pa.Schema, table: RecordTable) -> pa.Schema:
    """Return the schema to read a file by: some games' scores are not whole, some algorithms add numbers to updates."""
    if table is EPISODE_TABLE:
        return schema_of(found.field("score").type)
    return pa.schema([*table.schema, *(field for field in found if field.name not in table.schema.names)])
