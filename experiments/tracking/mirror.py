"""MLflow, filled from what is on disk: nothing is lost when it is away, and nothing is doubled when it comes back.

One experiment per study, one parent run per sweep, one nested run per cell, found by the ids in the cells' metadata.
"""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from a3c_core.results.layout import CELLS, DONE, ResultsError, read_metadata
from a3c_core.results.plan import read_plan
from experiments.tracking.cell_run import LOGGED, UID, CellRun, milliseconds
from experiments.tracking.store import all_runs, experiment_of

if TYPE_CHECKING:
    from mlflow import MlflowClient

_MOST_COMPARED = 60  # runs in one plot
_FAILURES_IN_A_ROW = 2  # then the store is taken to be away


class Sync(NamedTuple):
    """What a pass over a study came to."""

    complete: int  # cells of which nothing is left to tell
    behind: list[str]  # cells that have ended but are not all there
    reason: str | None  # the first failure


class Tracker:
    """Brings one study's experiment up to date with its directory."""

    def __init__(self, client: "MlflowClient", uri: str, study: Path):
        self._client, self._study = client, study
        self._content = read_plan(study) or {}
        self._experiment = experiment_of(client, uri, self._content["name"])
        runs = all_runs(client, self._experiment)
        self._ids = {run.data.tags[UID]: run.info.run_id for run in runs if UID in run.data.tags}
        self._runs: dict[str, CellRun] = {}

    def sync(self, on_complete: Callable[[str], None] = lambda cell: None) -> Sync:
        """Tell MLflow what is new in every cell; one that fails does not keep the others from it."""
        failures: list[str] = []
        behind = []
        in_a_row = 0
        for cell in self._content["cells"]:
            metadata = None
            try:
                metadata = self._metadata(cell)
                if metadata is None or self._is_complete(metadata):
                    continue
                if in_a_row < _FAILURES_IN_A_ROW:
                    self._sync_cell(cell, metadata)
                    in_a_row = 0
            except Exception as error:
                failures.append(f"{cell['id']}: {one_line(error)}")
                in_a_row += not isinstance(error, ResultsError)  # that is no fault of the store's
            if metadata is not None and self._is_complete(metadata):
                on_complete(cell["id"])
            elif failures or (metadata is not None and metadata["status"] in DONE):
                behind.append(cell["id"])
        return Sync(sum(run.complete for run in self._runs.values()), behind, failures[0] if failures else None)

    def end_sweeps(self) -> None:
        """Close the parent runs of sweeps whose cells have all ended and are all there."""
        left: dict[str, bool] = {}
        for cell in self._content["cells"]:
            metadata = self._metadata(cell)
            if metadata is not None:
                left[metadata["sweep"]] = left.get(metadata["sweep"], False) or not self._is_complete(metadata)
        for sweep in (sweep for sweep, is_left in left.items() if not is_left and sweep in self._ids):
            self._client.set_tag(self._ids[sweep], "mlflow.note.content", self._note(sweep))
            self._client.set_terminated(self._ids[sweep])

    def _note(self, sweep: str) -> str:
        """Return the description of a sweep: its question, and links to its cells' curves side by side."""
        cells = [self._metadata(cell) for cell in self._content["cells"]]
        runs = [self._ids[cell["uid"]] for cell in cells if cell is not None and cell["sweep"] == sweep]
        links = [
            f"[Mean score by {name}]({comparison(self._experiment, runs[:_MOST_COMPARED], 'score_mean_100', axis)})"
            for name, axis in (("episodes", "step"), ("time", "relative"))
        ]
        return "\n\n".join([self._content["question"], *links])

    def _metadata(self, cell: dict[str, Any]) -> dict[str, Any] | None:
        return read_metadata(self._study / CELLS / cell["id"])

    def _is_complete(self, metadata: dict[str, Any]) -> bool:
        return metadata["uid"] in self._runs and self._runs[metadata["uid"]].complete

    def _sync_cell(self, cell: dict[str, Any], metadata: dict[str, Any]) -> None:
        uid = metadata["uid"]
        if uid not in self._runs:
            run = self._ids.get(uid) or self._create_run(cell["id"], metadata)
            every = (self._content.get("grid") or {}).get("tracking", {}).get("every", 1)
            self._runs[uid] = CellRun(self._client, run, cell, self._study / CELLS / cell["id"], every)
        self._runs[uid].sync(metadata)

    def _create_run(self, cell: str, metadata: dict[str, Any]) -> str:
        tags = {"mlflow.parentRunId": self._parent(metadata["sweep"]), LOGGED: "0"}
        return self._create(cell, metadata["uid"], tags, milliseconds(metadata["started"]))

    def _parent(self, sweep: str) -> str:
        if sweep in self._ids:
            return self._ids[sweep]
        question = self._content["question"]
        tags = {"study": self._content["name"], "question": question, "mlflow.note.content": question}
        return self._create(f"sweep {self._content['name']}", sweep, tags, int(time.time() * 1000))

    def _create(self, name: str, uid: str, tags: dict[str, str], start_ms: int) -> str:
        run = self._client.create_run(self._experiment, start_ms, {UID: uid, **tags}, name)
        self._ids[uid] = run.info.run_id
        return self._ids[uid]


def comparison(experiment: str, runs: Sequence[str], metric: str, axis: str) -> str:
    """Return the address, within MLflow's UI, of the runs' curves in one plot; the axis is step, wall or relative."""
    arguments = {"runs": runs, "metric": metric, "experiments": [experiment], "plot_metric_keys": [metric]}
    query = "&".join(f"{key}={quote(json.dumps(value))}" for key, value in arguments.items())
    return f"#/metric?{query}&x_axis={axis}"


def one_line(error: BaseException) -> str:
    """Return an error as one line."""
    return " ".join(str(error).split())[:300] or type(error).__name__
