"""What a user asks for, understood: the study, its grid, its cells, and what the disk holds of them already."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from a3c_core.real.oversubscription import is_oversubscribed
from a3c_core.records.plan import read_plan
from a3c_core.system.cores import cores
from a3c_core.system.ray_cluster import ray_is_installed
from experiments.grid.cells import Cell, Grid
from experiments.grid.errors import UserError
from experiments.grid.file import find_grid, read_grid
from experiments.grid.overrides import select, with_seeds, with_settings
from experiments.grid.validation import validated_cells
from experiments.study_folder import State, StudyFolder, refuse_unwritable
from experiments.sweep.runner import batches


@dataclass(frozen=True)
class Request:
    """What the command line asks for."""

    grid: str
    results: Path = Path("results")
    uri: str | None = None  # of MLflow; None: no tracking
    only: Sequence[str] = ()
    settings: Sequence[str] = ()
    seeds: str | None = None
    jobs: int | None = None
    fresh: bool = False
    fail_fast: bool = False
    backend: str = "local"
    address: str | None = None  # of a Ray cluster
    page: bool = True  # at the end


class Sweep(NamedTuple):
    """A valid request."""

    study: StudyFolder
    grid: Grid
    cells: tuple[Cell, ...]  # all of the grid
    chosen: tuple[Cell, ...]  # those asked for
    states: dict[str, State]  # of those, by id
    todo: tuple[Cell, ...]  # those of them that are to run

    def in_state(self, state: State) -> list[Cell]:
        return [cell for cell in self.chosen if self.states[cell.id] == state]


def understand(request: Request) -> Sweep:
    """Return the sweep that is wished for, or raise UserError with what is wrong with it. Nothing is written."""
    file = with_seeds(with_settings(read_grid(find_grid(request.grid)), request.settings), request.seeds)
    cells = validated_cells(file)
    chosen = select(file.grid, cells, request.only)
    study = StudyFolder(request.results, file.grid.name)
    refuse_unwritable(study.path)
    read_plan(study.path)  # a damaged one is refused before anything runs
    states = {cell.id: study.state(cell) for cell in chosen}
    todo = tuple(cell for cell in chosen if request.fresh or states[cell.id] != "finished")
    sweep = Sweep(study, file.grid, cells, chosen, states, todo)
    _refuse_missing_ray(request, todo)
    if not request.fresh:
        _refuse_other_settings(sweep)
    return sweep


def announcement(sweep: Sweep, request: Request) -> Iterator[str]:
    """Yield what is worth saying before a sweep runs."""
    yield f"{sweep.study.name}: {sweep.grid.question}"
    finished, unfinished = len(sweep.in_state("finished")), len(sweep.in_state("unfinished"))
    if finished and not request.fresh:
        yield f"{_cells(finished)} already finished: skipped (--fresh runs them again)"
    if unfinished and not request.fresh:
        yield f"{_cells(unfinished)} unfinished: resumed"
    if (damaged := sweep.in_state("damaged")) and not request.fresh:
        such_as = f"{damaged[0].id} ({sweep.study.flaw(damaged[0])})"
        yield f"{_cells(len(damaged))} finished once, but not whole, such as {such_as}: run again"
    if outdated := len(sweep.in_state("outdated")):
        yield f"{_cells(outdated)} made by an older version of the core: run again"
    if request.backend == "ray":
        yield f"{_cells(len(sweep.todo))} to run, as many at once as the Ray cluster has room for"
        return
    for group, at_once in batches(sweep.todo, request.jobs):
        yield f"{_cells(len(group))} to run, {at_once} at once"
        crowded = [cell for cell in group if is_oversubscribed(cell.config, at_once)]
        if crowded:
            yield (
                f"warning: {_cells(len(crowded))} with more processes than this machine's {cores()} cores: workers wait"
                " for a core instead of for the master, so that nothing overloads it, and their speed says little of"
                " the algorithm's. They are tagged `oversubscribed`; `runtime: simulate` avoids that. How many workers"
                " one master bears at the report's costs is answered here by the grids `report` (virtual time) and"
                " `paced` (real processes)"
            )


def _refuse_missing_ray(request: Request, cells: Sequence[Cell]) -> None:
    """Refuse cells that need Ray where it is not installed, and an address that nothing would use."""
    workers_on_ray = any(cell.config.runtime == "ray" for cell in cells)
    needed = "--backend ray" if request.backend == "ray" else "runtime: ray" if workers_on_ray else None
    if needed is None and request.address is not None and cells:
        raise UserError("--address names a Ray cluster: it needs --backend ray, or cells with runtime: ray")
    if needed is not None and not ray_is_installed():
        raise UserError(f"{needed} needs Ray, which is not installed: `make setup-ray` adds it")


def _cells(count: int) -> str:
    return f"{count} cell{'' if count == 1 else 's'}"


def _refuse_other_settings(sweep: Sweep) -> None:
    """Refuse to mix results: the same cell with other settings is another study."""
    others = sweep.in_state("different")
    if not others:
        return
    differences = sweep.study.differences(others[0])
    shown = [f"{name} {there!r} there, {here!r} here" for name, (there, here) in list(differences.items())[:3]]
    raise UserError(
        f"{sweep.study.path} holds {_cells(len(others))} with other settings, such as {others[0].id} "
        f"({'; '.join(shown)}): give the grid another name, or start over with --fresh (the old results are kept aside)"
    )
