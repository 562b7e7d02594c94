"""Short runs with real workers, watched while they play: rates, memory and start-up."""

import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from a3c_core.build import new_learner
from a3c_core.config import RunConfig
from a3c_core.models.parameters import Vector
from a3c_core.real.direct import DirectRuntime, is_direct
from a3c_core.real.master import RealRuntime
from a3c_core.runtime import Runtime
from a3c_core.virtual.capacity import profile_of
from a3c_core.virtual.costs import load_profile
from a3c_core.virtual.simulation import Simulation

_WARM_UP = 0.3  # of the time given, or longer: while everyone traces graphs, or is in the first episode, few finish one


class Seen(NamedTuple):
    """What a run was seen to do. Its rates are per real second."""

    env_steps_per_s: float
    episodes_per_s: float
    updates_per_s: float
    core_s: float  # of this process, which is the master's, per update
    start_s: float = 0.0  # from starting the first worker to all being ready
    worker_bytes: float | None = None  # a worker's memory, with what it shares divided fairly; None if not known


def watch_real(config: RunConfig, parameters: Vector, seconds: float, episodes: int = 1) -> Seen:
    """Return what a real run does within `seconds`, or longer if there are not `episodes` by then."""
    master = new_learner(config)
    master.parameters[:] = parameters
    kind = DirectRuntime if is_direct(config, master) else RealRuntime
    runtime = kind(config, load_profile("uniform"), master, lambda records: None)
    began_s = time.monotonic()
    runtime.start()
    start_s = time.monotonic() - began_s
    try:
        seen = _watch(runtime, seconds, episodes)
        bodies = [getattr(member, "body", None) for member in runtime.pool.members.values()]  # Ray's are elsewhere
        worker_bytes = _memory([getattr(body, "pid", None) for body in bodies])
    finally:
        runtime.stop()
    return seen._replace(start_s=start_s, worker_bytes=worker_bytes)


def watch_virtual(config: RunConfig, parameters: Vector, seconds: float) -> Seen:
    """Return what a run in virtual time does within `seconds` of real time."""
    master = new_learner(config)
    master.parameters[:] = parameters
    simulation = Simulation(config, profile_of(config), master, lambda records: None)
    simulation.start()
    return _watch(simulation, seconds)


def _watch(runtime: Runtime, seconds: float, episodes: int = 1) -> Seen:
    _run_on(runtime, seconds * _WARM_UP, episodes)
    before, began_s, began_core_s = _counts(runtime), time.monotonic(), time.process_time()
    _run_on(runtime, seconds, runtime.log.episodes + episodes)
    taken_s, core_s = time.monotonic() - began_s, time.process_time() - began_core_s
    steps, played, updates = (_counts(runtime) - before).tolist()
    return Seen(steps / taken_s, played / taken_s, updates / taken_s, core_s / max(updates, 1))


def _run_on(runtime: Runtime, seconds: float, episodes: int) -> None:
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s or runtime.log.episodes < episodes:
        runtime.advance(runtime.steps_between_looks)


def _counts(runtime: Runtime) -> np.ndarray:
    totals = runtime.log.totals
    return np.array([totals.env_steps, runtime.log.episodes, totals.applied], float)


def _memory(pids: list[int | None]) -> float | None:
    """Return the median proportional set size of processes, in bytes, where the system tells it."""
    sizes = [size for pid in pids if pid is not None and (size := _proportional_bytes(pid)) is not None]
    return float(np.median(sizes)) if sizes else None


def _proportional_bytes(pid: int) -> int | None:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:")), None)
