"""Studies to test the analysis on: real small sweeps as the sweep runner lays them out, and tables made up for a verdict."""

import itertools
import json
from pathlib import Path
from typing import Any

from a3c_core.config import RunConfig
from a3c_core.files import write_json
from a3c_core.train import train

REPORT_EXCHANGE = {"channel": "mailbox", "pull": "at_once", "queue": "unbounded"}
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def plan(directory: Path, axes: dict[str, list[Any]], **fixed: Any) -> list[dict[str, Any]]:
    """Write study.json of a grid over `axes` (dotted names) with `fixed` settings; return its cells."""
    cells = []
    for values in itertools.product(*axes.values()):
        settings = dict(zip(axes, values, strict=True))
        config = RunConfig.model_validate(_nested({"exchange": REPORT_EXCHANGE, **fixed, **settings}))
        cell_id = ",".join(f"{name}={value}".replace("->", "to") for name, value in settings.items())
        cells.append({"id": cell_id, "settings": settings, "config": config.model_dump(mode="json")})
    question = "How many asynchronous workers can one learner bear, and why?"
    plan = {"name": directory.name, "question": question, "grid": "report.yaml", "axes": axes, "cells": cells}
    write_json(directory / "study.json", plan)
    return cells


def run(directory: Path, cell: dict[str, Any], status: str | None = None) -> None:
    """Run one cell of a planned study and leave what the sweep runner would."""
    where = directory / "cells" / cell["id"]
    where.mkdir(parents=True, exist_ok=True)
    write_json(where / "config.json", cell["config"])
    summary = train(RunConfig.model_validate(cell["config"]), where, run=cell["id"])
    write_metadata(where, status or summary.outcome)


def write_metadata(where: Path, status: str, **more: Any) -> None:
    """Write metadata.json of a cell."""
    base = {"commit": COMMIT, "dirty": False, "versions": {"python": "3.11"}, "cores": 2, "reason": None}
    write_json(where / "metadata.json", {**base, "status": status, "oversubscribed": False, **more})


def make(directory: Path, axes: dict[str, list[Any]], **fixed: Any) -> Path:
    """Plan a study, run all its cells, and return its directory."""
    for cell in plan(directory, axes, **fixed):
        run(directory, cell)
    return directory


def _nested(settings: dict[str, Any]) -> dict[str, Any]:
    """Return `settings` with dotted names turned into nested sections."""
    nested: dict[str, Any] = {}
    for name, value in json.loads(json.dumps(settings)).items():
        section = nested
        *outer, last = name.split(".")
        for key in outer:
            section = section.setdefault(key, {})
        if isinstance(value, dict):
            section.setdefault(last, {}).update(value)
        else:
            section[last] = value
    return nested
