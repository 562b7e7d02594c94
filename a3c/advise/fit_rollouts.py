"""From a log of single rollouts to costs: distributions and not means, growth, and the learner's stops."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from a3c.advise.costs import Costs
from a3c.advise.distributions import empirical
from a3c.advise.measurements import Log, Numbers
from a3c.advise.simulator import UNBOUNDED, System
from a3c_core.command_line.arguments import in_seconds

PARTS = 10  # of a log, to see growth
_GROWN = 1.5  # times as long at the end: nobody would call less growth
_BLOCKS = 20  # whose means tell how sure the whole's is, however its rows depend on each other
_STOP = 5.0  # times a median update: no update any more
_ACCIDENTS = 3  # stops: so many are the learner's ways
_FEWEST = 10  # rows that tell something
_SLIGHT = 0.01  # of a median update: two times are the same
_SOME = 0.1  # of the workers that met a busy learner, held up: its queue is bounded
QUEUE = 8  # how long it is then said to be: the log does not tell
_HEAVY = 0.1  # of all time, by the longest 1 %


class Updates(NamedTuple):
    """What the learner did, update by update; arrays have one entry for each."""

    service_s: Numbers  # with what the learner does between updates while parcels wait
    found_idle: NDArray[np.bool_]  # of each parcel, not update: whether it found the learner idle
    latency_s: float  # a parcel is under way for so long
    batch: int


class Stalls(NamedTuple):
    """Stops of the learner that come again and again."""

    seconds: float
    every: int  # updates
    are: NDArray[np.int64]  # these updates
    words: str


class Exchange(NamedTuple):
    """How workers go on after they have handed over a parcel."""

    waits: bool  # until it was applied
    queue: int
    lag_s: float  # their own


def fit(log: Log, about: str) -> Costs:
    """Return the costs that explain a log."""
    updates = observe_updates(log)
    exchange = _exchange(log, updates.found_idle)
    stalls, accidents, stops = find_stops(updates)
    steady_s = np.delete(updates.service_s, accidents if stalls is None else stalls.are)
    work_s = (log.end - log.start)[np.argsort(log.end, kind="stable")]
    parts = [part.mean() for part in np.array_split(work_s, PARTS)]
    grows = _grows(parts)
    usual_s = np.repeat(parts, [part.size for part in np.array_split(work_s, PARTS)]) if grows else work_s.mean()
    latency_s = exchange.lag_s + updates.latency_s
    system = System(
        workers=int(log.worker.max()) + 1,
        cycle_s=float(min(parts[0], parts[-1]) if grows else work_s.mean()),  # the shortest decides
        latency_s=latency_s,
        service_s=float(steady_s.mean()),
        batch=updates.batch,
        waits=exchange.waits,
        queue=exchange.queue,
        stall_s=stalls.seconds if stalls else 0.0,
        stall_every=stalls.every if stalls else 0,
    )
    held = f"a full queue holds workers up; its length is not in the log, {QUEUE} is assumed: say it with --queue"
    words = [
        *log.notes,
        f"by the log workers {'wait for their update' if exchange.waits else 'do not wait for their update'}",
        held if exchange.queue else "",
        _tail(work_s / usual_s, "episodes"),
        _tail(steady_s, "updates"),
        stops,
    ]
    return Costs(
        system=system,
        about=about,
        cycle_factors=empirical(work_s / usual_s),
        service_factors=empirical(steady_s),
        notes=tuple(word for word in words if word),
        uncertainty=2.0 * float(np.hypot(_error(work_s / usual_s), _error(np.delete(updates.service_s, accidents)))),
        cycles_s=tuple(float(part) + latency_s for part in parts) if grows else (),
        parcels=len(work_s),
        env_steps=log.env_steps,
    )


def observe_updates(log: Log) -> Updates:
    """Return the learner's updates. A pause before one is the learner's own if a parcel waited, else latency."""
    changes = (np.diff(log.update_start) != 0) | (np.diff(log.update_end) != 0)
    first = np.flatnonzero(np.concatenate(([True], changes)))
    began_s, ended_s = log.update_start[first], log.update_end[first]
    complete_s = np.maximum.reduceat(log.end, first)  # the last of a batch has come
    free_s = np.concatenate(([-np.inf], ended_s[:-1]))
    was_idle = complete_s >= free_s
    pause_s = np.maximum(began_s - np.maximum(complete_s, free_s), 0.0)
    own_s = float(np.median(pause_s[~was_idle])) if np.sum(~was_idle) >= _FEWEST else 0.0
    latency_s = max(0.0, float(np.median(pause_s[was_idle])) - own_s) if np.sum(was_idle) >= _FEWEST else 0.0
    busy_s = ended_s - began_s
    excess_s = pause_s - latency_s
    stopped = excess_s > _STOP * (np.median(busy_s) + own_s)
    service_s = busy_s + np.where(was_idle & ~stopped, own_s, np.maximum(excess_s, 0.0) if own_s else pause_s)
    sizes = np.diff(np.append(first, log.end.size))
    return Updates(service_s, np.repeat(was_idle, sizes), latency_s, batch=max(1, round(sizes.mean())))


def find_stops(updates: Updates) -> tuple[Stalls | None, NDArray[np.int64], str]:
    """Return stops that come again and again, those that are no part of the learner's ways, and all in words."""
    service_s = updates.service_s
    usual_s = float(np.median(service_s))
    are = np.flatnonzero(service_s > _STOP * usual_s)
    lost_s = service_s[are] - usual_s
    none = np.array([], np.int64)
    if 0 < are.size < _ACCIDENTS and lost_s.sum() > _SLIGHT * service_s.sum():
        times = "once" if are.size == 1 else "twice"
        return (
            None,
            are,
            f"the master stopped {times}, for {in_seconds(lost_s.max())}: left out, as when things start up",
        )
    stalls = _stalls(are, lost_s) if are.size >= _ACCIDENTS else None
    return (None, none, "") if stalls is None else (stalls, none, stalls.words)


def _stalls(are: NDArray[np.int64], lost_s: Numbers) -> Stalls | None:
    """Return the stops as periodic ones if they come after about equally many updates."""
    every = float(np.median(np.diff(are)))
    periods = np.diff(are) / every
    if every < 2 or np.mean(np.abs(periods - np.round(periods)) < 0.1) < 0.9 or np.mean(np.round(periods) == 1) < 0.5:
        return None
    words = f"the master stops for {in_seconds(lost_s.mean())} every {round(every):,} updates"
    if lost_s[-1] > _GROWN * lost_s[0]:
        words += f" (for {in_seconds(lost_s[0])} at first, {in_seconds(lost_s[-1])} at the end)"
    return Stalls(float(lost_s.mean()), round(every), are, words)


def _exchange(log: Log, found_idle: NDArray[np.bool_]) -> Exchange:
    """Return how workers go on after a parcel: when, and whether a full queue holds them up."""
    order = np.lexsort((log.start, log.worker))
    same = np.flatnonzero(np.diff(log.worker[order]) == 0)
    before, after = order[same], order[same + 1]
    off_s = _SLIGHT * float(np.median(log.update_end - log.update_start))
    waits = log.waits
    if waits is None:
        waits = before.size > 0 and bool(np.mean(log.start[after] >= log.update_end[before] - off_s) > 0.9)
    if waits:
        lag_s = log.start[after] - log.update_end[before]
        return Exchange(True, UNBOUNDED, max(0.0, float(np.median(lag_s))) if lag_s.size else 0.0)
    lag_s = np.maximum(log.start[after] - log.end[before], 0.0)
    free = lag_s[found_idle[before]]  # nothing but its own affairs held such a worker up
    own_s = float(np.median(free)) if free.size >= _FEWEST else 0.0
    held = lag_s > own_s + 0.5 * float(np.median(log.update_end - log.update_start))  # by updates, not by trifles
    met_busy = ~found_idle[before]
    is_bounded = bool(met_busy.any() and held[met_busy].mean() > _SOME)
    return Exchange(False, QUEUE if is_bounded else UNBOUNDED, own_s)


def _grows(parts: list[float]) -> bool:
    """Return whether means change by much, and mostly in one direction."""
    steps = np.sign(np.diff(parts))
    ratio = parts[-1] / max(parts[0], 1e-12)
    return (ratio > _GROWN and (steps > 0).mean() > 0.6) or (ratio < 1 / _GROWN and (steps < 0).mean() > 0.6)


def _error(values: Numbers) -> float:
    """Return the relative standard error of a mean, by the means of blocks."""
    blocks = [block.mean() for block in np.array_split(values, _BLOCKS)]
    return float(np.std(blocks, ddof=1) / np.sqrt(_BLOCKS) / values.mean())


def _tail(values: Numbers, what: str) -> str:
    """Return what there is to say of the longest ones, or nothing."""
    longest = np.sort(values)[-max(1, values.size // 100) :]
    share = longest.sum() / values.sum()
    expected = longest.size / values.size
    if values.size < 10 * _FEWEST or share < max(_HEAVY, 5 * expected):
        return ""
    return f"a heavy tail: the longest 1 % of the {what} take {100 * share:.0f} % of the time"
