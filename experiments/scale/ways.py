"""What is compared: learners by their costs, the distance between stations, and ways to hand gradients over."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from a3c.advise.distributions import lognormal
from a3c.advise.simulator import Factors, Outcome, System, simulate
from a3c_core.config import RunConfig
from a3c_core.virtual.capacity import capacity

WORKERS = (10, 30, 100, 300, 1_000, 3_000, 10_000)
LATENCIES_S = {"shared memory": 1e-6, "pipes": 1e-4, "data centre": 1e-3, "wide area": 0.1}  # there and back
JITTER = 0.2  # standard deviation of a cycle, of its mean
FIXED = 0.1  # share of an update that costs every shard, or every gradient of a batch, as much as a whole one
SHARDS, BACKUPS = 8, 0.05  # servers; workers that a round does not wait for, as a share of those it does
_ROUNDS = 200  # of a synchronous learner


class Learner(NamedTuple):
    """Costs of an untrained learner; seconds of a core."""

    name: str
    cycle_s: float
    update_s: float
    source: str


class Way(NamedTuple):
    """How workers and learner work together."""

    name: str
    stations: int  # cores that the learner takes
    measure: Callable[[Learner, float, int], Outcome]  # of (learner, latency, workers)


def learners() -> tuple[Learner, ...]:
    """Return those compared: ours, the report's, and a trainer of a language model."""
    known = capacity(RunConfig(profile="report"))
    steps = known.env_steps
    return (
        Learner("compiled engine", steps / 2.0e6, 25e-6, "`a3c.benchmark`: 2 M steps/s, 25 µs a gradient"),
        Learner("the report's", known.cycle_s, known.service_s, "the profile `report`"),
        Learner("language model", 60.0, 20.0, "assumed: a rollout of 60 s, an update of 20 s"),
    )


def _queued(batch: int = 1, share: float = 1.0) -> Callable[[Learner, float, int], Outcome]:
    """Return a learner with a bounded queue; `share`: what an update costs it, of that of one gradient alone."""

    def measure(learner: Learner, latency_s: float, workers: int) -> Outcome:
        served_s = learner.update_s * share
        system = System(workers, learner.cycle_s, latency_s, served_s, batch=batch, queue=max(8, batch))
        return simulate(system, _factors())

    return measure


def _synchronous(learner: Learner, latency_s: float, workers: int) -> Outcome:
    """Measure rounds that wait for all but the slowest few: one update of all that came."""
    backups = int(BACKUPS * workers)
    needed = workers - backups
    generator = np.random.default_rng(workers)
    cycles_s = learner.cycle_s * generator.choice(_factors(), (_ROUNDS, workers))
    longest_s = np.partition(cycles_s, needed - 1, axis=1)[:, needed - 1]
    update_s = learner.update_s * (1 + FIXED * (needed - 1))
    round_s = float(longest_s.mean()) + latency_s + update_s
    return Outcome(needed / round_s, update_s / round_s, 0.0, 0.0, 0.0, 0.0, workers / round_s)


def _factors() -> Factors:
    return lognormal(JITTER)


WAYS = (
    Way("one master", 1, _queued()),
    Way("batches of 8", 1, _queued(8, 1 + FIXED * 7)),
    Way("batches of 64", 1, _queued(64, 1 + FIXED * 63)),
    Way(f"{SHARDS} shards", SHARDS, _queued(1, FIXED + (1 - FIXED) / SHARDS)),
    Way("synchronous", 1, _synchronous),
)
