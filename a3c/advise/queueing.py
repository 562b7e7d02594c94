"""Virtual time without play: workers, their queue and a learner as nothing but the seconds that each takes.

page.html has the same loop in JavaScript, with the same random numbers; a test holds one to the other.
"""

import heapq
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from a3c_core.system.jit import exact
from a3c_core.virtual.costs import crowding

UNBOUNDED = 0  # size of a queue without an end
CONSTANT = np.ones(1)  # factors of what always takes equally long
MOST_WORKERS = 100_000
_EVENTS, _EVENTS_PER_WORKER = 30_000, 20  # to simulate: enough for two digits, few enough for a page that redraws
_MOST_OF_THEM = 20  # times as many, where durations vary widely
_WARM_UP = 4  # the first 1/4 of all events does not count


class System(NamedTuple):
    """A learner and its workers. Seconds are means."""

    workers: int
    cycle_s: float  # of a core: a worker takes parameters, plays, and hands over what came of it
    latency_s: float  # per cycle, in which numbers are under way
    service_s: float  # the learner's, for one update
    batch: int = 1  # parcels that an update takes
    waits: bool = False  # whether a worker waits until its parcel was applied
    queue: int = UNBOUNDED  # parcels that may wait; beyond, workers do
    stall_s: float = 0.0  # the learner stops for so long ...
    stall_every: int = 0  # ... once in so many updates; 0: never
    cores: int = 1_000_000
    threads_per_core: int = 1
    threading_gain: float = 1.0
    master_first: bool = False

    @property
    def update_s(self) -> float:
        """Seconds of the learner for one update, with its share of a stall."""
        return self.service_s + (self.stall_s / self.stall_every if self.stall_every else 0.0)

    @property
    def n0(self) -> float:
        """C / S: more workers overflow a learner for which they do not wait."""
        return (self.cycle_s + self.latency_s) * self.batch / self.update_s

    @property
    def n_star(self) -> float:
        """(C + S) / S: so many workers that do wait keep the learner busy."""
        return (self.cycle_s + self.latency_s + self.update_s) * self.batch / self.update_s


class Outcome(NamedTuple):
    """What a system does in the long run."""

    throughput: float  # parcels applied per second
    utilisation: float  # share of the time in which the learner works
    staleness: float  # updates between a parcel's pull and its turn: mean
    staleness_95: float  # 95 % are no staler
    waiting: float  # parcels in the queue: mean
    growth: float  # parcels per second by which the queue gets longer
    played: float  # parcels that workers finish per second


def simulate(
    system: System,
    cycle_factors: NDArray[np.float64] = CONSTANT,
    service_factors: NDArray[np.float64] = CONSTANT,
    seed: int = 1,
    events: int | None = None,
) -> Outcome:
    """Return what `system` comes to when each duration is its mean times one of its factors, drawn at random."""
    if events is None:
        spread = 1.0 + float(np.var(cycle_factors) + np.var(service_factors))
        events = round(_EVENTS * min(spread, _MOST_OF_THEM)) + _EVENTS_PER_WORKER * system.workers
    totals, stalenesses = run(_as_declared(system), np.array(cycle_factors), np.array(service_factors), seed, events)
    seconds, busy_s, queue_s, grown, played = totals
    ordered = np.sort(stalenesses)
    return Outcome(
        throughput=ordered.size / seconds,
        utilisation=busy_s / seconds,
        staleness=float(ordered.mean()),
        staleness_95=float(ordered[int(0.95 * (ordered.size - 1))]),
        waiting=queue_s / seconds,
        growth=grown / seconds,
        played=played / seconds,
    )


def _as_declared(system: System) -> System:
    """Return `system` with numbers of the types that it declares: for others the loop would be compiled once more."""
    kinds = System.__annotations__.values()
    return System(*(kind(value) for kind, value in zip(kinds, system, strict=True)))


@exact
def draw(factors, stream):
    """Return one of `factors`; `stream` (uint32 [1]) is advanced. The generator is Mulberry32: JavaScript can do it."""
    stream[0] += np.uint32(0x6D2B79F5)
    word = stream[0]
    mixed = np.uint32((word ^ (word >> np.uint32(15))) * (word | np.uint32(1)))
    mixed ^= np.uint32(mixed + np.uint32((mixed ^ (mixed >> np.uint32(7))) * (mixed | np.uint32(61))))
    bits = np.uint32(mixed ^ (mixed >> np.uint32(14)))
    return factors[int(bits / 4294967296.0 * factors.size)]


@exact(allocates=True)
def begin(system, worker, now_s, work_s, factors, stream, away, on_core):
    """Let a worker begin its next cycle: first what uses no core."""
    if system.latency_s > 0:
        heapq.heappush(away, (now_s + system.latency_s, worker))
    else:
        heapq.heappush(on_core, (work_s + system.cycle_s * draw(factors, stream), worker))


@exact(allocates=True)
def run(system, cycle_factors, service_factors, seed, events):
    """Return (seconds, busy, queue's integral, its growth, parcels played) and every staleness, after warming up."""
    workers, stream = system.workers, np.array([seed], np.uint32)
    on_core = [(0.0, 0) for _ in range(0)]  # a heap of (work_s at which it ends, worker)
    away = [(0.0, 0) for _ in range(0)]  # a heap of (now_s at which it ends, worker)
    pulled = np.zeros(workers, np.int64)  # versions that workers play with
    parcels = np.zeros((events + workers, 2), np.int64)  # (worker, version pulled) of all that came, in their order
    blocked = np.zeros(events + workers, np.int64)  # workers that found the queue full, in their order
    stalenesses = np.zeros(events + workers, np.float64)
    taken = head = tail = unblocked = blocked_tail = version = served = 0  # parcels taken, serving, come, ...
    needed = min(system.batch, workers if system.waits else events)
    if system.queue != UNBOUNDED:
        needed = min(needed, system.queue)
    now_s = work_s = busy_s = queue_s = master_end = 0.0  # work_s: what each station on a core could do so far
    busy, crowd = False, 1.0
    warm_s, warm_tail, warm_waiting = 0.0, 0, 0
    for worker in range(workers):  # spread over a cycle, as they are after a while
        heapq.heappush(away, ((system.cycle_s + system.latency_s) * worker / workers, worker))
    for event in range(events):
        if event == events // _WARM_UP:
            warm_s, warm_tail, warm_waiting = now_s, tail, tail - head
            served, busy_s, queue_s = 0, 0.0, 0.0
        core_s = now_s + (on_core[0][0] - work_s) * crowd if len(on_core) else np.inf
        away_s = away[0][0] if len(away) else np.inf
        master_s = np.inf
        if busy:
            master_s = master_end if system.master_first else now_s + (master_end - work_s) * crowd
        passed_s = min(core_s, away_s, master_s) - now_s
        now_s += passed_s
        work_s += passed_s / crowd
        queue_s += passed_s * (tail - head)
        busy_s += passed_s * busy
        if master_s <= min(core_s, away_s):
            busy = False
            for parcel in range(taken, head):
                stalenesses[served] = version - parcels[parcel, 1]
                served += 1
            version += 1
            if system.waits:
                for parcel in range(taken, head):
                    worker = parcels[parcel, 0]
                    pulled[worker] = version
                    begin(system, worker, now_s, work_s, cycle_factors, stream, away, on_core)
            taken = head
        elif away_s <= core_s:
            worker = heapq.heappop(away)[1]
            heapq.heappush(on_core, (work_s + system.cycle_s * draw(cycle_factors, stream), worker))
        else:
            blocked[blocked_tail] = heapq.heappop(on_core)[1]
            blocked_tail += 1
        while True:  # who waits for a place gets one; an idle learner takes up what waits
            if unblocked < blocked_tail and (system.queue == UNBOUNDED or tail - head < system.queue):
                worker = blocked[unblocked]
                unblocked += 1
                parcels[tail, 0], parcels[tail, 1] = worker, pulled[worker]
                tail += 1
                if not system.waits:
                    pulled[worker] = version
                    begin(system, worker, now_s, work_s, cycle_factors, stream, away, on_core)
            elif not busy and tail - head >= needed:
                head += needed
                busy = True
                service_s = system.service_s * draw(service_factors, stream)
                if system.stall_every and (version + 1) % system.stall_every == 0:
                    service_s += system.stall_s
                master_end = (now_s if system.master_first else work_s) + service_s
            else:
                break
        crowd = crowding(system, len(on_core), busy)
    grown = tail - head - warm_waiting
    return (now_s - warm_s, busy_s, queue_s, grown, tail - warm_tail), stalenesses[:served]
