"""Running the cells of a sweep: each in its own process, as many at once as asked for."""

import signal
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import joblib
from rich.console import Console

from a3c_core.cores import cores, is_oversubscribed
from a3c_core.outsiders import modules_of
from a3c_core.results.layout import DONE, read_summary
from a3c_core.results.whole import setback
from experiments.grid.cells import Cell
from experiments.sweep import processes
from experiments.sweep.cell import Progress
from experiments.sweep.processes import Children, Message
from experiments.sweep.progress import Board
from experiments.sweep.study_folder import StudyFolder


class Plan(NamedTuple):
    """How a sweep is to run."""

    study: StudyFolder
    cells: tuple[Cell, ...]  # those to run
    jobs: int | None = None  # cells at once; None: one per core, but real runtimes alone
    fail_fast: bool = False
    sweep: str = ""  # MLflow's id of it
    lock: int | None = None  # descriptor that keeps other sweeps out
    backend: str = "local"  # or ray: cells on any machine of a cluster


class Ending(NamedTuple):
    """How a cell ended; status `waiting` if it never began."""

    cell: Cell
    status: str
    reason: str | None = None


class Listener(Protocol):
    """Whoever wants to know how cells get on."""

    def started(self, cell: Cell, note: str | None = None) -> None: ...

    def progressed(self, cell: Cell, progress: Progress) -> None: ...

    def ended(self, cell: Cell, status: str, reason: str | None) -> None: ...


def run_sweep(plan: Plan, console: Console) -> tuple[list[Ending], bool]:
    """Run all cells; return how each ended, and whether the sweep was interrupted."""
    children = Children()
    board = Board(plan.cells, console)
    with processes.stopped_by_signals(children.stop) as signals, board.shown():
        endings = _run_cells(plan, children, board)
    return [_confirmed(plan.study, ending) for ending in endings], bool(signals)


def _run_cells(plan: Plan, children: Children, board: Board) -> list[Ending]:
    if plan.backend == "ray":
        from experiments.sweep.ray_cells import run_on_ray  # an optional extra

        return run_on_ray(plan, children, board)
    endings: list[Ending] = []
    for cells, jobs in batches(plan.cells, plan.jobs):
        parallel = joblib.Parallel(n_jobs=jobs, backend="threading", pre_dispatch="all", batch_size=1)
        endings += parallel(joblib.delayed(run_one)(plan, cell, jobs, children, board) for cell in cells)
    return endings


def _confirmed(study: StudyFolder, ending: Ending) -> Ending:
    """Return the ending, or a failure if what the cell left is no longer there, as when somebody removed it."""
    if ending.status not in DONE or study.state(ending.cell) == "finished":
        return ending
    return ending._replace(status="failed", reason="its results are gone or not whole: the same command runs it again")


def batches(cells: Sequence[Cell], jobs: int | None) -> list[tuple[list[Cell], int]]:
    """Return the cells in groups with the number that may run at once: real runtimes don't share the machine."""
    virtual = [cell for cell in cells if cell.config.runtime == "simulate"]
    real = [cell for cell in cells if cell.config.runtime in ("processes", "threads")]
    on_ray = [cell for cell in cells if cell.config.runtime == "ray"]  # two could each hold what the other waits for
    groups = [(virtual, jobs or cores()), (real, jobs or 1), (on_ray, 1)]
    return [(group, min(at_once, len(group))) for group, at_once in groups if group]


def run_one(plan: Plan, cell: Cell, at_once: int, children: Children, board: Listener) -> Ending:
    """Run one cell on this machine, unless the sweep is stopping, and keep its ending on disk."""
    if children.stopping:
        return Ending(cell, "waiting")
    lost = setback(plan.study.cell(cell.id))
    board.started(cell, lost.words if lost else None)
    try:
        plan.study.prepare(cell, plan.sweep, is_oversubscribed(cell.config, at_once), goes_on=lost is None)
        status, reason = _supervise(plan, cell, children, board)
        plan.study.conclude(cell, status, reason)
    except OSError as error:  # no space left, say
        status, reason = "failed", str(error)
    board.ended(cell, status, reason)
    if status == "failed" and plan.fail_fast and not children.stopping:
        children.stop()
    return Ending(cell, status, reason)


def _supervise(plan: Plan, cell: Cell, children: Children, board: Listener) -> tuple[str, str | None]:
    """Start the cell's process, follow it to its end, and return how it ended and why."""
    directory = plan.study.cell(cell.id)
    summary = read_summary(directory)
    if summary is not None and summary["outcome"] in DONE and plan.study.flaw(cell) is None:
        return str(summary["outcome"]), None  # the sweep was killed between the cell's end and the note of it
    said: Message = {}

    def heed(message: Message) -> None:
        if "progress" in message:
            board.progressed(cell, Progress(**message["progress"]))
        else:
            said.update(message)

    log = directory / "log.txt"
    keep_open = [plan.lock] if plan.lock is not None else []
    trusted = sorted(modules_of(cell.config.model_dump(mode="json")))  # the grid has named them
    process = processes.start("experiments.sweep.cell", [str(directory), cell.id, *trusted], log, keep_open)
    code = children.follow(process, heed)
    if log.exists() and log.stat().st_size == 0:
        log.unlink()
    return _outcome(code, said, children.stopping)


def _outcome(code: int, said: Message, stopping: bool) -> tuple[str, str | None]:
    """Return status and reason from a process's exit code and last words."""
    if code == 0 and said.get("end") in DONE:
        return said["end"], None
    if said.get("end") == "failed":
        return "failed", said.get("reason")
    if stopping or said.get("end") == "interrupted":
        return "interrupted", None
    if code < 0:
        return "failed", f"its process was killed by {signal.Signals(-code).name}; log.txt may say more"
    return "failed", f"its process ended with code {code}; log.txt may say more"
