"""A study on disk: results/<study>/study.json, and one directory per cell with its settings, metadata and results."""

import fcntl
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from a3c_core import saved_settings as settings
from a3c_core.records.completeness import flaw
from a3c_core.records.files import write_json
from a3c_core.records.layout import CELLS, CONFIG, CURVES, DONE, METADATA, RUNS, STUDY, ResultsError, read_json
from a3c_core.records.plan import read_plan
from a3c_core.train import RESULTS_VERSION
from experiments.grid.cells import Cell, Grid
from experiments.grid.errors import UserError
from experiments.provenance import provenance

State = Literal["new", "finished", "damaged", "unfinished", "outdated", "different"]
_COMPACT = (STUDY, RUNS, CURVES)  # what is kept of a study in git
_LONGEST_NAME = 255  # bytes, in any file system
_LOCK_PATIENCE_S = 15.0  # a killed sweep's cells need some seconds to notice


class StudyFolder:
    """The directory of one study."""

    def __init__(self, results: Path, name: str):
        self.name = name
        self.path = results / name

    def absolute(self) -> "StudyFolder":
        """Return the same study by a path that is good in any working directory."""
        return StudyFolder(self.path.parent.absolute(), self.name)

    def cell(self, identity: str) -> Path:
        """Return a cell's directory."""
        return self.path / CELLS / identity

    def state(self, cell: Cell) -> State:
        """Return what the disk holds of a cell."""
        directory = self.cell(cell.id)
        if self.differences(cell):
            return "different"
        if not (directory / CONFIG).exists():
            return "new"
        metadata = read_json(directory / METADATA) or {}
        if metadata.get("results_version", RESULTS_VERSION) != RESULTS_VERSION:
            return "outdated"
        if metadata.get("status") not in DONE:
            return "unfinished"
        return "damaged" if self.flaw(cell) else "finished"

    def flaw(self, cell: Cell) -> str | None:
        """Return what keeps a cell that says it is finished from being whole."""
        return flaw(self.cell(cell.id), cell.config.episodes, cell.config.env_steps)

    def differences(self, cell: Cell) -> dict[str, tuple[Any, Any]]:
        """Return the settings in which the disk differs, be it only in the compact tables: name -> (there, here)."""
        path = self.cell(cell.id) / CONFIG
        saved = read_json(path) or {} if path.exists() else self._kept.get(cell.id)
        if saved is None:
            return {}
        if "workers" not in saved:
            raise ResultsError(f"{path} does not hold a run's settings: restore it, or remove the folder of its cell")
        return settings.differences(saved, cell.config.model_dump(mode="json"))

    @cached_property
    def _kept(self) -> dict[str, dict[str, Any]]:
        """The settings of the runs in the compact tables, by cell."""
        try:
            rows = pq.read_table(self.path / RUNS, columns=["cell", "config"]).to_pylist()
            return {row["cell"]: json.loads(row["config"]) for row in rows}
        except FileNotFoundError:
            return {}
        except (pa.ArrowException, OSError, ValueError, TypeError) as error:
            raise ResultsError(f"{self.path / RUNS} is not a table of runs: restore it, or remove it") from error

    def with_known_seeds(self, grid: Grid) -> Grid:
        """Return the grid with the seeds that the study had before: running fewer doesn't make it forget the others."""
        known = (read_plan(self.path) or {}).get("grid") or {}
        if _but_for_seeds(known) != _but_for_seeds(grid.as_data()):
            return grid
        return replace(grid, seeds=tuple(dict.fromkeys([*known["seeds"], *grid.seeds])))

    def write(self, grid: Grid, cells: Sequence[Cell]) -> None:
        """Write study.json: the grid and all its cells."""
        write_json(
            self.path / STUDY,
            {
                "name": self.name,
                "question": grid.question,
                "grid": grid.as_data(),
                "axes": grid.all_axes,
                "cells": [
                    {"id": cell.id, "settings": cell.settings, "config": cell.config.model_dump(mode="json")}
                    for cell in cells
                ],
            },
        )

    def prepare(self, cell: Cell, sweep: str, oversubscribed: bool, goes_on: bool = True) -> dict[str, Any]:
        """Write a cell's settings and metadata before it runs, and return these.

        A cell that goes on keeps its identity and first start.
        """
        directory = self.cell(cell.id)
        old = (read_json(directory / METADATA) or {}) if goes_on else {}
        write_json(directory / CONFIG, cell.config.model_dump(mode="json"))
        fresh: dict[str, Any] = {"uid": uuid.uuid4().hex, "sweep": sweep, "started": now(), "resumed": []}
        identity = {key: old[key] if isinstance(old.get(key), type(value)) else value for key, value in fresh.items()}
        if old:
            identity["resumed"] = [*identity["resumed"], now()]
        metadata = {
            "id": cell.id,
            **identity,
            "ended": None,
            "status": "running",
            "reason": None,
            "oversubscribed": oversubscribed,
            **provenance(),
        }
        write_json(directory / METADATA, metadata)
        return metadata

    def conclude(
        self, cell: Cell, status: str, reason: str | None = None, metadata: dict[str, Any] | None = None
    ) -> None:
        """Write how a cell ended. `metadata`: what `prepare` returned, since what lies on disk may be damaged."""
        path = self.cell(cell.id) / METADATA
        known = metadata or read_json(path) or {}
        write_json(path, {**known, "ended": now(), "status": status, "reason": reason})

    def put_aside(self, cells: Iterable[Cell]) -> Path | None:
        """Move the cells that exist to aside/<number>, a study directory of its own; return it if there were any."""
        chosen = list(cells)
        there = [cell for cell in chosen if self.cell(cell.id).exists()]
        if not there and not any(cell.id in self._kept for cell in chosen):
            return None
        numbers = [int(path.name) for path in (self.path / "aside").glob("*") if path.name.isdecimal()]
        aside = self.path / "aside" / str(max(numbers, default=0) + 1)
        (aside / CELLS).mkdir(parents=True)
        for name in _COMPACT:
            if (self.path / name).exists():
                shutil.copy2(self.path / name, aside)
        for cell in there:
            self.cell(cell.id).rename(aside / CELLS / cell.id)
        return aside

    def sweep_id(self, fresh: bool = False) -> str:
        """Return the id under which MLflow groups the study's runs; a fresh start gets a new one."""
        path = self.path / CELLS / ".sweep.json"
        known = (read_json(path) or {}).get("sweep")
        if isinstance(known, str) and not fresh:
            return known
        sweep = uuid.uuid4().hex
        write_json(path, {"sweep": sweep, "started": now()})
        return sweep

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Hold the study's lock. Processes that inherit the descriptor hold it too, until the last of them ends."""
        with lock_file(self.path / CELLS / ".lock", _LOCK_PATIENCE_S) as descriptor:
            yield descriptor


def _but_for_seeds(grid: dict[str, Any]) -> dict[str, Any]:
    """Return what makes a grid's cells what they are, but for their seeds; settings at their defaults say nothing."""
    base = settings.beyond_defaults(grid.get("base", {}))
    return {"name": grid.get("name"), "base": base, "axes": grid.get("axes", {}), "cases": grid.get("cases", {})}


@contextmanager
def lock_file(path: Path, patience_s: float) -> Iterator[int]:
    """Hold a lock on the file, waiting for it for a while; yield its descriptor."""
    with refused_if_unwritable(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    deadline = time.monotonic() + patience_s
    try:
        while not _lock(descriptor):
            if time.monotonic() > deadline:
                raise UserError(f"another sweep is running in {path.parents[1]}: wait for its end, or stop it")
            time.sleep(0.1)
        yield descriptor
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False


def now() -> str:
    """Return the time as ISO text, in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@contextmanager
def refused_if_unwritable(folder: Path) -> Iterator[None]:
    """Raise UserError if writing to `folder` fails within this block, as on a full disk."""
    try:
        yield
    except OSError as error:
        raise UserError(f"results can't be written to {folder}: {error.strerror or error}") from error


def refuse_unwritable(folder: Path) -> None:
    """Raise UserError if nothing can be written to `folder`, which need not exist yet; leave no trace."""
    nearest = folder.absolute()
    while not os.path.exists(nearest) and nearest != nearest.parent:
        nearest = nearest.parent
    if any(len(os.fsencode(part)) > _LONGEST_NAME for part in folder.parts):
        raise UserError(f"results can't be written to {folder}: the name is too long")
    if not nearest.is_dir():
        raise UserError(f"results can't be written to {folder}: {nearest} is not a folder")
    trial = nearest / f".writable-{uuid.uuid4().hex}"
    with refused_if_unwritable(folder):
        trial.mkdir()
        trial.rmdir()
