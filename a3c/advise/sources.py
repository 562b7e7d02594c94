"""Costs by hand, from a profile, or measured here; and back into a profile for virtual time."""

import math
import statistics
import time

import numpy as np

from a3c.advise.costs import Costs
from a3c.advise.distributions import exponential, lognormal, pareto
from a3c.advise.fit_rollouts import fit
from a3c.advise.readers.timer import LEAST_ROWS, check, log_of
from a3c.advise.simulator import CONSTANT, Factors, System
from a3c_core.virtual.costs import CostProfile, load_profile

_STEPS = 10  # along growth given by hand
_SEEDS = 10  # of untrained agents, as the studies have
_MOST_PARCELS = 10_000  # to measure
_REPORTS_EXCHANGE = {"channel": "mailbox", "pull": "at_once", "queue": "unbounded"}


def jitter(text: str) -> Factors:
    """Return the factors of `none`, `exponential`, `pareto:SHAPE`, or of a lognormal duration's standard deviation."""
    if text.startswith("pareto:"):
        return pareto(float(text.removeprefix("pareto:")))
    named = {"none": CONSTANT, "exponential": exponential()}
    return named[text] if text in named else lognormal(float(text))


def by_hand(episode_s: float, update_s: float, latency_s: float, grows: float) -> Costs:
    """Return costs that somebody knows; `grows`: how many times longer cycles are at the end."""
    system = System(1, episode_s, latency_s, update_s)
    cycle_s = episode_s + latency_s
    cycles_s = tuple(np.linspace(cycle_s, cycle_s * grows, _STEPS).tolist()) if grows != 1.0 else ()
    return Costs(system, "by the costs given", cycles_s=cycles_s)


def from_profile(name: str) -> Costs:
    """Return the costs of an untrained agent at a profile, with the report's exchange; ValueError says why not."""
    from a3c_core.config import RunConfig
    from a3c_core.virtual.capacity import capacity

    profile = load_profile(name)
    if not profile.update_s:
        raise ValueError(f"the profile {name} has updates that cost nothing: any number of workers can be fed")
    every = [capacity(RunConfig(profile=name, exchange=_REPORTS_EXCHANGE, seed=seed)) for seed in range(_SEEDS)]
    lowest, *_, highest = sorted(one.n0 for one in every)
    luck = f"initial parameters are luck: over {_SEEDS} seeds N0 is {lowest:.1f} to {highest:.1f}; their median is used"
    cycle_s = statistics.median(one.cycle_s for one in every)
    env_steps = statistics.median(one.env_steps for one in every)
    stall_s = profile.slowdown * profile.stall_s if profile.stall_every else 0.0  # before it grows
    system = System(
        workers=1,
        cycle_s=cycle_s - profile.latency_s,
        latency_s=profile.latency_s,
        service_s=every[0].service_s - (stall_s / profile.stall_every if stall_s else 0.0),
        stall_s=stall_s,
        stall_every=profile.stall_every,
        cores=profile.cores,
        threads_per_core=profile.threads_per_core,
        threading_gain=profile.threading_gain,
        master_first=profile.master_first,
    )
    kind = str(profile.jitter_deviation) if profile.jitter == "lognormal" else profile.jitter
    about = f"by the profile {name}, of an untrained agent whose episodes have {env_steps:.1f} steps"
    return Costs(system, about, jitter(kind), jitter(kind), notes=(luck,), env_steps=env_steps)


def measured(game: str, seconds: float) -> Costs:
    """Return what an untrained agent and an update cost here: of an engine, or of a Gymnasium game by its id."""
    from a3c_core.build import make_engine, new_learner
    from a3c_core.config import RunConfig
    from a3c_core.engines import ENGINES
    from a3c_core.progress import START
    from a3c_core.worker import Worker

    is_engine = game in ENGINES.names()
    config = RunConfig(engine=game) if is_engine else RunConfig(engine="tensorflow", environment={"id": game})
    learner = new_learner(config)
    worker, untrained = Worker(0, config.seed, make_engine(config)), learner.publication.copy()
    clock = time.process_time if game == "compiled" else time.perf_counter  # others compute in threads of their own
    times: list[tuple[float, ...]] = []
    env_steps = 0
    for _ in range(3):  # compile, trace and fill caches
        learner.receive(worker.work(untrained).gradient, START)
    until_s = time.perf_counter() + seconds
    while len(times) < LEAST_ROWS or (time.perf_counter() < until_s and len(times) < _MOST_PARCELS):
        began_s = clock()
        work = worker.work(untrained)
        ended_s = clock()
        learner.receive(work.gradient, START)
        times.append((began_s, ended_s, ended_s, clock()))
        env_steps += work.env_steps
    numbers = np.arange(len(times))
    log = log_of(numbers, np.zeros_like(numbers), np.array(times), env_steps=env_steps / len(times))
    costs = fit(check(log), f"measured here: {game}, untrained, without the exchange between processes")
    return costs._replace(system=costs.system._replace(waits=False, latency_s=0.0))


def as_profile(costs: Costs) -> CostProfile:
    """Return the costs as a profile for virtual time."""
    system = costs.system
    steps = 0.0 if math.isnan(costs.env_steps) else costs.env_steps
    return CostProfile(
        about=f"Written by a3c.advise {costs.about}.",
        step_s=system.cycle_s / steps if steps else 0.0,
        reset_s=0.0 if steps else system.cycle_s,
        update_s=system.service_s,
        stall_every=system.stall_every,
        stall_s=system.stall_s,
        push_latency_s=system.latency_s,
        cores=system.cores,
        threads_per_core=system.threads_per_core,
        threading_gain=system.threading_gain,
        master_first=system.master_first,
        jitter="lognormal" if costs.deviation >= 0.005 else "none",
        jitter_deviation=costs.deviation if costs.deviation >= 0.005 else 0.2,
    )
