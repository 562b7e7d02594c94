"""Cells of a sweep on a Ray cluster, through joblib's Ray backend: on any machine that sees the results.

joblib brings pullers to the machines. Each takes cells from a switchboard, an actor beside the sweep, and runs them
with the very function that runs them here: only the board is far away, and the request to stop. A cell that is lost
with its machine goes back to the switchboard.
"""

import os
import platform
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import joblib

from a3c_core.config import RunConfig
from a3c_core.system.cores import cores
from a3c_core.system.ray_cluster import ADDRESS, NoCluster, connected
from experiments.grid.cells import Cell
from experiments.grid.errors import UserError
from experiments.processes import Children
from experiments.study_folder import lock_file
from experiments.sweep.cell import Progress
from experiments.sweep.one_cell import Ending, SweepPlan, run_one
from experiments.sweep.progress import Board

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


class State(NamedTuple):
    """What the switchboard knows."""

    news: list[tuple[str, tuple[Any, ...]]]  # for the board, since it was last asked
    stops: int  # how often the sweep was asked to stop
    waiting: int  # cells
    running: int


class Switchboard:
    """An actor: hands out cells, takes their news, and tells who runs one whether to stop."""

    def __init__(self, cells: Sequence[Cell], fail_fast: bool):
        self._waiting, self._fail_fast = list(cells), fail_fast
        self._running: dict[int, Cell] = {}  # by puller
        self._begun: Counter[str] = Counter()  # how often, by cell
        self._endings: list[Ending] = []
        self._news: list[tuple[str, tuple[Any, ...]]] = []
        self._stops = 0

    def next_cell(self, puller: int) -> Cell | None:
        """Return a cell to run, or None if there is none left."""
        if self._stops or not self._waiting:
            return None
        cell = self._running[puller] = self._waiting.pop(0)
        self._begun[cell.id] += 1
        return cell

    def tell(self, what: str, *about: Any) -> None:
        """Take a message for the board."""
        self._news.append((what, about))

    def ended(self, puller: int, ending: Ending) -> None:
        """Take note of how a cell ended."""
        self._running.pop(puller, None)
        self._endings.append(ending)
        if ending.status == "failed" and self._fail_fast:
            self._stops = max(self._stops, 1)

    def lost(self, puller: int) -> Ending | None:
        """Take back the cell of a puller that was lost; return its ending if it is not to run again."""
        cell = self._running.pop(puller, None)
        if cell is None:
            return None
        if not self._stops and self._begun[cell.id] < TRIES:
            self._waiting.insert(0, cell)
            return None
        ending = Ending(cell, "interrupted" if self._stops else "failed", "its machine was lost")
        self._endings.append(ending)
        return ending

    def stop(self, stops: int) -> None:
        self._stops = max(self._stops, stops)

    def stops(self) -> int:
        return self._stops

    def state(self) -> State:
        """Return how things stand."""
        news, self._news = self._news, []
        return State(news, self._stops, len(self._waiting), len(self._running))

    def endings(self) -> list[Ending]:
        """Return how all cells ended, those that never began included."""
        return self._endings + [Ending(cell, "waiting") for cell in self._waiting]


class FarBoard:
    """The board as a cell on another machine sees it."""

    def __init__(self, switchboard: Any):
        self._tell = switchboard.tell.remote

    def started(self, cell: Cell, note: str | None = None) -> None:
        self._tell("started", cell, note)

    def progressed(self, cell: Cell, progress: Progress) -> None:
        self._tell("progressed", cell, progress)

    def ended(self, cell: Cell, status: str, reason: str | None) -> None:
        self._tell("ended", cell, status, reason)


def run_on_ray(plan: SweepPlan, children: Children, board: Board) -> list[Ending]:
    """Run all cells of `plan` on the cluster that this process is connected to; return how each ended."""
    plan = plan._replace(study=plan.study.absolute(), lock=None)
    endings: list[Ending] = []
    for cells, cpus, at_once in groups(plan.cells, plan.jobs, _machines()):
        if children.stopping:
            endings += [Ending(cell, "waiting") for cell in cells]
        else:
            endings += _Group(plan._replace(cells=tuple(cells)), cpus, at_once, children, board).run()
    return endings


def cpus_of(config: RunConfig, largest: int) -> int:
    """Return the CPUs that a cell asks for; where no machine has enough, all of one, and its results say so."""
    if config.runtime == "simulate":
        return 1
    return 0 if config.runtime == "ray" else min(config.span.end + 1, largest)  # Ray's workers ask for their own


def groups(cells: Sequence[Cell], jobs: int | None, machines: Sequence[int]) -> list[tuple[list[Cell], int, int]]:
    """Return the cells by the CPUs that each of them asks for, with these and with how many fit in at once."""
    by_cpus: dict[int, list[Cell]] = {}
    for cell in cells:
        by_cpus.setdefault(cpus_of(cell.config, max(machines)), []).append(cell)
    made = []
    for cpus, group in by_cpus.items():
        # two cells whose workers are Ray's could each hold what the other waits for
        room = max(1, sum(machine // cpus for machine in machines)) if cpus else 1
        made.append((group, cpus, min(jobs or room, room, len(group))))
    return made


def _machines() -> list[int]:
    """Return the CPUs of each machine in the cluster."""
    import ray

    cpus = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
    return [count for count in cpus if count > 0] or [1]


class _Group:
    """Cells that ask for the same, while they run."""

    def __init__(self, plan: SweepPlan, cpus: int, at_once: int, children: Children, board: Board):
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._ray, self._children, self._board = ray, children, board
        self._plan, self._cpus, self._at_once = plan._replace(cells=()), cpus, at_once
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        actor = ray.remote(num_cpus=0, scheduling_strategy=here)(Switchboard)
        self._switchboard = actor.remote(plan.cells, plan.fail_fast)
        self._pullers = range(at_once)
        self._tasks: dict[Any, int] = {}  # pullers that were brought by Ray itself

    def run(self) -> list[Ending]:
        """Run all cells; what is lost with its machine goes on elsewhere."""
        brought = self._bring() if self._at_once > 1 else None  # joblib would run a single job in this very process
        while True:
            state = self._relay()
            over = not state.running and (state.stops or not state.waiting)
            if brought is not None and not brought.is_alive():
                brought = None
                for puller in self._pullers:  # if one is lost, joblib gives up all
                    self._lose(puller)
            elif over:
                break
            elif brought is None:
                self._look_after_tasks(state)
            time.sleep(_LOOK_S)
        if brought is not None:
            brought.join(_PATIENCE_S)
        for task in self._tasks:
            self._ray.cancel(task)  # of pullers that found no room
        return self._ray.get(self._switchboard.endings.remote())

    def _bring(self) -> threading.Thread:
        """Let joblib bring a puller to each place. It may wait for room for ever, so it has a thread of its own."""
        from ray.util.joblib import register_ray

        register_ray()

        def body() -> None:
            parallel = joblib.Parallel(
                n_jobs=self._at_once, backend="ray", ray_remote_args={"num_cpus": self._cpus}, batch_size=1
            )
            try:
                parallel(joblib.delayed(pull)(self._plan, puller, self._switchboard) for puller in self._pullers)
            except self._ray.exceptions.RayError:
                return  # a machine was lost: what is left to do is done without joblib

        thread = threading.Thread(target=body, daemon=True)
        thread.start()
        return thread

    def _look_after_tasks(self, state: State) -> None:
        """Bring pullers where there are too few, as Ray's tasks: these may wait for room, or be lost, one by one."""
        ready, _ = (
            self._ray.wait(list(self._tasks), num_returns=len(self._tasks), timeout=0) if self._tasks else ([], 0)
        )
        for task in ready:
            puller = self._tasks.pop(task)
            try:
                self._ray.get(task)
            except self._ray.exceptions.RayError:
                self._lose(puller)
        missing = min(self._at_once, state.running + state.waiting) - len(self._tasks)
        if missing > 0 and state.waiting and not state.stops:
            task = self._ray.remote(num_cpus=self._cpus, max_retries=0)(pull)
            for puller in sorted(set(self._pullers) - set(self._tasks.values()))[:missing]:
                self._tasks[task.remote(self._plan, puller, self._switchboard)] = puller

    def _lose(self, puller: int) -> None:
        ending = self._ray.get(self._switchboard.lost.remote(puller))
        if ending is not None:
            self._plan.study.conclude(*ending)
            self._board.given_up(*ending)

    def _relay(self) -> State:
        """Bring what cells say to the board, and requests to stop to the cells."""
        state = self._ray.get(self._switchboard.state.remote())
        for what, about in state.news:
            getattr(self._board, what)(*about)
        if state.stops and not self._children.stopping:
            self._children.stop()
        if self._children.asked > state.stops:
            self._switchboard.stop.remote(self._children.asked)
        return state


def pull(plan: SweepPlan, puller: int, switchboard: Any) -> None:
    """Run cells on the machine where this is called, until there are no more."""
    import ray

    os.environ[ADDRESS] = ray.get_runtime_context().gcs_address  # for workers that are Ray's too
    while (cell := ray.get(switchboard.next_cell.remote(puller))) is not None:
        try:
            ending = _run_here(plan, cell, switchboard)
        except (UserError, OSError) as error:
            ending = Ending(cell, "failed", str(error))
            switchboard.tell.remote("given_up", *ending)
        ray.get(switchboard.ended.remote(puller, ending))


def _run_here(plan: SweepPlan, cell: Cell, switchboard: Any) -> Ending:
    if not (plan.study.path / "study.json").exists():
        where = f"machine {platform.node()} does not see {plan.study.path}"
        raise UserError(f"{where}: --results must be on a file system that all machines share")
    children = Children()
    lock_path = plan.study.cell(cell.id) / ".lock"  # the machine that had it before may only seem to be lost
    with lock_file(lock_path, _PATIENCE_S) as lock, _stopped_from_afar(children, switchboard):
        return run_one(plan._replace(lock=lock), cell, 1, children, FarBoard(switchboard))


@contextmanager
def _stopped_from_afar(children: Children, switchboard: Any) -> Iterator[None]:
    """Within this block, stop the cell when the sweep is stopped."""
    import ray

    over = threading.Event()

    def watch() -> None:
        while not over.wait(_LOOK_S):
            for _ in range(ray.get(switchboard.stops.remote()) - children.asked):
                children.stop()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
