"""One cell of a sweep: its process is started, followed to its end, and what came of it is kept on disk."""

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from a3c_core.real.oversubscription import is_oversubscribed
from a3c_core.records.completeness import setback
from a3c_core.records.layout import DONE, ResultsError, read_summary
from a3c_core.system.signals import blocked_interrupts
from a3c_core.trusted_modules import references_in
from experiments import processes
from experiments.grid.cells import Cell
from experiments.processes import Children, Message
from experiments.study_folder import StudyFolder
from experiments.sweep.cell import Progress


class SweepPlan(NamedTuple):
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


def run_one(plan: SweepPlan, cell: Cell, at_once: int, children: Children, board: Listener) -> Ending:
    """Run one cell on this machine, unless the sweep is stopping, and keep its ending on disk."""
    if children.stopping:
        return Ending(cell, "waiting")
    try:
        lost = setback(plan.study.cell(cell.id))
        board.started(cell, lost.words if lost else None)
        oversubscribed = is_oversubscribed(cell.config, at_once)
        metadata = plan.study.prepare(cell, plan.sweep, oversubscribed, goes_on=lost is None)
        status, reason = _supervise(plan, cell, children, board, has_all=lost is None)
        plan.study.conclude(cell, status, reason, metadata)
    except (OSError, ResultsError) as error:  # no space left, say
        status, reason = "failed", str(error)
    except Exception as error:  # a cell that nobody can make sense of does not end the others
        status, reason = "failed", f"{type(error).__name__}: {error}"
    board.ended(cell, status, reason)
    if status == "failed" and plan.fail_fast and not children.stopping:
        children.stop()
    return Ending(cell, status, reason)


def start_cell(arguments: Sequence[str], log: Path, keep_open: Sequence[int]) -> subprocess.Popen[bytes]:
    """Start a cell's process. A request to stop waits until its imports are done, and it can answer."""
    with blocked_interrupts():
        return processes.start("experiments.sweep.cell", arguments, log, keep_open)


def _supervise(
    plan: SweepPlan, cell: Cell, children: Children, board: Listener, has_all: bool
) -> tuple[str, str | None]:
    """Start the cell's process and follow it; return how it ended and why. `has_all`: no records were lost."""
    directory = plan.study.cell(cell.id)
    summary = read_summary(directory)
    if has_all and summary is not None and summary["outcome"] in DONE and plan.study.flaw(cell) is None:
        return str(summary["outcome"]), None  # the sweep was killed between the cell's end and the note of it
    said: Message = {}

    def heed(message: Message) -> None:
        if "progress" in message:
            board.progressed(cell, Progress(**message["progress"]))
        else:
            said.update(message)

    log = directory / "log.txt"
    keep_open = [plan.lock] if plan.lock is not None else []
    trusted = sorted(references_in(cell.config.model_dump(mode="json")))  # the grid has named them
    process = start_cell([str(directory), cell.id, *trusted], log, keep_open)
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
    if stopping:
        return "interrupted", None
    if said.get("end") == "interrupted":  # by somebody else: the sweep must not end as if all were well
        return "failed", "its process was told to stop, and left a checkpoint: the same command goes on from there"
    if code < 0:
        return "failed", f"its process was killed by {signal.Signals(-code).name}; log.txt may say more"
    return "failed", f"its process ended with code {code}; log.txt may say more"
