"""Cells of a sweep on a Ray cluster, through joblib's Ray backend: on any machine that sees the results.

A cell is run there by the very function that runs it here. Only the board is far away, and the wish to stop: both go
through a switchboard, an actor next to the sweep.
"""

import os
import platform
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import joblib

from a3c_core.config import RunConfig
from a3c_core.cores import cores
from a3c_core.ray_cluster import ADDRESS, NoCluster, connected
from experiments.cell import Progress
from experiments.grid import Cell
from experiments.mistakes import UserError
from experiments.processes import Children
from experiments.progress import Board
from experiments.study import lock_file
from experiments.sweep import Ending, Plan, run_one

TRIES = 3  # of a cell whose machine is lost
_LOOK_S = 0.3  # between two looks at the switchboard
_PATIENCE_S = 30.0  # with a cell that is still ending elsewhere


@contextmanager
def cluster() -> Iterator[None]:
    """Be connected to the cluster at RAY_ADDRESS, or to one of our own on this machine."""
    try:
        with connected(cores()):
            yield
    except NoCluster as error:
        raise UserError(str(error)) from error


class Switchboard:
    """An actor: where cells leave their news, and learn whether to stop."""

    def __init__(self) -> None:
        self._news: list[tuple[str, tuple[Any, ...]]] = []
        self._endings: dict[str, Ending] = {}
        self._stops = 0

    def tell(self, what: str, *about: Any) -> None:
        self._news.append((what, about))
        if what == "ended":
            ending = Ending(*about)
            self._endings[ending.cell.id] = ending

    def endings(self) -> dict[str, Ending]:
        """Return how cells ended so far: of a group that is cut short nothing else is heard."""
        return self._endings

    def news(self) -> list[tuple[str, tuple[Any, ...]]]:
        """Return what is new since the last call."""
        news, self._news = self._news, []
        return news

    def stop(self) -> None:
        self._stops += 1

    def stops(self) -> int:
        """Return how often the sweep was asked to stop."""
        return self._stops


class FarBoard:
    """The board as a cell on another machine sees it."""

    def __init__(self, switchboard: Any):
        self._tell = switchboard.tell.remote

    def started(self, cell: Cell) -> None:
        self._tell("started", cell)

    def progressed(self, cell: Cell, progress: Progress) -> None:
        self._tell("progressed", cell, progress)

    def ended(self, cell: Cell, status: str, reason: str | None) -> None:
        import ray

        ray.get(self._tell("ended", cell, status, reason))  # it must be known before the sweep counts the cell


def run_on_ray(plan: Plan, children: Children, board: Board) -> list[Ending]:
    """Run all cells of `plan` on the cluster that this process is connected to; return how each ended."""
    import ray
    from ray.util.joblib import register_ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    register_ray()
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    switchboard = ray.remote(num_cpus=0, scheduling_strategy=here)(Switchboard).remote()
    plan = plan._replace(study=plan.study.absolute(), lock=None)
    endings: list[Ending] = []
    with _relayed(switchboard, children, board):
        for cells, cpus, at_once in groups(plan.cells, plan.jobs, _machines()):
            endings += _run_group(plan, cells, cpus, at_once, switchboard, children, board)
    return endings


def cpus_of(config: RunConfig, largest: int) -> int:
    """Return the CPUs that a cell asks for; where no machine has enough, all of one, and its results say so."""
    if config.runtime in ("simulate", "ray"):  # workers of the latter ask for their own
        return 1
    return min(config.span.end + 1, largest)


def groups(cells: Sequence[Cell], jobs: int | None, machines: Sequence[int]) -> list[tuple[list[Cell], int, int]]:
    """Return the cells by the CPUs that each of them asks for, with these and with how many fit in at once."""
    by_cpus: dict[tuple[bool, int], list[Cell]] = {}
    for cell in cells:
        alone = cell.config.runtime == "ray"  # two of these could each hold what the other waits for
        by_cpus.setdefault((alone, cpus_of(cell.config, max(machines))), []).append(cell)
    made = []
    for (alone, cpus), group in by_cpus.items():
        room = 1 if alone else max(1, sum(machine // cpus for machine in machines))
        made.append((group, cpus, min(jobs or room, room, len(group))))
    return made


def _machines() -> list[int]:
    """Return the CPUs of each machine in the cluster."""
    import ray

    cpus = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
    return [count for count in cpus if count > 0] or [1]


def _run_group(
    plan: Plan, cells: list[Cell], cpus: int, at_once: int, switchboard: Any, children: Children, board: Board
) -> list[Ending]:
    """Run cells that ask for the same; what is lost with its machine goes on elsewhere."""
    import ray

    endings: dict[str, Ending] = {}
    if at_once > 1:  # joblib would run a single job in this very process
        parallel = joblib.Parallel(
            n_jobs=at_once, backend="ray", ray_remote_args={"num_cpus": cpus}, batch_size=1, pre_dispatch="n_jobs"
        )
        with suppress(ray.exceptions.RayError):  # a machine was lost, and all of joblib's jobs were given up with it
            parallel(joblib.delayed(run_there)(plan, cell, switchboard) for cell in cells)
        endings |= ray.get(switchboard.endings.remote())
    task = ray.remote(num_cpus=cpus, max_retries=TRIES - 1)(run_there)
    left = [cell for cell in cells if cell.id not in endings]
    for together in [left] if at_once > 1 else [[cell] for cell in left]:
        answers = [(cell, task.remote(plan, cell, switchboard)) for cell in together]
        for cell, answer in answers:
            try:
                endings[cell.id] = ray.get(answer)
            except ray.exceptions.RayError as error:
                status = "interrupted" if children.stopping else "failed"
                endings[cell.id] = Ending(cell, status, f"its machine was lost: {' '.join(str(error).split())}")
                board.given_up(*endings[cell.id])
    return [endings[cell.id] for cell in cells]


def run_there(plan: Plan, cell: Cell, switchboard: Any) -> Ending:
    """Run a cell on the machine where this is called."""
    import ray

    if not (plan.study.path / "study.json").exists():
        where = f"machine {platform.node()} does not see {plan.study.path}"
        return Ending(cell, "failed", f"{where}: --results must be on a file system that all machines share")
    os.environ[ADDRESS] = ray.get_runtime_context().gcs_address  # for workers that are Ray's too
    children = Children()
    try:  # the machine that had it before may only seem to be lost
        with (
            lock_file(plan.study.cell(cell.id) / ".lock", _PATIENCE_S) as lock,
            _stopped_from_afar(children, switchboard),
        ):
            return run_one(plan._replace(lock=lock), cell, 1, children, FarBoard(switchboard))
    except UserError as error:
        return Ending(cell, "failed", str(error))


@contextmanager
def _stopped_from_afar(children: Children, switchboard: Any) -> Iterator[None]:
    import ray

    over = threading.Event()

    def watch() -> None:
        heeded = 0
        while not over.wait(_LOOK_S):
            asked = ray.get(switchboard.stops.remote())
            for _ in range(asked - heeded):
                children.stop()
            heeded = asked

    with _thread(watch, over):
        yield


@contextmanager
def _relayed(switchboard: Any, children: Children, board: Board) -> Iterator[None]:
    """Within this block, bring what cells say to the board, and wishes to stop to the cells."""
    import ray

    over = threading.Event()

    def relay() -> None:
        told = 0
        while True:
            last = over.wait(_LOOK_S)
            for _ in range(children.asked - told):
                switchboard.stop.remote()
            told = children.asked
            for what, about in ray.get(switchboard.news.remote()):
                getattr(board, what)(*about)
            if last:
                return

    with _thread(relay, over):
        yield


@contextmanager
def _thread(body: Any, over: threading.Event) -> Iterator[None]:
    """Run `body` on a thread of its own until this block ends."""
    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
