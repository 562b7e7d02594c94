"""MLflow, filled from what is on disk: nothing is lost when it is away, and nothing is doubled when it comes back.

One experiment per study, one parent run per sweep, one nested run per cell, found by the ids in the cells' metadata.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from a3c_core.records.layout import CELLS, DONE, ResultsError, read_metadata
from a3c_core.records.plan import read_plan
from experiments.grid.settings import text_of
from experiments.tracking.cell_run import CELL, LOGGED, UID, CellRun, milliseconds
from experiments.tracking.store import all_runs, experiment_of
from experiments.tracking.sweep_run import describe

if TYPE_CHECKING:
    from mlflow import MlflowClient

_PARENT = "mlflow.parentRunId"
_HOW_TO_COMPARE = """\
A run per cell, below one per sweep: the sweep's own shows what its schedules came to, and links to its cells' curves in
one plot. To compare some: select them in the table, then Compare. `episode/` is of every episode, `mean_100/` over the
last 100, `summary/` of the whole run; a step is an episode, and relative time is the run's clock."""
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
        self._ids: dict[str, str] = {}  # of runs by uid
        self._of_cells: dict[tuple[str | None, str], set[str]] = {}  # runs by (their sweep's run, cell)
        for run in all_runs(client, self._experiment):
            tags = run.data.tags
            if UID in tags:
                self._ids[tags[UID]] = run.info.run_id
            if CELL in tags:
                self._of_cells.setdefault((tags.get(_PARENT), tags[CELL]), set()).add(run.info.run_id)
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
            self._describe(sweep)
            self._client.set_terminated(self._ids[sweep])

    def _describe(self, sweep: str) -> None:
        """Let the sweep's own run show what its cells came to."""
        found = [self._metadata(cell) for cell in self._content["cells"]]
        cells = [metadata for metadata in found if metadata is not None and metadata["sweep"] == sweep]
        runs = [self._ids[metadata["uid"]] for metadata in cells]
        ended_ms = max(milliseconds(metadata["ended"]) for metadata in cells)
        question = self._content["question"]
        describe(self._client, self._ids[sweep], self._experiment, self._study, question, runs, ended_ms)

    def _metadata(self, cell: dict[str, Any]) -> dict[str, Any] | None:
        return read_metadata(self._study / CELLS / cell["id"])

    def _is_complete(self, metadata: dict[str, Any]) -> bool:
        return metadata["uid"] in self._runs and self._runs[metadata["uid"]].complete

    def _sync_cell(self, cell: dict[str, Any], metadata: dict[str, Any]) -> None:
        uid = metadata["uid"]
        if uid not in self._runs:
            run = self._ids.get(uid) or self._create_run(cell, metadata)
            every = (self._content.get("grid") or {}).get("tracking", {}).get("every", 1)
            self._runs[uid] = CellRun(self._client, run, cell, self._study / CELLS / cell["id"], every)
        self._runs[uid].sync(metadata)

    def _create_run(self, cell: dict[str, Any], metadata: dict[str, Any]) -> str:
        parent = self._parent(metadata["sweep"])
        before = self._of_cells.setdefault((parent, cell["id"]), set())
        while before:  # the cell has begun anew, and what MLflow has of it is no more on disk
            self._client.delete_run(before.pop())
        tags = {_PARENT: parent, CELL: cell["id"], LOGGED: "0"}
        name = run_name(cell["settings"], self._content.get("axes") or {})
        run = self._create(name, metadata["uid"], tags, milliseconds(metadata["started"]))
        before.add(run)
        return run

    def _parent(self, sweep: str) -> str:
        if sweep in self._ids:
            return self._ids[sweep]
        question = self._content["question"]
        self._client.set_experiment_tag(self._experiment, "mlflow.note.content", f"{question}\n\n{_HOW_TO_COMPARE}")
        tags = {"study": self._content["name"], "question": question, "mlflow.note.content": question}
        grid = self._content.get("grid") or {}
        tags |= {name: str(grid[name]) for name in ("prediction", "learned_above") if name in grid}
        return self._create(f"sweep {self._content['name']}", sweep, tags, int(time.time() * 1000))

    def _create(self, name: str, uid: str, tags: dict[str, str], start_ms: int) -> str:
        run = self._client.create_run(self._experiment, start_ms, {UID: uid, **tags}, name)
        self._ids[uid] = run.info.run_id
        return self._ids[uid]


def run_name(settings: dict[str, Any], axes: dict[str, list[Any]]) -> str:
    """Return a run's name: what differs between the runs, values first, such as `10 workers, bounded queue, seed 0`."""
    varied = [name for name in settings if name not in ("case", "seed") and len(axes.get(name, ())) != 1]
    words = [f"{text_of(settings[name])} {name.rpartition('.')[2]}" for name in varied]
    case = [settings["case"]] if "case" in settings else []
    return ", ".join([*case, *words, f"seed {settings['seed']}"])


def one_line(error: BaseException) -> str:
    """Return an error as one line."""
    return " ".join(str(error).split())[:300] or type(error).__name__
