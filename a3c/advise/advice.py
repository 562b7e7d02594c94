"""From costs to advice: what each number of workers comes to, which remedy helps most, and which schedule."""

import math
from typing import NamedTuple

from a3c.advise.costs import Costs
from a3c.advise.queueing import MOST_WORKERS, UNBOUNDED, Outcome, System

NEARLY_ALL = 0.95  # of what the learner can do at most: more workers stop helping
_MOST_ROWS_BEYOND = 2.5  # times N*: what happens beyond is clear by then
_A_TIE = 0.1  # throughputs so close are equal, and staleness decides
_BATCH, _SHARDS, _QUEUE, _EPISODES = 8, 4, 8, 8  # of the remedies


class Counted(NamedTuple):
    """A number of workers and what it comes to."""

    workers: int
    outcome: Outcome


class Remedy(NamedTuple):
    """Another way to work, and what it comes to with as many workers."""

    name: str
    setting: str  # for a run of ours
    n0: float  # workers that it feeds
    episodes_per_s: float
    staleness: float
    grows: bool  # its queue does


class Schedule(NamedTuple):
    """Workers that grow with the episodes."""

    start: int
    end: int
    first_s: float
    further_s: float
    fixed: int  # the best number that never changes
    gain: float  # times faster than with it

    @property
    def line(self) -> str:
        """What to paste into a grid or a run's settings."""
        rule = f"{{rule: slides, first_s: {self.first_s:.4g}, further_s: {self.further_s:.4g}}}"
        return f"workers: {self.start}->{self.end}\nschedule: {rule}"


class Advice(NamedTuple):
    """All that there is to say."""

    costs: Costs
    asked: tuple[int, ...]  # numbers of workers
    fed: int  # workers that can be fed
    enough: int  # workers that do nearly all that the learner can
    counted: tuple[Counted, ...]
    remedies: tuple[Remedy, ...]  # the best first
    schedule: Schedule | None

    def at(self, workers: int) -> Outcome:
        """Return what an asked number of workers comes to."""
        return next(counted.outcome for counted in self.counted if counted.workers == workers)


def advise(costs: Costs, asked: tuple[int, ...], aim: float) -> Advice:
    """Return the advice for costs; `aim` is how busy a schedule is to keep the learner."""
    system = costs.system
    fed = min(MOST_WORKERS, math.floor(system.n0 + 1e-9))
    counted = tuple(Counted(count, costs.simulate(system._replace(workers=count))) for count in counts(system, asked))
    remedies = _remedies(costs, max(asked))
    return Advice(costs, asked, fed, _enough(costs, counted), counted, remedies, advise_schedule(costs, aim))


def counts(system: System, asked: tuple[int, ...]) -> list[int]:
    """Return the numbers of workers to look at: powers of 2, those around N0 and N*, and those asked for."""
    end = min(MOST_WORKERS, math.ceil(_MOST_ROWS_BEYOND * system.n_star))
    powers = {2**power for power in range(18) if 2**power <= end}
    around = {math.floor(system.n0 + 1e-9), math.floor(system.n0 + 1e-9) + 1, math.ceil(system.n_star - 1e-9)}
    return sorted(count for count in powers | around | set(asked) if 1 <= count <= MOST_WORKERS)


def _enough(costs: Costs, counted: tuple[Counted, ...]) -> int:
    """Return the least number of workers that come to nearly all that any number does, by halving."""
    best = max(counted, key=lambda one: one.outcome.throughput)
    low, high = 1, best.workers
    while low < high:
        middle = (low + high) // 2
        reached = costs.simulate(costs.system._replace(workers=middle)).throughput
        low, high = (low, middle) if reached >= NEARLY_ALL * best.outcome.throughput else (middle + 1, high)
    return low


def _remedies(costs: Costs, workers: int) -> tuple[Remedy, ...]:
    """Return what else one could do with so many workers, the best first."""
    base = costs.system._replace(workers=workers)
    alone = base._replace(cycle_s=base.cycle_s + base.update_s, service_s=1e-6 * base.update_s, stall_s=0.0, waits=True)
    shards = base._replace(service_s=base.service_s / _SHARDS, stall_s=base.stall_s / _SHARDS)
    patient, bounded = base._replace(waits=True), base._replace(queue=_QUEUE)
    fresher = [
        _remedy(costs, "workers wait for their update", "exchange: {pull: after_apply}", patient),
        _remedy(costs, f"a queue of at most {_QUEUE}", "exchange: {queue: bounded}", bounded),
    ]
    others = [
        *(fresher if not base.waits else []),
        _remedy(costs, f"{_BATCH} gradients an update", "", base._replace(batch=_BATCH * base.batch)),
        _remedy(costs, f"a learner in {_SHARDS} shards", "", shards),
        _remedy(
            costs,
            f"{_EPISODES} episodes a gradient",
            f"agents_per_worker: {_EPISODES}",
            base._replace(cycle_s=_EPISODES * base.cycle_s),
            _EPISODES,
        ),
        _remedy(costs, "no master: workers update themselves", "topology: hogwild", alone)._replace(n0=math.inf),
    ]
    return tuple(sorted(others, key=lambda remedy: _rank(remedy, max(other.episodes_per_s for other in others))))


def _remedy(costs: Costs, name: str, setting: str, system: System, episodes: int = 1) -> Remedy:
    outcome = costs.simulate(system)
    grows = outcome.growth > 0.01 * outcome.throughput
    return Remedy(name, setting, system.n0, episodes * outcome.throughput, outcome.staleness, grows)


def _rank(remedy: Remedy, most: float) -> tuple[bool, int, float]:
    """Return what to sort by: no queue that grows, then many episodes a second, then fresh gradients."""
    return remedy.grows, math.floor((1 - remedy.episodes_per_s / most) / _A_TIE), remedy.staleness


def advise_schedule(costs: Costs, aim: float) -> Schedule | None:
    """Return the schedule that keeps the learner as busy as `aim` while episodes grow; None if they do not."""
    if costs.growth <= 1.0:
        return None
    system = costs.system
    each_s = system.update_s / system.batch / aim  # of a cycle, for each worker
    wanted = [max(1, min(MOST_WORKERS, math.floor(cycle_s / each_s))) for cycle_s in costs.cycles_s]
    fixed = max(1, math.floor(costs.cycles_s[0] / each_s / aim))
    growing_s = sum(_seconds(costs, cycle_s, workers) for cycle_s, workers in zip(costs.cycles_s, wanted, strict=True))
    fixed_s = sum(_seconds(costs, cycle_s, fixed) for cycle_s in costs.cycles_s)
    start = wanted[0]
    return Schedule(start, max(wanted), (start + 1) * each_s, each_s, fixed, fixed_s / growing_s)


def _seconds(costs: Costs, cycle_s: float, workers: int) -> float:
    """Return the seconds per gradient while cycles take so long."""
    core_s = max(0.0, cycle_s - costs.system.latency_s)
    return 1.0 / costs.simulate(costs.system._replace(workers=workers, cycle_s=core_s)).throughput


def is_overflowing(system: System, workers: int) -> bool:
    """Return whether the queue of so many workers grows without end."""
    return not system.waits and system.queue == UNBOUNDED and workers > system.n0
