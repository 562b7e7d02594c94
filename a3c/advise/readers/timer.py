"""A log of who worked when: read from CSV or Parquet, put together, and refused with the line."""

import csv
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from a3c.advise.measurements import ASYNCHRONOUS, Log, LogError, Measurements, Numbers
from a3c_core.errors import shown

NAME = "timer"
COLUMNS = ("worker", "start", "end", "update_start", "update_end")
LEAST_ROWS = 20
_LATEST_S = 1e12
_OFF = 0.01  # of a median duration: clocks of several machines may be so far apart


class Row(NamedTuple):
    """A line of the log; what it does not say is not a number."""

    line: int
    worker: str
    start: float
    end: float
    update_start: float
    update_end: float


def read_file(path: Path) -> Log:
    """Return the log in a CSV or Parquet file."""
    return put_together(*(_parquet_rows(path) if path.suffix == ".parquet" else _csv_rows(path)))


def as_measurements(log: Log, source: str) -> Measurements:
    """Return a log of single rollouts as measurements: a step is an update."""
    changes = (np.diff(log.update_start) != 0) | (np.diff(log.update_end) != 0)
    first = np.flatnonzero(np.concatenate(([True], changes)))
    began_s, ended_s = log.update_start[first], log.update_end[first]
    free_s = np.concatenate((began_s[:1], ended_s[:-1]))
    version_at_start = np.searchsorted(ended_s, log.start, side="right")
    of_update = np.searchsorted(first, np.arange(log.end.size), side="right") - 1
    return Measurements(
        system=NAME,
        source=source,
        mode=ASYNCHRONOUS,
        step_s=ended_s - free_s,
        wait_s=np.maximum(began_s - free_s, 0.0),
        update_s=ended_s - began_s,
        rollouts_s=log.end - log.start,
        batch=max(1, round(log.end.size / first.size)),
        slots=int(log.worker.max()) + 1,
        staleness=(of_update - version_at_start).astype(float),
        events=log,
        notes=log.notes,
        unknown=(
            "costs that change with the number of workers, as when cores run out (--cores)",
            "how long the queue may get (--queue)",
        ),
    )


def put_together(rows: list[Row], notes: tuple[str, ...]) -> Log:
    """Return the log that lines make; a worker's and the learner's halves of a parcel may be lines of their own."""
    whole = [row for row in rows if not math.isnan(row.start + row.update_start)]
    halves = [row for row in rows if math.isnan(row.start + row.update_start)]
    whole += _joined(halves)
    missing = sum(not math.isnan(row.start) for row in rows) - len(whole)
    if missing:
        notes += (f"{missing:,} of {len(whole) + missing:,} parcels have no update yet: left out",)
    if len(whole) < LEAST_ROWS:
        raise LogError(f"the log has {len(whole)} parcels with all four times, and at least {LEAST_ROWS} are needed")
    numbers = {name: number for number, name in enumerate(dict.fromkeys(row.worker for row in whole))}
    lines, workers = np.array([row.line for row in whole]), np.array([numbers[row.worker] for row in whole])
    return check(log_of(lines, workers, np.array([row[2:] for row in whole]), notes))


def log_of(
    lines: NDArray[np.int64],
    workers: NDArray[np.int64],
    times: Numbers,
    notes: tuple[str, ...] = (),
    env_steps: float = math.nan,
) -> Log:
    """Return a log, whose `times` [rows, 4] are start, end, update_start and update_end."""
    return Log(lines, workers, times[:, 0], times[:, 1], times[:, 2], times[:, 3], notes, env_steps)


def check(log: Log) -> Log:
    """Return the log in the order of its updates, or raise LogError for the first line that contradicts another."""
    off_s = _OFF * float(np.median(log.end - log.start))
    update_off_s = _OFF * float(np.median(log.update_end - log.update_start))
    _refuse(log, log.end < log.start, "the work ends before it starts")
    _refuse(log, log.update_end < log.update_start, "the update ends before it starts")
    early = "the update starts before the work has ended (are the clocks of two machines apart?)"
    _refuse(log, log.update_start < log.end - off_s, early)
    unordered = np.flatnonzero(np.diff(log.update_start) < -update_off_s)
    notes = log.notes
    if unordered.size:
        notes += (
            f"the updates are not in the order of their times (first at line {log.line[unordered[0] + 1]}): sorted",
        )
    ordered = _take(log, np.lexsort((log.line, log.update_end, log.update_start)))
    _refuse_overlaps(_take(ordered, np.lexsort((ordered.start, ordered.worker))), off_s)
    _refuse_two_learners(ordered, update_off_s)
    if not (np.mean(ordered.end - ordered.start) > 0 and np.mean(ordered.update_end - ordered.update_start) > 0):
        raise LogError(
            "by the log work or updates take no time at all: are its times in seconds, with their fractions?"
        )
    return ordered._replace(notes=notes)


def _take(log: Log, order: NDArray[np.int64]) -> Log:
    return log._replace(
        line=log.line[order],
        worker=log.worker[order],
        start=log.start[order],
        end=log.end[order],
        update_start=log.update_start[order],
        update_end=log.update_end[order],
    )


def _refuse(log: Log, wrong: NDArray[np.bool_], reason: str) -> None:
    if wrong.any():
        raise LogError(f"line {log.line[wrong].min()} of the log: {reason}")


def _refuse_overlaps(by_worker: Log, off_s: float) -> None:
    same = by_worker.worker[1:] == by_worker.worker[:-1]
    overlaps = np.flatnonzero(same & (by_worker.start[1:] < by_worker.end[:-1] - off_s))
    if overlaps.size:
        first, second = by_worker.line[overlaps[0]], by_worker.line[overlaps[0] + 1]
        raise LogError(f"line {second} of the log: its worker had not yet ended what line {first} says")


def _refuse_two_learners(log: Log, off_s: float) -> None:
    """Updates may be equal, as those of a batch are, or follow each other."""
    other = (log.update_start[1:] != log.update_start[:-1]) | (log.update_end[1:] != log.update_end[:-1])
    overlaps = np.flatnonzero(other & (log.update_start[1:] < log.update_end[:-1] - off_s))
    if overlaps.size:
        first, second = log.line[overlaps[0]], log.line[overlaps[0] + 1]
        raise LogError(f"line {second} of the log: its update starts during that of line {first}: log one learner only")


# Lines


def _csv_rows(path: Path) -> tuple[list[Row], tuple[str, ...]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise LogError(f"{shown(str(path))} is not a log: it is not a text file in UTF-8") from error
    lines = [line for line in enumerate(text.splitlines(), 1) if line[1].strip()]
    if not lines:
        raise LogError(f"{shown(str(path))} is empty")
    notes: tuple[str, ...] = ()
    if not text.endswith("\n") and lines[-1][1].count(",") < len(COLUMNS) - 1:  # somebody was killed while writing
        notes = (f"line {lines.pop()[0]} is cut off: left out",)
    return list(_rows(lines)), notes


def _rows(lines: list[tuple[int, str]]) -> Iterator[Row]:
    columns: tuple[str, ...] = COLUMNS
    for place, (line, text) in enumerate(lines):
        fields = _fields(line, text)
        if place == 0 and "worker" in fields:
            columns = _columns(fields)
            continue
        if len(fields) != len(columns):
            raise LogError(f"line {line} of the log has {len(fields)} fields, and {len(columns)} are needed")
        yield _row(line, dict(zip(columns, fields, strict=True)))


def _fields(line: int, text: str) -> list[str]:
    try:
        return [field.strip() for field in next(csv.reader([text]))]
    except csv.Error as error:
        raise LogError(f"line {line} of the log is not CSV: {error}") from error


def _columns(names: Iterable[str]) -> tuple[str, ...]:
    found = tuple(names)
    missing = [name for name in COLUMNS if found.count(name) != 1]
    if missing:
        raise LogError(f"the log needs each of the columns {', '.join(COLUMNS)} once, and has not {', '.join(missing)}")
    return found


def _row(line: int, fields: dict[str, str]) -> Row:
    worker, *times = (fields[name] for name in COLUMNS)
    if not worker:
        raise LogError(f"line {line} of the log names no worker")
    start, end, update_start, update_end = (_seconds(line, text) for text in times)
    if math.isnan(start) != math.isnan(end) or math.isnan(update_start) != math.isnan(update_end):
        raise LogError(f"line {line} of the log has a start without its end, or an end without its start")
    if math.isnan(start) and math.isnan(update_start):
        raise LogError(f"line {line} of the log has no times")
    return Row(line, worker, start, end, update_start, update_end)


def _seconds(line: int, text: str) -> float:
    """Return the number in a field, or NaN if it is empty."""
    try:
        value = float(text) if text else math.nan
    except ValueError:
        value = math.inf
    if text and not abs(value) <= _LATEST_S:
        raise LogError(f"line {line} of the log: {shown(text)} is not a time in seconds")
    return value


def is_number(text: str) -> bool:
    """Return whether a field may be a time: a number, or nothing."""
    try:
        return not text.strip() or math.isfinite(float(text))
    except ValueError:
        return False


def _joined(halves: list[Row]) -> list[Row]:
    """Return rows of halves: a worker's first work belongs to its first update, and so on."""
    work: defaultdict[str, list[Row]] = defaultdict(list)
    updates: defaultdict[str, list[Row]] = defaultdict(list)
    for row in halves:
        (updates if math.isnan(row.start) else work)[row.worker].append(row)
    joined = []
    for worker, its_updates in updates.items():
        its_updates.sort(key=lambda row: row.update_start)
        its_work = sorted(work[worker], key=lambda row: row.start)
        if len(its_updates) > len(its_work):
            line, count = its_updates[len(its_work)].line, len(its_work)
            raise LogError(
                f"line {line} of the log is update {count + 1:,} of worker {shown(worker)}, of {count:,} parcels"
            )
        pairs = zip(its_work, its_updates, strict=False)
        joined += [done._replace(update_start=half.update_start, update_end=half.update_end) for done, half in pairs]
    return sorted(joined, key=lambda row: row.update_start)  # whoever wrote its half first


def _parquet_rows(path: Path) -> tuple[list[Row], tuple[str, ...]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except pa.ArrowException as error:
        raise LogError(f"{shown(str(path))} is not a Parquet file") from error
    _columns(table.column_names)
    columns = [table[name].to_pylist() for name in COLUMNS]
    texts = (["" if value is None else str(value) for value in row] for row in zip(*columns, strict=True))
    return [_row(line, dict(zip(COLUMNS, row, strict=True))) for line, row in enumerate(texts, 1)], ()
