"""One discrete-event simulator of the rollout queue: slots that generate, a queue, and a learner.

Nothing is played or learned: every part is only the seconds that it takes. A worker that plays episodes and hands over
gradients is the special case of groups of one and batches of one.
"""

import heapq
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from a3c_core.system.jit import exact
from a3c_core.virtual.costs import crowding

UNBOUNDED = 0  # size of a queue, or limit in flight, that does not exist
UNLIMITED = -1.0  # age that does not matter
CONSTANT = np.ones(1)  # factors of what always takes equally long
MOST_WORKERS = 100_000
PAUSE, DRAIN, IN_FLIGHT = 0, 1, 2  # what a weight sync does to generation
SYNCS = ("pause", "drain", "in-flight")
NO_REASON, AGE, LIMIT, QUEUE, DRAINING, PAUSED = range(6)  # why a free slot does not begin a rollout
_REASONS = 6
_EVENTS, _EVENTS_PER_WORKER = 30_000, 20  # to simulate: enough for two digits
_UPDATES = 200  # at least, of large batches
_MOST_EVENTS = 4_000_000
_MOST_OF_THEM = 20  # times as many, where durations vary widely
_WARM_UP = 4  # the first 1/4 of all events does not count
_IDLE, _BUSY, _WAITS_FOR_DRAIN, _SYNCING = range(4)  # what the learner does
Factors = NDArray[np.float64]


class System(NamedTuple):
    """A learner and what feeds it. Seconds are means; rollouts are counted one by one, not by group."""

    workers: int  # rollouts that are generated side by side: workers, or slots of the inference engines
    cycle_s: float  # of a core: one rollout, or one episode with its gradient
    latency_s: float  # per rollout, in which it is under way and uses no core
    service_s: float  # the learner's, for one update
    batch: int = 1  # rollouts that an update takes
    waits: bool = False  # whether a worker waits until its rollout was learned from
    queue: int = UNBOUNDED  # finished rollouts that may wait; beyond, workers do, or the oldest is dropped
    stall_s: float = 0.0  # the learner stops for so long ...
    stall_every: int = 0  # ... once in so many updates; 0: never
    cores: int = 1_000_000
    threads_per_core: int = 1
    threading_gain: float = 1.0
    master_first: bool = False
    group: int = 1  # rollouts of one prompt, handed over together when the slowest is done
    in_flight: int = UNBOUNDED  # rollouts whose group is not complete, at most
    staleness: float = UNLIMITED  # admission by age: (staleness + 1 + syncs) * batch * sync_every rollouts may begin
    drop_age: float = UNLIMITED  # a group that is more updates old is dropped instead of learned from
    drops_oldest: bool = False  # what a full queue does: drop its oldest group, or let the new one wait
    sync_s: float = 0.0  # weights under way to the generators; the learner waits meanwhile
    sync_every: int = 1  # updates between two syncs
    sync_mode: int = PAUSE  # generation is paused, or finishes what is in flight first, or goes on
    colocated: bool = False  # generators and learner share devices: generation is paused during updates
    one_ahead: bool = False  # the next batch's rollouts begin when the learner takes up a batch, not when it is done
    contention: float = 0.0  # a rollout's slowdown beside n others is 1 + contention * n + coherence * n * (n + 1)
    coherence: float = 0.0
    grows: float = 1.0  # rollouts take so many times as long at the end of the simulated time

    @property
    def update_s(self) -> float:
        """Seconds of the learner for one update, with its share of stops and of weight syncs."""
        stalls_s = self.stall_s / self.stall_every if self.stall_every else 0.0
        return self.service_s + stalls_s + self.sync_s / self.sync_every

    @property
    def slowdown(self) -> float:
        """How many times longer a rollout takes when all slots are in use."""
        return float(slowdown(self, self.workers))

    @property
    def n0(self) -> float:
        """C / S: more workers overflow a learner for which they do not wait."""
        return (self.cycle_s + self.latency_s) * self.batch / self.update_s

    @property
    def n_star(self) -> float:
        """(C + S) / S: so many workers that do wait keep the learner busy."""
        return (self.cycle_s + self.latency_s + self.update_s) * self.batch / self.update_s


class Outcome(NamedTuple):
    """What a system does in the long run. Shares are of the time, unless they say otherwise."""

    throughput: float  # rollouts learned from, per second
    utilisation: float  # the learner updates
    staleness: float  # updates between the start of a group's first rollout and its batch: mean
    staleness_95: float  # 95 % are no staler
    waiting: float  # rollouts in the queue: mean
    growth: float  # rollouts per second by which the queue gets longer
    played: float  # rollouts handed over per second
    updates: float = 0.0  # per second
    staleness_before: float = 0.0  # the part of the staleness that arises before the group is handed over
    syncing: float = 0.0  # the learner waits for a weight sync, or for generation to finish before one
    slots_idle: float = 0.0  # of slots: nothing is generated
    idle_age: float = 0.0  # of slots: idle because of the bound on age
    idle_limit: float = 0.0  # of slots: idle because of the limit on rollouts in flight
    idle_queue: float = 0.0  # of slots: idle because the queue is full, or until an update is done
    idle_sync: float = 0.0  # of slots: idle because of a weight sync, or of an update on the same devices
    dropped: float = 0.0  # of rollouts handed over: never learned from
    length_bias: float = 0.0  # how much longer than the mean are the rollouts learned from; negative: shorter

    @property
    def staleness_queue(self) -> float:
        """The part of the staleness that arises in the queue."""
        return self.staleness - self.staleness_before

    @property
    def idle(self) -> float:
        """The share of the time in which the learner waits for rollouts."""
        return max(0.0, 1.0 - self.utilisation - self.syncing)


def simulate(
    system: System,
    cycle_factors: Factors = CONSTANT,
    service_factors: Factors = CONSTANT,
    seed: int = 1,
    events: int | None = None,
) -> Outcome:
    """Return what `system` comes to when each duration is its mean times one of its factors, drawn at random.

    Args:
        system: who there is, and by which rules they work.
        cycle_factors: equally likely factors of a rollout's duration, with a mean of 1.
        service_factors: the same of an update's duration.
        seed: equal seeds give equal numbers.
        events: how many events to simulate; None chooses enough for two digits.
    """
    _refuse(system)
    if events is None:
        spread = 1.0 + float(np.var(cycle_factors) + np.var(service_factors))
        events = round(_EVENTS * min(spread, _MOST_OF_THEM)) + _EVENTS_PER_WORKER * system.workers
        events = min(max(events, _UPDATES * system.batch), max(events, _MOST_EVENTS))
    numbers, stalenesses = run(_as_declared(system), np.array(cycle_factors), np.array(service_factors), seed, events)
    return _outcome(system, numbers, stalenesses)


def simulate_seeds(
    system: System, cycle_factors: Factors = CONSTANT, service_factors: Factors = CONSTANT, seeds: int = 10
) -> list[Outcome]:
    """Return the outcomes of several seeds, whose spread is the simulation's own uncertainty."""
    return [simulate(system, cycle_factors, service_factors, seed) for seed in range(1, seeds + 1)]


def _outcome(system: System, numbers: NDArray[np.float64], stalenesses: NDArray[np.float64]) -> Outcome:
    """Return the totals of a simulation per second and per rollout."""
    seconds, busy_s, queue_s, grown, played, updates, before, syncing_s, running_s, dropped, work = numbers[:11]
    idle_s = numbers[11:]
    group = system.group
    if seconds <= 0.0 or stalenesses.size == 0:  # nothing is ever learned from
        return Outcome(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    ordered = np.sort(stalenesses)
    slots_s = system.workers * seconds
    return Outcome(
        throughput=float(group * ordered.size / seconds),
        utilisation=float(busy_s / seconds),
        staleness=float(ordered.mean()),
        staleness_95=float(ordered[int(0.95 * (ordered.size - 1))]),
        waiting=float(group * queue_s / seconds),
        growth=float(group * grown / seconds),
        played=float(group * played / seconds),
        updates=float(updates / seconds),
        staleness_before=float(before / ordered.size),
        syncing=float(syncing_s / seconds),
        slots_idle=float(max(0.0, 1.0 - running_s / slots_s)),
        idle_age=float(idle_s[AGE] / slots_s),
        idle_limit=float(idle_s[LIMIT] / slots_s),
        idle_queue=float(idle_s[QUEUE] / slots_s),
        idle_sync=float((idle_s[DRAINING] + idle_s[PAUSED]) / slots_s),
        dropped=float(dropped / max(1.0, played)),
        length_bias=float(work / (group * ordered.size)) - 1.0,
    )


def _refuse(system: System) -> None:
    """Raise ValueError for a system in which nothing could ever be learned from."""
    if system.group > system.workers:
        raise ValueError(f"a group of {system.group} rollouts needs as many slots, and there are {system.workers}")
    if system.in_flight != UNBOUNDED and system.in_flight < system.group:
        raise ValueError(f"a limit of {system.in_flight} rollouts in flight admits no group of {system.group}")


def _as_declared(system: System) -> System:
    """Return `system` with numbers of the types that it declares: for others the loop would be compiled once more."""
    kinds = System.__annotations__.values()
    return System(*(kind(value) for kind, value in zip(kinds, system, strict=True)))


def fit_concurrency(points: list[tuple[float, float]]) -> tuple[float, float, float]:
    """Return (rollouts per second of one slot alone, contention, coherence) of three or more points.

    The curve is the universal scalability law: throughput = alone * n / (1 + contention * (n - 1) + coherence * n *
    (n - 1)). Its inverse per slot is linear in the unknowns, so that least squares fit it; negative ones are refused.

    Args:
        points: (rollouts side by side, rollouts per second), of at least three different numbers of rollouts.

    Raises:
        ValueError: for fewer points, or numbers that are not positive.
    """
    if len({count for count, _ in points}) < 3 or min(min(point) for point in points) <= 0:
        raise ValueError("a curve of throughput needs three points or more, such as 16:2.1,64:6.0,256:11")
    counts = np.array([count for count, _ in points])
    seconds = counts / np.array([rate for _, rate in points])  # of a rollout
    terms = np.stack([np.ones_like(counts), counts - 1.0, counts * (counts - 1.0)], axis=1)
    best: tuple[float, NDArray[np.float64]] | None = None
    for kept in ((0, 1, 2), (0, 1), (0, 2), (0,)):  # without the terms that would be negative
        solved, *_ = np.linalg.lstsq(terms[:, kept] / seconds[:, None], np.ones_like(seconds), rcond=None)
        full = np.zeros(3)
        full[list(kept)] = solved
        error = float(np.sum((terms @ full / seconds - 1.0) ** 2))
        if full[0] > 0 and full.min() >= 0 and (best is None or error < best[0]):
            best = error, full
    assert best is not None  # the mean alone is always positive
    alone_s, contention, coherence = best[1]
    return 1.0 / alone_s, contention / alone_s, coherence / alone_s


@exact
def slowdown(system, running):
    """Return how many times longer a rollout takes beside running - 1 others."""
    others = max(0, running - 1)
    return 1.0 + system.contention * others + system.coherence * running * others


@exact
def draw(factors, stream):
    """Return one of `factors`; `stream` (uint32 [1]) is advanced. The generator is Mulberry32."""
    stream[0] += np.uint32(0x6D2B79F5)
    word = stream[0]
    mixed = np.uint32((word ^ (word >> np.uint32(15))) * (word | np.uint32(1)))
    mixed ^= np.uint32(mixed + np.uint32((mixed ^ (mixed >> np.uint32(7))) * (mixed | np.uint32(61))))
    bits = np.uint32(mixed ^ (mixed >> np.uint32(14)))
    return factors[int(bits / 4294967296.0 * factors.size)]


@exact
def admitted_at_most(system, needed, syncs, taken):
    """Return how many groups may have begun, by the rule of AReaL and SkyRL; `taken`: batches taken up."""
    if system.staleness < 0.0:
        return np.inf
    rounds = taken if system.one_ahead else syncs * system.sync_every
    return math.floor(system.staleness * needed * system.sync_every + 1e-9) + (
        needed * (rounds + (1 if system.one_ahead else system.sync_every))
    )


@exact(allocates=True)
def run(system, cycle_factors, service_factors, seed, events):
    """Return the totals after warming up (see `_outcome`), and every group's staleness."""
    slots, group, stream = system.workers, system.group, np.array([seed], np.uint32)
    on_core = [(0.0, 0) for _ in range(0)]  # a heap of (work_s at which it ends, slot)
    away = [(0.0, 0) for _ in range(0)]  # a heap of (now_s at which it ends, slot)
    free = np.zeros(events + 2 * slots, np.int64)  # slots without a rollout, in the order in which they got free
    free_head, free_tail = 0, 0
    most = events + 2 * slots + 2  # groups
    of_slot = np.zeros(slots, np.int64)  # the group of a slot's rollout
    factor_of = np.zeros(slots, np.float64)
    left = np.zeros(most, np.int64)  # rollouts of a group that are not done
    pulled = np.zeros(most, np.int64)  # version with which a group began
    arrived = np.zeros(most, np.int64)  # the learner's version when it was handed over
    work = np.zeros(most, np.float64)  # sum of its factors
    parcels = np.zeros(most, np.int64)  # groups that came, in their order
    blocked = np.zeros(most, np.int64)  # groups that found the queue full, in their order
    stalenesses = np.zeros(most, np.float64)
    serving = served_to = head = tail = unblocked = blocked_tail = served = 0
    groups = to_begin = held = running = in_flight = 0  # groups begun; rollouts of the newest that have no slot yet
    version = published = syncs = batches = admitted = 0
    needed = (system.batch + group - 1) // group
    if system.waits:
        needed = min(needed, max(1, slots // group))
    places = 0 if system.queue == UNBOUNDED else max(1, system.queue // group)
    if places:
        needed = min(needed, places)
    now_s = work_s = learner_s = busy_s = queue_s = syncing_s = running_s = learner_end = before = learned = 0.0
    idle_s = np.zeros(_REASONS)
    state, crowd, slow, reason, paused = _IDLE, 1.0, 1.0, NO_REASON, False
    warm_s, warm_tail, warm_waiting, warm_version, dropped = 0.0, 0, 0, 0, 0
    come = 0  # groups handed over
    if system.staleness < 0.0 and system.in_flight == UNBOUNDED and not system.colocated and group == 1:
        # All begin at once, spread over a cycle, as they are after a while.
        for slot in range(slots):
            heapq.heappush(away, ((system.cycle_s + system.latency_s) * slot / slots, slot))
            of_slot[slot] = groups
            left[groups] = 1
            groups += 1
        running = admitted = in_flight = slots
    else:
        for slot in range(slots):
            free[free_tail] = slot
            free_tail += 1
    for event in range(events):
        if event == events // _WARM_UP:
            warm_s, warm_tail, warm_waiting, warm_version = now_s, come, tail - head, version
            served, busy_s, queue_s, syncing_s, running_s, before, learned, dropped = 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0
            idle_s[:] = 0.0
        core_s = now_s + (on_core[0][0] - work_s) * (crowd * slow) if len(on_core) and not paused else np.inf
        away_s = away[0][0] if len(away) else np.inf
        learner_at = np.inf
        if state == _BUSY:
            learner_at = learner_end if system.master_first else now_s + (learner_end - learner_s) * crowd
        elif state == _SYNCING:
            learner_at = learner_end
        passed_s = min(core_s, away_s, learner_at) - now_s
        if passed_s == np.inf and event > 0:  # nothing will ever happen again
            break
        if passed_s < np.inf:
            now_s += passed_s
            if not paused:
                work_s += passed_s / (crowd * slow)
                running_s += passed_s * running
            learner_s += passed_s / crowd
            queue_s += passed_s * (tail - head)
            busy_s += passed_s * (state == _BUSY)
            syncing_s += passed_s * (state in (_SYNCING, _WAITS_FOR_DRAIN))
            idle_s[PAUSED if paused else reason] += passed_s * (slots if paused else slots - running)
        if passed_s == np.inf:  # nobody has begun yet
            pass
        elif learner_at <= min(core_s, away_s):
            if state == _SYNCING:
                state, published = _IDLE, version
                syncs += 1
            else:
                for place in range(serving, served_to):
                    parcel = parcels[place]
                    stalenesses[served] = version - pulled[parcel]
                    before += arrived[parcel] - pulled[parcel]
                    learned += work[parcel]
                    served += 1
                version += 1
                state = _IDLE
                if system.waits:
                    held -= group * (served_to - serving)
                if version % system.sync_every == 0:
                    if system.sync_mode == DRAIN and running > 0:
                        state = _WAITS_FOR_DRAIN
                    elif system.sync_s > 0.0:
                        state, learner_end = _SYNCING, now_s + system.sync_s
                    else:
                        published = version
                        syncs += 1
        elif away_s <= core_s:
            slot = heapq.heappop(away)[1]
            factor = draw(cycle_factors, stream)
            factor_of[slot] = factor
            if system.grows != 1.0:
                factor *= 1.0 + (system.grows - 1.0) * event / events
            heapq.heappush(on_core, (work_s + system.cycle_s * factor, slot))
        else:
            slot = heapq.heappop(on_core)[1]
            parcel = of_slot[slot]
            work[parcel] += factor_of[slot]
            left[parcel] -= 1
            running -= 1
            free[free_tail] = slot
            free_tail += 1
            if left[parcel] == 0:
                held += group
                in_flight -= group
                blocked[blocked_tail] = parcel
                blocked_tail += 1
                arrived[parcel] = version
            if state == _WAITS_FOR_DRAIN and running == 0:
                if system.sync_s > 0.0:
                    state, learner_end = _SYNCING, now_s + system.sync_s
                else:
                    state, published = _IDLE, version
                    syncs += 1
        while True:  # who waits for a place gets one; free slots begin; an idle learner takes up what waits
            if unblocked < blocked_tail and (places == 0 or tail - head < places or system.drops_oldest):
                if places and tail - head >= places:
                    head += 1  # the oldest is dropped
                    dropped += 1
                    admitted -= 1
                    if system.waits:
                        held -= group
                parcels[tail] = blocked[unblocked]
                unblocked += 1
                tail += 1
                come += 1
                if not system.waits:
                    held -= group
                continue
            reason = NO_REASON
            if running < slots:
                if state == _WAITS_FOR_DRAIN or (state == _SYNCING and system.sync_mode == DRAIN):
                    reason = DRAINING
                elif running + held >= slots:
                    reason = QUEUE
                elif to_begin == 0:
                    if admitted + 1 > admitted_at_most(system, needed, syncs, batches):
                        reason = AGE
                    elif system.in_flight != UNBOUNDED and in_flight + group > system.in_flight:
                        reason = LIMIT
                if reason == NO_REASON:
                    if to_begin == 0:
                        left[groups], pulled[groups], work[groups] = group, published, 0.0
                        to_begin = group
                        groups += 1
                        admitted += 1
                        in_flight += group
                    slot = free[free_head]
                    free_head += 1
                    of_slot[slot] = groups - 1
                    to_begin -= 1
                    running += 1
                    if system.latency_s > 0:
                        heapq.heappush(away, (now_s + system.latency_s, slot))
                    else:
                        factor = draw(cycle_factors, stream)
                        factor_of[slot] = factor
                        if system.grows != 1.0:
                            factor *= 1.0 + (system.grows - 1.0) * event / events
                        heapq.heappush(on_core, (work_s + system.cycle_s * factor, slot))
                    continue
            if state == _IDLE and tail - head >= needed:
                if system.drop_age >= 0.0:
                    kept = tail
                    for place in range(tail - 1, head - 1, -1):  # those that stay move to the end
                        if version - pulled[parcels[place]] <= system.drop_age:
                            kept -= 1
                            parcels[kept] = parcels[place]
                    dropped += kept - head
                    admitted -= kept - head
                    if system.waits:
                        held -= group * (kept - head)
                    head = kept
                    if tail - head < needed:
                        continue
                serving, served_to = head, head + needed
                head += needed
                batches += 1
                state = _BUSY
                service_s = system.service_s * draw(service_factors, stream)
                if system.stall_every and (version + 1) % system.stall_every == 0:
                    service_s += system.stall_s
                learner_end = (now_s if system.master_first else learner_s) + service_s
                continue
            break
        paused = (state == _SYNCING and system.sync_mode == PAUSE) or (state == _BUSY and system.colocated)
        crowd = crowding(system, len(on_core), state == _BUSY)
        slow = slowdown(system, len(on_core))
    grown = tail - head - warm_waiting
    totals = np.zeros(11 + _REASONS)
    totals[0], totals[1], totals[2], totals[3] = now_s - warm_s, busy_s, queue_s, grown
    totals[4], totals[5], totals[6], totals[7] = come - warm_tail, version - warm_version, before, syncing_s
    totals[8], totals[9], totals[10] = running_s, dropped, learned
    totals[11:] = idle_s
    return totals, stalenesses[:served]
