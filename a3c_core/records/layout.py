"""Where results are, what their status words mean, and how their small files are read.

results/<study>/study.json         the plan: question, grid, cells
results/<study>/runs.parquet       what git keeps of its runs, with curves.parquet
results/<study>/cells/<cell>/      one run: config.json, metadata.json, and what `train` leaves:
    episodes.parts/                its records so far, while it goes on
    episodes.parquet               all of its records, once it is finished
    updates.parts/                 the same, a row for each of its gradients; older results have none
    updates.parquet
    summary.json                   what it came to, with digests of its records, of its settings, and of itself
    checkpoints/                   what it goes on from
    snapshots/                     checkpoints at even parts of it, if they were asked for
"""

import json
from pathlib import Path
from typing import Any

from a3c_core.records.digests import digest_of, is_intact

STUDY, RUNS, CURVES, CELLS = "study.json", "runs.parquet", "curves.parquet", "cells"
CONFIG, METADATA, SUMMARY = "config.json", "metadata.json", "summary.json"
EPISODES, PARTS, CHECKPOINTS = "episodes.parquet", "episodes.parts", "checkpoints"
SNAPSHOTS = "snapshots"
UPDATES, UPDATE_PARTS = "updates.parquet", "updates.parts"
DIGESTS, SETTINGS, SEAL = "sha256", "settings", "summary_sha256"  # in a summary; see `read_digests`
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
    """Return a run's summary, or None if there is none that says how the run ended and after how many episodes.

    One whose digest is not its own is none. Older ones have no digests, and their content can't be verified.
    """
    summary = _intact_summary(directory)
    sound = isinstance(summary.get("outcome"), str) and type(summary.get("episodes")) is int
    return {name: value for name, value in summary.items() if name not in (DIGESTS, SEAL)} if sound else None


def read_digests(directory: Path) -> dict[str, str]:
    """Return the digests in a run's summary, if any: of its records by the file's name, and of its `settings`."""
    digests = _intact_summary(directory).get(DIGESTS)
    return digests if isinstance(digests, dict) else {}


def is_of_another_run(directory: Path) -> bool:
    """Return whether a run's summary was written by a run with other settings than those in its directory."""
    told, settings = read_digests(directory).get(SETTINGS), read_json(directory / CONFIG)
    return told is not None and settings is not None and told != digest_of(settings)


def _intact_summary(directory: Path) -> dict[str, Any]:
    """Return what is in a summary; nothing if it is not as it was written, be it in the name of a digest."""
    summary = read_json(directory / SUMMARY) or {}
    has_digests = DIGESTS in summary or SEAL in summary
    return {} if has_digests and not is_intact(summary, SEAL) else summary
