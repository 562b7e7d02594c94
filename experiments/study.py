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
from pathlib import Path
from typing import Any, Literal

from a3c_core.config import RunConfig
from a3c_core.files import write_json
from a3c_core.outsiders import modules_of, refuse_untrusted
from a3c_core.train import RESULTS_VERSION
from experiments.grid import Cell, Grid
from experiments.mistakes import UserError
from experiments.provenance import provenance
from experiments.settings import flatten, of_config

State = Literal["new", "finished", "unfinished", "outdated", "different"]
DONE = ("finished", "overloaded")  # ends that need no other try
_LONGEST_NAME = 255  # bytes, in any file system
_LOCK_PATIENCE_S = 15.0  # a killed sweep's cells need some seconds to notice


class Study:
    """The directory of one study."""

    def __init__(self, results: Path, name: str):
        self.name = name
        self.path = results / name

    def absolute(self) -> "Study":
        """Return the same study by a path that is good in any working directory."""
        return Study(self.path.parent.absolute(), self.name)

    def cell(self, identity: str) -> Path:
        """Return a cell's directory."""
        return self.path / "cells" / identity

    def state(self, cell: Cell) -> State:
        """Return what the disk holds of a cell."""
        directory = self.cell(cell.id)
        if not (directory / "config.json").exists():
            return "new"
        if self.differences(cell):
            return "different"
        metadata = read_json(directory / "metadata.json") or {}
        if metadata.get("results_version", RESULTS_VERSION) != RESULTS_VERSION:
            return "outdated"
        whole = metadata.get("status") in DONE and (directory / "episodes.parquet").exists()
        return "finished" if whole else "unfinished"

    def differences(self, cell: Cell) -> dict[str, tuple[Any, Any]]:
        """Return the settings in which the disk differs: name -> (there, here)."""
        saved = read_json(self.cell(cell.id) / "config.json") or {}
        try:
            refuse_untrusted(saved, modules_of(cell.config.model_dump()), cell.id)
            there = of_config(RunConfig.model_validate(saved))  # newer settings get their defaults
        except ValueError:
            there = dict(flatten(saved))
        here = of_config(cell.config)
        return {
            name: (there.get(name), here.get(name))
            for name in {**there, **here}
            if there.get(name) != here.get(name) or (name in there) != (name in here)
        }

    def with_known_seeds(self, grid: Grid) -> Grid:
        """Return the grid with the seeds that the study had before: running fewer doesn't make it forget the others."""
        known = (read_json(self.path / "study.json") or {}).get("grid", {})
        rest = {key: value for key, value in grid.as_data().items() if key not in ("seeds", "tracking", "question")}
        if any(known.get(key) != value for key, value in rest.items()):
            return grid
        return replace(grid, seeds=tuple(dict.fromkeys([*known["seeds"], *grid.seeds])))

    def write(self, grid: Grid, cells: Sequence[Cell]) -> None:
        """Write study.json: the grid and all its cells."""
        write_json(
            self.path / "study.json",
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

    def prepare(self, cell: Cell, sweep: str, oversubscribed: bool) -> None:
        """Write a cell's settings and metadata before it runs; one that resumes keeps its identity and first start."""
        directory = self.cell(cell.id)
        old = read_json(directory / "metadata.json") or {}
        write_json(directory / "config.json", cell.config.model_dump(mode="json"))
        fresh = {"uid": uuid.uuid4().hex, "sweep": sweep, "started": now(), "resumed": []}
        identity = {key: old.get(key, value) for key, value in fresh.items()}
        if old:
            identity["resumed"] = [*identity["resumed"], now()]
        write_json(
            directory / "metadata.json",
            {
                "id": cell.id,
                **identity,
                "ended": None,
                "status": "running",
                "reason": None,
                "oversubscribed": oversubscribed,
                **provenance(),
            },
        )

    def conclude(self, cell: Cell, status: str, reason: str | None = None) -> None:
        """Write how a cell ended."""
        path = self.cell(cell.id) / "metadata.json"
        write_json(path, {**(read_json(path) or {}), "ended": now(), "status": status, "reason": reason})

    def put_aside(self, cells: Iterable[Cell]) -> Path | None:
        """Move the cells that exist to aside/<number>, a study directory of its own; return it if there were any."""
        there = [cell for cell in cells if self.cell(cell.id).exists()]
        if not there:
            return None
        numbers = [int(path.name) for path in (self.path / "aside").glob("*") if path.name.isdecimal()]
        aside = self.path / "aside" / str(max(numbers, default=0) + 1)
        (aside / "cells").mkdir(parents=True)
        if (self.path / "study.json").exists():
            shutil.copy2(self.path / "study.json", aside)
        for cell in there:
            self.cell(cell.id).rename(aside / "cells" / cell.id)
        return aside

    def sweep_id(self, fresh: bool = False) -> str:
        """Return the id under which MLflow groups the study's runs; a fresh start gets a new one."""
        path = self.path / "cells" / ".sweep.json"
        known = read_json(path)
        if known is None or fresh:
            known = {"sweep": uuid.uuid4().hex, "started": now()}
            write_json(path, known)
        return str(known["sweep"])

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Hold the study's lock. Processes that inherit the descriptor hold it too, until the last of them ends."""
        with lock_file(self.path / "cells" / ".lock", _LOCK_PATIENCE_S) as descriptor:
            yield descriptor


@contextmanager
def lock_file(path: Path, patience_s: float) -> Iterator[int]:
    """Hold a lock on the file, waiting for it for a while; yield its descriptor."""
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


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a JSON file, or None if there is no such file or it holds something else."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def now() -> str:
    """Return the time as ISO text, in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


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
    try:
        trial.mkdir()
        trial.rmdir()
    except OSError as error:
        raise UserError(f"results can't be written to {folder}: {error.strerror}") from error
