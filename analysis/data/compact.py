"""The compact form of a study: runs.parquet and curves.parquet, small enough for git; everything is rebuilt from them.

runs.parquet has one row per cell that is or was there: its settings, how it ended, its summary, its costs, a digest of
its full records, its final score, and moving averages of reward and loss. curves.parquet has its records cut into bins
(metrics.binned).
"""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from a3c_core.records.digests import digest_of_file
from a3c_core.records.files import write_whole
from a3c_core.records.layout import CONFIG, CURVES, DONE, EPISODES, METADATA, RUNS, UPDATES, read_json, read_summary
from a3c_core.saved_settings import differences
from a3c_core.virtual.costs import load_profile
from analysis.data import metrics
from analysis.data.study import StudyError

_FORMAT = {b"a3c_study": b"1"}
AVERAGES = ("reward_average", "loss_average")  # metrics.moving_averages
_TEXT = ("cell", "config", "status", "reason", "commit", "summary", "costs", "episodes_sha256")
_RUN_FIELDS: list[tuple[str, pa.DataType]] = [(name, pa.string()) for name in _TEXT]
_RUN_FIELDS += [(name, pa.list_(pa.float32())) for name in AVERAGES]
_RUN_FIELDS += [("final_score", pa.float64())]  # metrics.final_score
_RUN_FIELDS += [("dirty", pa.bool_()), ("oversubscribed", pa.bool_()), ("played", pa.int64())]
_COUNTS = ("bin", "episodes", "workers", "env_steps", "updates")
_CLOCKS = ("clock_s", "arrived_s", "busy_s")
_MEANS = ("score", "return", "steps", "truncated", "staleness", "queue", "queue_wait_s", "episode_s")
_MEASURES = (*_CLOCKS, *_MEANS, "entropy", "gradient_norm", "applied")
_NEEDED = ("cell", "config", "status"), ("cell", "bin", "episodes")  # without these a table is not one of ours
_CURVE_FIELDS: list[tuple[str, pa.DataType]] = [("cell", pa.dictionary(pa.int32(), pa.string()))]
_CURVE_FIELDS += [(name, pa.int64()) for name in _COUNTS] + [(name, pa.float32()) for name in _MEASURES]


class Compact(NamedTuple):
    """Both tables of a study in their compact form."""

    runs: pd.DataFrame
    curves: pd.DataFrame


def read(folder: Path) -> Compact | None:
    """Return the compact tables in `folder`, or None if it has none; refuse files that are something else."""
    if not (folder / RUNS).exists() or not (folder / CURVES).exists():
        return None
    runs = _read_table(folder / RUNS, _RUN_FIELDS, _NEEDED[0])
    curves = _read_table(folder / CURVES, _CURVE_FIELDS, _NEEDED[1])
    return Compact(runs.to_pandas(), curves.to_pandas())


def write(folder: Path, tables: Compact) -> None:
    """Write both tables, each whole; equal tables give equal bytes."""
    for name, content in zip((RUNS, CURVES), _arrow(tables), strict=True):
        write_whole(folder / name, partial(_write_parquet, content))


def _write_parquet(content: pa.Table, path: Path) -> None:
    pq.write_table(content, path, compression="zstd")


def rounded(tables: Compact) -> Compact:
    """Return the tables as they would be read back: figures are the same before and after the records are gone."""
    return Compact(*(table.to_pandas() for table in _arrow(tables)))


def empty() -> Compact:
    """Return tables without rows."""
    return Compact(*(pa.schema(fields).empty_table().to_pandas() for fields in (_RUN_FIELDS, _CURVE_FIELDS)))


def _arrow(tables: Compact) -> list[pa.Table]:
    schemas = [pa.schema(fields, metadata=_FORMAT) for fields in (_RUN_FIELDS, _CURVE_FIELDS)]
    runs = tables.runs.assign(**{name: _lists(tables.runs[name]) for name in AVERAGES if name in tables.runs})
    tables = tables._replace(runs=runs)
    found = [
        pa.Table.from_pandas(table, schema, preserve_index=False) for table, schema in zip(tables, schemas, strict=True)
    ]
    return [table.replace_schema_metadata(_FORMAT) for table in found]


def _lists(column: pd.Series) -> pd.Series:
    """Return a column of lists with nothing where there is none: pandas makes numbers of a column without any."""
    return pd.Series([one if isinstance(one, list | np.ndarray) else None for one in column], column.index, object)


def is_of(row: Mapping[Any, Any], cell: Mapping[str, Any]) -> bool:
    """Return whether a row of the runs table is of a run with a cell's settings."""
    if row["config"] == text(cell["config"]):
        return True
    saved = parsed(row["config"])
    return bool(saved) and not differences(saved, cell["config"])


def row_of(directory: Path, cell: str, config: dict[str, Any]) -> dict[str, Any]:
    """Return a cell's row of the runs table, from its directory, with the digest of its records if it is done."""
    metadata, summary = read_json(directory / METADATA) or {}, read_summary(directory)
    row: dict[str, Any] = {
        "cell": cell,
        "config": text(config),
        "status": _if_of(str, metadata.get("status")) or "running",
        "reason": _if_of(str, metadata.get("reason")),
        "commit": _if_of(str, metadata.get("commit")),
        "dirty": _if_of(bool, metadata.get("dirty")),
        "oversubscribed": _if_of(bool, metadata.get("oversubscribed")),
        "summary": text(summary) if summary else None,
        "costs": _costs(config),
        "episodes_sha256": None,
        "played": summary["episodes"] if summary else _rows_so_far(directory),
    }
    saved = read_json(directory / CONFIG) or {}
    if "workers" not in saved or differences(saved, config):
        return {**row, "status": "different", "reason": "the run in its directory has other settings than the study"}
    if row["status"] in DONE:
        try:
            row["episodes_sha256"] = digest_of_file(directory / EPISODES)
        except OSError:
            return {**row, "status": "unreadable", "reason": f"its {EPISODES} is missing"}
    return row


def _if_of(kind: type, value: Any) -> Any:
    """Return `value` if it is of that kind: files that people touched may hold anything."""
    return value if isinstance(value, kind) else None


class Measured(NamedTuple):
    """What a cell's records come to."""

    curve: pd.DataFrame  # its rows of the curves table
    final_score: float  # metrics.final_score


def measure(directory: Path, cell: str, planned: int, env_steps: int | None = None) -> Measured:
    """Return what a cell's records come to; raise StudyError if they are unsound.

    `planned` episodes and, where they end a run, `env_steps` say what its bins are parts of.
    Where episodes took several updates, staleness and queue are those of all of them (metrics.with_updates).
    """
    path = directory / EPISODES
    try:
        found = pq.read_schema(path).names
        lacking = [name for name in metrics.COLUMNS if name not in found]
        if lacking:
            raise StudyError(f"its episodes.parquet is not one of ours: no column {', '.join(lacking[:3])}")
        records = pq.read_table(path, columns=metrics.COLUMNS).to_pandas()
    except (pa.ArrowException, OSError) as error:
        raise StudyError("its episodes.parquet can't be read: damaged or no parquet file") from error
    if not len(records) or (records["episode"].to_numpy() != range(len(records))).any():
        raise StudyError("its episodes.parquet does not hold episodes 0, 1, 2, … in order")
    if records.drop(columns=["gradient_norm", "entropy"]).isna().any().any():
        raise StudyError("its episodes.parquet has gaps in columns that are never empty")
    curve = metrics.binned(records, planned, planned_env_steps=env_steps)
    updates = _updates_beyond(directory / UPDATES, len(records))
    if updates is not None:
        curve = metrics.with_updates(curve, updates)
    curve.insert(0, "cell", cell)
    return Measured(curve, metrics.final_score(records, planned, env_steps))


def averages_of(directory: Path) -> dict[str, np.ndarray]:
    """Return the moving averages of a cell's records; nothing of records that lack what they are made of."""
    try:
        return metrics.moving_averages(pq.read_table(directory / EPISODES, columns=["return", "loss"]).to_pandas())
    except (KeyError, pa.ArrowException):
        return {}


def _updates_beyond(path: Path, episodes: int) -> pd.DataFrame | None:
    """Return a run's updates, if it has them on file and they tell more than its episodes' records do."""
    try:
        if not path.exists() or pq.read_metadata(path).num_rows <= episodes:
            return None
        return pq.read_table(path, columns=metrics.UPDATE_COLUMNS).to_pandas()
    except (pa.ArrowException, OSError) as error:
        raise StudyError(f"its {path.name} can't be read: damaged or no parquet file") from error


def text(content: Mapping[str, Any]) -> str:
    """Return settings as text that is equal for equal settings."""
    return json.dumps(content, sort_keys=True)


def parsed(content: object) -> dict[str, Any]:
    """Return what `text` made text of; nothing for anything else."""
    try:
        found = json.loads(content) if isinstance(content, str) else None
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {}


def _costs(config: dict[str, Any]) -> str | None:
    """Return the costs of a run in virtual time or of a paced one: nothing else is needed to predict N*."""
    paced_to = (config.get("pace") or {}).get("profile")
    if config.get("runtime", "simulate") != "simulate" and paced_to is None:
        return None
    try:
        profile = load_profile(paced_to or config["profile"]).overridden(config)
    except (KeyError, ValueError, OSError):
        return None
    return text(profile.model_dump(mode="json"))


def _rows_so_far(directory: Path) -> int:
    """Return how many episodes an unfinished run has on disk."""
    rows = 0
    for path in (directory / "episodes.parts").glob("*.parquet"):
        try:
            rows += pq.read_metadata(path).num_rows
        except (pa.ArrowException, OSError):  # being written, or cut short
            continue
    return rows


def _read_table(path: Path, fields: list[tuple[str, pa.DataType]], needed: tuple[str, ...]) -> pa.Table:
    """Return a table with these fields: those of another version that it lacks are empty, those beyond are left out."""
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise StudyError(f"{path} can't be read: damaged or no parquet file") from error
    ours = b"a3c_study" in (table.schema.metadata or {}) and set(needed) <= set(table.column_names)
    try:
        columns = [_column(table, name, kind) for name, kind in fields] if ours else []
    except pa.ArrowException:
        columns = []
    if not columns:
        raise StudyError(f"{path} is not a compact study table: restore it, or rebuild it from its cells")
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata=_FORMAT))


def _column(table: pa.Table, name: str, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    return table[name].cast(kind) if name in table.column_names else pa.nulls(len(table), kind)
