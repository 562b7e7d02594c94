"""Running the cells of a sweep: each in its own process, as many at once as asked for."""

from collections.abc import Sequence

import joblib
from rich.console import Console

from a3c_core.records.layout import DONE
from a3c_core.system.cores import cores
from experiments import processes
from experiments.grid.cells import Cell
from experiments.processes import Children
from experiments.study_folder import StudyFolder
from experiments.sweep.one_cell import Ending, SweepPlan, run_one
from experiments.sweep.progress import Board


def run_sweep(plan: SweepPlan, console: Console) -> tuple[list[Ending], bool]:
    """Run all cells; return how each ended, and whether the sweep was interrupted."""
    children = Children()
    board = Board(plan.cells, console)
    with processes.stopped_by_signals(children.stop) as signals, board.shown():
        endings = _run_cells(plan, children, board)
    return [_confirmed(plan.study, ending) for ending in endings], bool(signals)


def _run_cells(plan: SweepPlan, children: Children, board: Board) -> list[Ending]:
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
