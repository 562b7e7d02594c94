"""Where results are, what their status words mean, and how their small files are read.

results/<study>/study.json         the plan: question, grid, cells
results/<study>/runs.parquet       what git keeps of its runs, with curves.parquet
results/<study>/cells/<cell>/      one run: config.json, metadata.json, and what `train` leaves:
    episodes.parts/                its records so far, while it goes on
    episodes.parquet               all of its records, once it is finished
    updates.parts/                 the same, a row for each of its gradients; older results have none
    updates.parquet
    summary.json                   what it came to
    checkpoints/                   what it goes on from
    snapshots/                     checkpoints at even parts of it, if they were asked for
"""

import json
from pathlib import Path
from typing import Any

STUDY, RUNS, CURVES, CELLS = "study.json", "runs.parquet", "curves.parquet", "cells"
CONFIG, METADATA, SUMMARY = "config.json", "metadata.json", "summary.json"
EPISODES, PARTS, CHECKPOINTS = "episodes.parquet", "episodes.parts", "checkpoints"
SNAPSHOTS = "snapshots"
UPDATES, UPDATE_PARTS = "updates.parquet", "updates.parts"
DONE = ("finished", "overloaded")  # ends that tell something and need no other try


class ResultsError(Exception):
    """What is on disk is not what it should be; the message is one sentence for the user."""


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a JSON file, or None if there is no such file or it holds something else."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def read_metadata(directory: Path) -> dict[str, Any] | None:
    """Return a cell's metadata, or None if it has none; refuse a file that does not say whose they are."""
    path = directory / METADATA
    if not path.exists():
        return None
    metadata = read_json(path) or {}
    for name in ("uid", "sweep", "status", "started"):
        if not isinstance(metadata.get(name), str):
            raise ResultsError(f"{path} is not a cell's metadata: it has no {name}")
    return metadata


def read_summary(directory: Path) -> dict[str, Any] | None:
    """Return a run's summary, or None if there is none that says how the run ended and after how many episodes."""
    summary = read_json(directory / SUMMARY) or {}
    sound = isinstance(summary.get("outcome"), str) and type(summary.get("episodes")) is int
    return summary if sound else None
