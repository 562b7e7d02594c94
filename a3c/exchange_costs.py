"""What the exchange between workers and master costs here, by short real runs and a master that is fed directly."""

import os
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from a3c.benchmark.feeder import EXCHANGES, FedMaster
from a3c_core.build import new_learner
from a3c_core.config import LearnerConfig, RunConfig
from a3c_core.progress import START
from a3c_core.real.direct import DirectRuntime, is_direct
from a3c_core.real.master import RealRuntime
from a3c_core.real.shared_memory import RING_SIZE
from a3c_core.virtual.costs import CostProfile, load_profile

FROZEN = LearnerConfig(learning_rate=1e-30)  # every update is made, and changes nothing: episodes keep their length
_RUNS = 3  # of which the median counts, as in worker_costs.py
_UNTRAINED_STEPS = 60  # env steps in an untrained bird's episode
_WAIT_S = 1e-4  # per env step, of a game that waits
_PAIR = 2  # workers per core that leave the master no core of its own, but let it sleep between any two gradients
_LONGER = 3  # times as long as its start is a run whose rest counts
_CROWD = 20  # workers per core that keep it busy with such a game: only there does it matter what a worker costs


class Observed(NamedTuple):
    """One real run; seconds per episode, but for the first."""

    start_s: float  # from starting the workers to their being ready
    pull_s: float
    cpu_s: float  # of the workers' time on a core: how long they wait for one is none of their costs
    master_s: float  # of the master's time on a core
    env_steps: float


def update_cost(seconds: float = 0.2) -> float:
    """Return the seconds that the master needs to apply one gradient."""
    master = new_learner(RunConfig())
    gradient = np.random.default_rng(0).normal(size=master.parameters.size).astype(np.float32)
    return _usual(lambda: master.receive(gradient, START), seconds)


def exchange_costs(engine: str, transport: str, worker: CostProfile, seconds: float) -> dict[str, float]:
    """Return the costs of handing over gradients and parameters, given those of the `worker`'s own work."""
    master = _master_costs(transport, worker.update_s, seconds)
    config = _config(engine, transport, episodes=2)
    observe(config)  # starts the fork server and warms it up
    episodes = max(8, int(seconds / _RUNS / (worker.cycle_s(_UNTRAINED_STEPS) + 1e-4)))
    seen = usual_of(config.model_copy(update={"episodes": episodes}))
    return {
        **master,
        "load_s": seen.pull_s,
        **_handing_over(worker, seen.cpu_s - seen.pull_s - worker.cycle_s(seen.env_steps)),
        "wake_s": max(0.0, seen.master_s - sum(master.values())),
        "cold_s": _cold_cost(config, seen, seconds) if engine == "compiled" else 0.0,
        "worker_start_s": seen.start_s,
        "oversleep_s": _oversleep(),
        "resume_s": _resume_cost(config, seen, seconds) if engine == "compiled" else 0.0,
    }


def _handing_over(worker: CostProfile, rest_s: float) -> dict[str, float]:
    """Return what handing over costs, if a real worker's episode takes `rest_s` longer than its own work alone.

    It takes less where the whole cycle is compiled: then so much less does it cost to call what plays, or to begin.
    """
    called_s = worker.gradient_call_s + min(0.0, rest_s)
    begun_s = worker.reset_s + min(0.0, called_s)
    return {"send_s": max(0.0, rest_s), "gradient_call_s": max(0.0, called_s), "reset_s": max(0.0, begun_s)}


def usual_of(config: RunConfig) -> Observed:
    """Return the median of several runs by what their workers cost."""
    return sorted((observe(config) for _ in range(_RUNS)), key=lambda observed: observed.cpu_s)[_RUNS // 2]


def observe(config: RunConfig) -> Observed:
    """Return what a real run took, with the master that such runs have."""
    master = new_learner(config)
    kind = DirectRuntime if is_direct(config, master) else RealRuntime
    runtime = kind(config, load_profile("uniform"), master, lambda records: None)
    began_s = time.monotonic()
    runtime.start()
    start_s, began_cpu_s = time.monotonic() - began_s, time.process_time()
    try:
        while runtime.step():
            pass
        master_s = time.process_time() - began_cpu_s
    finally:
        split = runtime.stop()
    totals, episodes = runtime.log.totals, config.episodes
    sums = split["pull_s"], split["cpu_s"], master_s, totals.env_steps
    return Observed(start_s, *(value / episodes for value in sums))


def _config(engine: str, transport: str, episodes: int) -> RunConfig:
    exchange = EXCHANGES[transport]
    return RunConfig(workers="1", episodes=episodes, runtime="processes", engine=engine, learner=FROZEN, **exchange)


def _resume_cost(config: RunConfig, plain: Observed, seconds: float) -> float:
    """Return what a worker's episode costs more, in time on a core, when many take turns and wait in between."""
    return max(0.0, _taking_turns(config, _CROWD, seconds).cpu_s - plain.cpu_s)


def _cold_cost(config: RunConfig, plain: Observed, seconds: float) -> float:
    """Return what a gradient costs the master more when others have had its core since the last one."""
    return max(0.0, _taking_turns(config, _PAIR, seconds).master_s - plain.master_s)


def _taking_turns(config: RunConfig, per_core: int, seconds: float) -> Observed:
    """Return what is seen of so many workers per core, whose game waits, once all have loaded what they need."""
    workers = per_core * (os.cpu_count() or 1)
    each = max(8, int(seconds / _RUNS / (_UNTRAINED_STEPS * _WAIT_S)))
    environment = config.environment.model_copy(update={"wait_s": _WAIT_S})
    crowded = config.model_copy(update={"workers": str(workers), "environment": environment})
    start = observe(crowded.model_copy(update={"episodes": workers * each}))
    whole = usual_of(crowded.model_copy(update={"episodes": workers * each * _LONGER}))
    return Observed(*((_LONGER * late - early) / (_LONGER - 1) for early, late in zip(start, whole, strict=True)))


def _oversleep() -> float:
    """Return how much longer than asked a sleep lasts."""
    asked_s, taken = 0.002, []
    for _ in range(100):
        began_s = time.perf_counter()
        time.sleep(asked_s)
        taken.append(time.perf_counter() - began_s - asked_s)
    return float(np.median(taken))


def _master_costs(transport: str, update_s: float, seconds: float) -> dict[str, float]:
    """Return what a master that is never idle spends on a gradient, updating included.

    One whose loop is compiled takes less for all of it than Python for the update and the publication alone.
    """
    fed = FedMaster(transport)
    service_s = fed.update_s(seconds)
    if transport == "queue":
        read_s, publish_s = 0.0, fed.post_s()
    else:
        arrays, parameters = fed.runtime.block.arrays, fed.runtime.master.parameters
        read_s, publish_s = _usual(lambda: arrays.publish(0, parameters), 0.1), 0.0
    fed.close()
    update_s = min(update_s, service_s)
    read_s = min(read_s, service_s - update_s)
    # of the RING_SIZE gradients in a slot, only the first finds its mailbox empty
    receive_s = max(0.0, service_s - update_s - read_s - publish_s / RING_SIZE)
    return {"update_s": update_s, "receive_s": receive_s, "read_s": read_s, "publish_s": publish_s}


def _usual(call: Callable[[], object], seconds: float) -> float:
    """Return the seconds of a core that one call takes, by the median of many looks at a hundred of them."""
    looks: list[float] = []
    until_s = time.perf_counter() + seconds
    while time.perf_counter() < until_s or not looks:
        began_s = time.process_time()
        for _ in range(100):
            call()
        looks.append((time.process_time() - began_s) / 100)
    return float(np.median(looks))
