"""What run_sweep.py can be asked to do: list grids, say what a sweep would be, run it, and bring MLflow up to date."""

import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from a3c_core.command_line import heartbeat
from a3c_core.command_line.arguments import duration, python_command, shown_path
from a3c_core.errors import printable
from a3c_core.games.base import SETUP_ATARI
from a3c_core.system.ray_cluster import ADDRESS
from experiments.grid.cells import expand
from experiments.grid.errors import GridError, UserError
from experiments.grid.file import GridFile, read_grid, shipped_grids
from experiments.grid.validation import validated_cells
from experiments.provenance import ROOT
from experiments.study_folder import StudyFolder, lock_file, refused_if_unwritable
from experiments.sweep import closing, page
from experiments.sweep.estimate import cell_seconds, sweep_seconds
from experiments.sweep.one_cell import Ending, SweepPlan
from experiments.sweep.request import Request, Sweep, announcement, understand
from experiments.sweep.runner import batches, run_sweep
from experiments.tracking.background import BackgroundTracker
from experiments.tracking.uri import DEFAULT, answers, shown

if TYPE_CHECKING:
    from mlflow import MlflowClient

DONE, FAILED, MISTAKE, INTERRUPTED = 0, 1, 2, 130  # exit codes
_PATIENCE_S = 15.0  # for MLflow after an interruption


def list_grids(console: Console) -> int:
    """Print the grids that come with the project."""
    table = Table()
    for name in ("grid", "cells", "question"):
        table.add_column(name, justify="right" if name == "cells" else "left")
    for path in shipped_grids():
        file = read_grid(path)
        table.add_row(escape(printable(path.stem)), _cells_or_need(file), escape(printable(file.grid.question)))
    console.print(table)
    return DONE


def _cells_or_need(file: GridFile) -> str:
    """Return how many cells a grid has, or what must be installed before anybody can say."""
    try:
        return str(len(validated_cells(file)))
    except GridError as error:
        if any(SETUP_ATARI not in problem.reason for problem in error.problems):
            raise
        return f"needs {SETUP_ATARI}"


def dry_run(request: Request, console: Console) -> int:
    """Print what a sweep would do, and about how long it would take; change nothing."""
    sweep = understand(request)
    table = Table(title=escape(printable(f"{sweep.study.name}: {sweep.grid.question}")), title_justify="left")
    for name in ("cell", "on disk", "would take about"):
        table.add_column(name, justify="right" if name.startswith("would") else "left")
    todo = {cell.id for cell in sweep.todo}
    for cell in sweep.chosen:
        takes = duration(cell_seconds(cell.config)) if cell.id in todo else ""
        table.add_row(escape(cell.id), sweep.states[cell.id], takes)
    console.print(table)
    if not todo:
        _say(console, "Nothing to run.")
        return DONE
    if request.backend == "ray":
        _say(console, f"To run: {len(todo)} cells, as many at once as the Ray cluster has room for.")
        return DONE
    groups = ", then ".join(
        f"{len(group)} cells, {at_once} at once" for group, at_once in batches(sweep.todo, request.jobs)
    )
    _say(
        console,
        f"To run: {groups}. About {duration(sweep_seconds(sweep.todo, request.jobs))}; less for cells that collapse.",
    )
    return DONE


def run(request: Request, console: Console) -> int:
    """Run a sweep; return the exit code."""
    sweep = understand(request)
    tracker = _start_tracker(sweep.study, request.uri) if request.uri is not None else None
    try:
        with sweep.study.locked() as lock, _backend(request):
            endings, interrupted = _run_locked(request, understand(request), tracker, lock, console)
            _tell_endings(sweep, endings, console)
            made = None if interrupted else _make_page(request, sweep, bool(endings), console)
            in_haste = interrupted or (made is not None and made.interrupted)
            missing = _finish(tracker, in_haste, sweep.study, console) if tracker else None
    finally:
        if tracker is not None:
            tracker.abandon()
    _close(request, sweep.study, made, missing, console)
    if interrupted:
        _say(console, "Interrupted. The same command goes on from here.")
        return INTERRUPTED
    return FAILED if any(ending.status == "failed" for ending in endings) else DONE


def sync(results: Path, names: Sequence[str], uri: str, console: Console) -> int:
    """Bring MLflow up to date with the studies of these names, or with all; return the exit code."""
    if not os.path.isdir(results):
        raise UserError(f"there are no results in {results}")
    studies = [StudyFolder(results, name).path for name in names] or sorted(
        path.parent for path in results.glob("*/study.json")
    )
    for path in studies:
        if not (path / "study.json").exists():
            raise UserError(f"there are no results in {path}")
    if not studies:
        raise UserError(f"there are no results in {results}")
    answers(uri)
    from experiments.tracking.mirror import one_line
    from experiments.tracking.store import connect

    try:
        client = connect(uri)
        failures = [reason for path in studies if (reason := _sync_study(client, uri, path, console))]
    except UserError:
        raise
    except Exception as error:
        failures = [one_line(error)]
    for reason in failures:
        _say(console, f"MLflow is not up to date: {reason}")
    return FAILED if failures else DONE


def _sync_study(client: "MlflowClient", uri: str, path: Path, console: Console) -> str | None:
    """Bring one study up to date; return what kept it from that."""
    from experiments.tracking.mirror import Tracker

    with lock_file(path / "cells" / ".tracking.lock", patience_s=3.0):
        tracker = Tracker(client, uri, path)
        result = tracker.sync(lambda cell: _say(console, f"{path.name}: {cell}"))
        if result.reason is None:
            tracker.end_sweeps()
    _say(console, f"{path.name}: {result.complete} finished cells are in MLflow")
    return result.reason


def _backend(request: Request) -> AbstractContextManager[None]:
    """Return what must be there while cells run."""
    if request.address is not None:
        os.environ[ADDRESS] = request.address  # for this process and for its cells
    if request.backend != "ray":
        return nullcontext()
    from experiments.sweep.ray_cells import cluster  # an optional extra

    return cluster()


def _start_tracker(study: StudyFolder, uri: str) -> BackgroundTracker:
    """Start tracking, or raise UserError if the store is not there."""
    known = answers(uri)
    tracker = BackgroundTracker(study.path, uri)
    reason = None if known else tracker.wait_until_ready()
    if reason is not None:
        tracker.abandon()
        raise UserError(f"the tracking store {shown(uri)} can't be used ({reason}); --no-tracking runs without it")
    return tracker


def _run_locked(
    request: Request, sweep: Sweep, tracker: BackgroundTracker | None, lock: int, console: Console
) -> tuple[list[Ending], bool]:
    """Run the sweep while nobody else can."""
    study = sweep.study
    for line in announcement(sweep, request):
        _say(console, line)
    with refused_if_unwritable(study.path):
        aside = study.put_aside(cell for cell in sweep.todo if request.fresh or sweep.states[cell.id] == "outdated")
        grid = study.with_known_seeds(sweep.grid)
        study.write(grid, expand(grid))
        identity = study.sweep_id(request.fresh)
    if aside is not None:
        _say(console, f"Older results are kept in {aside}/")
    if tracker is not None:
        tracker.begin()
    plan = SweepPlan(study, sweep.todo, request.jobs, request.fail_fast, identity, lock, request.backend)
    return run_sweep(plan, console)


def _finish(tracker: BackgroundTracker, interrupted: bool, study: StudyFolder, console: Console) -> str | None:
    """Wait for the tracking process to tell everything; return what kept it from that."""
    cells, began_s = closing.finished_cells(study), time.monotonic()

    def line() -> str:
        told = f"MLflow: {tracker.complete} of {cells} finished cells are there"
        return f"{told}, {duration(time.monotonic() - began_s)} (Ctrl-C leaves the rest to --sync)"

    try:
        if not console.is_terminal:
            _say(console, line())
        with heartbeat.shown(line, console):
            return tracker.finish(_PATIENCE_S if interrupted else None)
    except KeyboardInterrupt:
        return "interrupted"


def _tell_endings(sweep: Sweep, endings: Sequence[Ending], console: Console) -> None:
    """Say what came of the cells."""
    closing.print_cells(sweep.study, sweep.chosen, console)
    for ending in endings:
        if ending.status == "failed":
            _say(console, f"failed: {ending.cell.id}: {ending.reason}")


def _make_page(request: Request, sweep: Sweep, anything_ran: bool, console: Console) -> page.Made | None:
    """Build the study's page, unless it is not wished for, has nothing to show, or nothing new."""
    if not request.page or not page.is_possible() or not closing.finished_cells(sweep.study):
        return None
    if not anything_ran and (sweep.study.path / page.PAGE).exists():
        return None
    return page.build(sweep.study.path, console)


def _close(request: Request, study: StudyFolder, made: page.Made | None, missing: str | None, console: Console) -> None:
    """Say where to look, and how to go on with what is missing."""
    for line in closing.where_to_look(study, request.uri):
        _say(console, line)
    if made is not None and not made.is_there:
        again = python_command("-m", "analysis.report", study.path)
        _say(console, f"The page is not up to date ({made.words}). Nothing is lost: {again}")
    if missing is not None:
        _say(console, f"MLflow is not up to date ({missing}). Nothing is lost: {_sync_command(request)}")


def _sync_command(request: Request) -> str:
    """Return the command that brings MLflow up to date."""
    words = [shown_path(ROOT / "run_sweep.py"), "--sync", "--grid", request.grid]
    words += [word for setting in request.settings for word in ("--set", setting)]
    words += ["--results", str(request.results)] if request.results != Path("results") else []
    words += ["--tracking-uri", shown(request.uri)] if request.uri not in (None, DEFAULT) else []
    return python_command(*words)


def _say(console: Console, line: str) -> None:
    console.print(printable(line), markup=False, highlight=False, soft_wrap=True)
