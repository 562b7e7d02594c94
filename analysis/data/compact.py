"""The compact form of a study: runs.parquet and curves.parquet, small enough for git; everything is rebuilt from them.

runs.parquet has one row per cell that is or was there: its settings, how it ended, its summary, its costs, and a digest
of its full records. curves.parquet has its records cut into bins (metrics.binned).
"""

import hashlib
import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from a3c_core.files import write_whole
from a3c_core.virtual.costs import load_profile
from analysis.data import metrics
from analysis.data.study import DONE, StudyError

RUNS, CURVES = "runs.parquet", "curves.parquet"
_FORMAT = {b"a3c_study": b"1"}
_TEXT = ("cell", "config", "status", "reason", "commit", "summary", "costs", "episodes_sha256")
_RUN_FIELDS: list[tuple[str, pa.DataType]] = [(name, pa.string()) for name in _TEXT]
_RUN_FIELDS += [("dirty", pa.bool_()), ("oversubscribed", pa.bool_()), ("played", pa.int64())]
_COUNTS = ("bin", "episodes", "workers", "env_steps", "updates")
_CLOCKS = ("clock_s", "arrived_s", "busy_s")
_MEANS = ("score", "return", "steps", "truncated", "staleness", "queue", "queue_wait_s", "episode_s")
_MEASURES = (*_CLOCKS, *_MEANS, "entropy", "gradient_norm", "applied")
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
    runs, curves = _read_table(folder / RUNS, _RUN_FIELDS), _read_table(folder / CURVES, _CURVE_FIELDS)
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
    found = [
        pa.Table.from_pandas(table, schema, preserve_index=False) for table, schema in zip(tables, schemas, strict=True)
    ]
    return [table.replace_schema_metadata(_FORMAT) for table in found]


def row_of(directory: Path, cell: str, config: dict[str, Any]) -> dict[str, Any]:
    """Return a cell's row of the runs table, from its directory, with the digest of its records if it is done."""
    metadata, summary = _read_json(directory / "metadata.json"), _read_json(directory / "summary.json")
    status = str(metadata.get("status") or "running")
    row: dict[str, Any] = {
        "cell": cell,
        "config": text(config),
        "status": status,
        "reason": metadata.get("reason"),
        "commit": metadata.get("commit"),
        "dirty": metadata.get("dirty"),
        "oversubscribed": metadata.get("oversubscribed"),
        "summary": text(summary) if summary else None,
        "costs": _costs(config),
        "episodes_sha256": None,
        "played": summary.get("episodes") if summary else _rows_so_far(directory),
    }
    if _read_json(directory / "config.json") != config:
        return {**row, "status": "different", "reason": "the run in its directory has other settings than the study"}
    if status in DONE:
        try:
            row["episodes_sha256"] = _digest(directory / "episodes.parquet")
        except OSError:
            return {**row, "status": "unreadable", "reason": "its episodes.parquet is missing"}
    return row


def curve_of(directory: Path, cell: str, planned: int) -> pd.DataFrame:
    """Return a cell's rows of the curves table, from its records; raise StudyError if they are unsound."""
    path = directory / "episodes.parquet"
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
    curve = metrics.binned(records, planned)
    curve.insert(0, "cell", cell)
    return curve


def text(content: dict[str, Any]) -> str:
    """Return settings as text that is equal for equal settings."""
    return json.dumps(content, sort_keys=True)


def _costs(config: dict[str, Any]) -> str | None:
    """Return the costs of a run in virtual time, before and after which nothing else is needed to predict N*."""
    if config.get("runtime", "simulate") != "simulate":
        return None
    try:
        profile = load_profile(config["profile"])
    except (KeyError, ValueError, OSError):
        return None
    overrides = {name: config.get(name) for name in ("slowdown", "update_s")}
    profile = profile.model_copy(update={name: value for name, value in overrides.items() if value is not None})
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


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _read_table(path: Path, fields: list[tuple[str, pa.DataType]]) -> pa.Table:
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise StudyError(f"{path} can't be read: damaged or no parquet file") from error
    if (table.schema.metadata or {}).get(b"a3c_study") != _FORMAT[b"a3c_study"] or table.column_names != [
        n for n, _ in fields
    ]:
        raise StudyError(
            f"{path} is not a compact study table of this version: remove it, or rebuild it from its cells"
        )
    return table
