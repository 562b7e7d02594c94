"""One cell's run in MLflow, filled from the cell's directory.

The run's tag `episodes_logged` says how far its curves are, and is set with every batch. Should a sweep be killed
between a batch and its tag, the batch is sent again, and MLflow keeps identical points once.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from a3c_core.records import checkpoints
from a3c_core.records.layout import DONE, read_summary
from a3c_core.records.tables import read_records
from a3c_core.saved_settings import flatten
from experiments.tracking.artifacts import collect
from experiments.tracking.episode_metrics import batches
from experiments.wall_times import with_wall_times

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import RunTag

UID, CELL, LOGGED, COMPLETE, STATUS = "uid", "cell", "episodes_logged", "complete", "cell_status"
METRICS, GROUPED = "metrics", "grouped"  # a run that has them by older names is told all anew
_IN_MLFLOW = {"running": "RUNNING", "failed": "FAILED", "interrupted": "KILLED"}  # the others are FINISHED
_BEING_REPLACED = (OSError, KeyError, ValueError, pa.ArrowException)  # what reading files under way may raise
_MOST_PARAMS = 100  # that MLflow takes at once


class CellRun:
    """A run that exists in MLflow, and the directory that it mirrors."""

    def __init__(self, client: "MlflowClient", run: str, cell: dict[str, Any], directory: Path, every: int):
        self._client, self._run, self._cell, self._directory, self._every = client, run, cell, directory, every
        tags = client.get_run(run).data.tags
        self._logged = int(tags.get(LOGGED, 0)) if tags.get(METRICS) == GROUPED else 0
        self._status = tags.get(STATUS)
        self._described = False
        self.complete = tags.get(COMPLETE) == "true"

    def sync(self, metadata: dict[str, Any]) -> None:
        """Tell MLflow what is new."""
        if self.complete:
            return
        if not self._described:
            self._describe(metadata)
        final = metadata["status"] in DONE
        try:
            records = read_records(self._directory) if final else self._checkpointed_records()
        except _BEING_REPLACED:
            return
        self._log_episodes(with_wall_times(records, self._directory), metadata)
        if final:
            self._log_ending(metadata)
        self._set_status(metadata)
        if final:
            self._client.set_tag(self._run, COMPLETE, "true")
            self.complete = True

    def _describe(self, metadata: dict[str, Any]) -> None:
        """Log settings and tags."""
        from mlflow.entities import Param, RunTag

        settings = {**dict(flatten(self._cell["config"])), **self._cell["settings"]}
        params = [
            Param(name, value if isinstance(value, str) else json.dumps(value)) for name, value in settings.items()
        ]
        for start in range(0, len(params), _MOST_PARAMS):
            self._client.log_batch(self._run, params=params[start : start + _MOST_PARAMS])
        tags = [RunTag(name, value) for name, value in describing_tags(self._cell["config"], metadata).items()]
        self._client.log_batch(self._run, tags=tags)
        self._described = True

    def _checkpointed_records(self) -> pa.Table:
        """Return the records that will not be made again: those before the newest checkpoint."""
        newest = next(iter(checkpoints.found(self._directory)), None)
        count = (checkpoints.records_of(newest) or 0) if newest else 0
        return read_records(self._directory).slice(0, count)

    def _log_episodes(self, records: pa.Table, metadata: dict[str, Any]) -> None:
        from mlflow.entities import Metric

        for batch in batches(records, self._logged, milliseconds(metadata["started"]), self._every):
            metrics = [Metric(point.key, point.value, point.timestamp_ms, point.episode) for point in batch.points]
            self._client.log_batch(self._run, metrics=metrics, tags=_marks(batch.end))
            self._logged = batch.end

    def _log_ending(self, metadata: dict[str, Any]) -> None:
        """Log summary and artifacts."""
        from mlflow.entities import Metric

        summary = read_summary(self._directory) or {"episodes": 0}
        stamp_ms = milliseconds(metadata["started"]) + round(1000 * summary.get("clock_s", 0))
        numbers = {key: value for key, value in summary.items() if isinstance(value, int | float)}
        finite = {key: value for key, value in numbers.items() if abs(value) < float("inf")}
        metrics = [Metric(f"summary/{key}", value, stamp_ms, summary["episodes"]) for key, value in finite.items()]
        self._client.log_batch(self._run, metrics=metrics)
        with _scratch_folder(self._directory) as folder:
            problems = collect(self._directory, folder)
            self._client.log_artifacts(self._run, str(folder))
        if problems:
            self._client.set_tag(self._run, "artifacts_missing", "; ".join(problems)[:5000])

    def _set_status(self, metadata: dict[str, Any]) -> None:
        status = metadata["status"]
        if status == self._status:
            return
        self._client.set_tag(self._run, "reason", metadata.get("reason") or "")
        if status == "running":
            self._client.update_run(self._run, status="RUNNING")
        else:
            self._client.set_terminated(self._run, _IN_MLFLOW.get(status, "FINISHED"), milliseconds(metadata["ended"]))
        self._client.set_tag(self._run, STATUS, status)
        self._status = status


def _marks(end: int) -> "list[RunTag]":
    """Return the tags that say how far the curves are."""
    from mlflow.entities import RunTag

    return [RunTag(LOGGED, str(end)), RunTag(METRICS, GROUPED)]


@contextmanager
def _scratch_folder(cell: Path) -> Iterator[Path]:
    """Give a folder in the cell's own, where the next process finds and removes what a killed one has left."""
    folder = cell / ".artifacts"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def describing_tags(config: dict[str, Any], metadata: dict[str, Any]) -> dict[str, str]:
    """Return what a run is tagged with besides its identity."""
    tags = {
        "runtime": config["runtime"],
        "engine": config["engine"],
        "transport": {"simulate": "virtual", "ray": "ray"}.get(
            config["runtime"], config["exchange"].get("transport", "none")
        ),
        **{name: metadata.get(name) for name in ("commit", "dirty", "cores", "oversubscribed", "results_version")},
        **{f"version.{name}": version for name, version in (metadata.get("versions") or {}).items()},
        "mlflow.source.name": "run_sweep.py",
        "mlflow.source.type": "LOCAL",
        "mlflow.source.git.commit": metadata.get("commit"),
    }
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in tags.items()
        if value is not None
    }


def milliseconds(iso: str) -> int:
    """Return ISO time as MLflow counts it."""
    return round(datetime.fromisoformat(iso).timestamp() * 1000)
