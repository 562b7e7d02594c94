"""The answer for workers and a learner: how many it keeps up with, and which remedy helps."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import rich.box
import rich.table

from a3c.advise.costs import Costs
from a3c.advise.remedies import needs_bound
from a3c.advise.simulator import MOST_WORKERS, UNBOUNDED, UNLIMITED, Outcome, System
from a3c.advise.words import Interval, finite, gain, interval, listed, number, percent, updates
from a3c_core.command_line.arguments import in_seconds

NEARLY_ALL = 0.95  # of what the learner can do at most: more workers stop helping
_MOST_ROWS_BEYOND = 2.5  # times N*: what happens beyond is clear by then
_BAR = 40  # characters of the longest bar
_HELD_UP = 0.1  # of workers' time: a rule that keeps them idle for longer limits them
_SEEDS = 5
_A_TIE = 0.1  # throughputs so close are equal, and staleness decides
_BATCH, _SHARDS, _QUEUE, _EPISODES = 8, 4, 8, 8  # of the remedies


class Counted(NamedTuple):
    """A number of workers and what it comes to."""

    workers: int
    outcome: Outcome
    throughput: Interval  # over seeds
    staleness: Interval


class Remedy(NamedTuple):
    """Another way to work, and what it comes to with as many workers."""

    name: str
    setting: str  # for a run of ours
    n0: float  # workers that the learner keeps up with
    episodes_per_s: float
    staleness: float
    grows: bool  # its queue does
    gain: Interval  # of episodes per second, as a share of the present


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
    fed: int  # workers that the learner keeps up with
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
    counted = tuple(_count(costs, count) for count in counts(system, asked))
    remedies = _remedies(costs, max(asked))
    return Advice(costs, asked, fed, _enough(costs, counted), counted, remedies, advise_schedule(costs, aim))


def _count(costs: Costs, workers: int) -> Counted:
    """Return what a number of workers comes to, and how far seeds differ."""
    outcomes = [costs.simulate(costs.system._replace(workers=workers), seed) for seed in range(1, _SEEDS + 1)]
    spread = (interval([getattr(one, name) for one in outcomes]) for name in ("throughput", "staleness"))
    return Counted(workers, outcomes[0], *spread)


def counts(system: System, asked: tuple[int, ...]) -> list[int]:
    """Return the numbers of workers to look at: powers of 2, those around N0 and N*, and those asked for."""
    end = min(MOST_WORKERS, math.ceil(_MOST_ROWS_BEYOND * system.n_star))
    powers = {2**power for power in range(18) if 2**power <= end}
    around = {math.floor(system.n0 + 1e-9), math.floor(system.n0 + 1e-9) + 1, math.ceil(system.n_star - 1e-9)}
    least = min(asked) if min(asked) < system.group else system.group  # which is refused, with its reason
    return sorted(count for count in powers | around | set(asked) if max(1, least) <= count <= MOST_WORKERS)


def _enough(costs: Costs, counted: tuple[Counted, ...]) -> int:
    """Return the least number of workers that come to nearly all that any number does, by halving."""
    best = max(counted, key=lambda one: one.outcome.throughput)
    low, high = costs.system.group, max(costs.system.group, best.workers)
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
    places = max(_QUEUE, 2 * base.batch)
    patient, bounded = base._replace(waits=True), base._replace(queue=places)
    fresher = [
        _remedy(costs, "workers wait for their update", "exchange: {pull: after_apply}", patient),
        _remedy(costs, f"a queue of at most {places}", "exchange: {queue: bounded}", bounded),
    ]
    others = [
        *(fresher if not base.waits else []),
        *(
            []
            if base.batch >= _BATCH
            else [_remedy(costs, f"{_BATCH} gradients an update", "", base._replace(batch=_BATCH))]
        ),
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
    if base.in_flight != UNBOUNDED:
        limit = 2 * base.in_flight
        others.append(
            _remedy(costs, f"{limit:,} rollouts in flight", f"--in-flight {limit}", base._replace(in_flight=limit))
        )
    if base.staleness != UNLIMITED:
        bound = max(1.0, 2 * base.staleness)
        others.append(
            _remedy(costs, f"a bound on age of {bound:g}", f"--staleness {bound:g}", base._replace(staleness=bound))
        )
    if base.sync_s:
        often = 2 * base.sync_every
        others.append(
            _remedy(
                costs, f"a weight sync every {often} updates", f"--sync-every {often}", base._replace(sync_every=often)
            )
        )
    return tuple(sorted(others, key=lambda remedy: _rank(remedy, max(other.episodes_per_s for other in others))))


def _remedy(costs: Costs, name: str, setting: str, system: System, episodes: int = 1) -> Remedy:
    """Return what another system comes to; the gain is over the present one with as many workers, seed by seed."""
    base = costs.system._replace(workers=system.workers)
    outcomes = [costs.simulate(system, seed) for seed in range(1, _SEEDS + 1)]
    now = [costs.simulate(base, seed) for seed in range(1, _SEEDS + 1)]
    more = interval([episodes * one.throughput / old.throughput - 1.0 for one, old in zip(outcomes, now, strict=True)])
    grows = outcomes[0].growth > 0.01 * outcomes[0].throughput
    return Remedy(name, setting, system.n0, episodes * outcomes[0].throughput, outcomes[0].staleness, grows, more)


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


def needs_remedy(advice: Advice) -> bool:
    """Return whether the most workers asked for are held up, by the learner or by a rule."""
    most = advice.at(max(advice.asked))
    return max(advice.asked) > advice.costs.system.n0 or max(most.idle_limit, most.idle_age, most.idle_sync) > _HELD_UP


def is_overflowing(system: System, workers: int) -> bool:
    """Return whether the queue of so many workers grows without end."""
    return needs_bound(system._replace(workers=workers))


# In words


def sentences(advice: Advice) -> list[str]:
    """Return the answer in words, the number of workers first."""
    spoken = [_fed(advice), _asked(advice), _enough_words(advice), _stale(advice), _remedy_words(advice), _sure(advice)]
    return [*spoken, *_grown(advice), *(f"{note[0].upper()}{note[1:]}." for note in advice.costs.notes)]


def _fed(advice: Advice) -> str:
    system = advice.costs.system
    cycle, update = in_seconds(system.cycle_s + system.latency_s), in_seconds(system.update_s)
    gradients = f" of {system.batch} gradients" if system.batch > 1 else ""
    costs = f"a worker's cycle takes C = {cycle} and an update{gradients} S = {update}"
    full = f"N0 = C / S = {number(system.n0)}, N* = (C + S) / S = {number(system.n_star)}"
    if system.batch > 1:
        full = full.replace("/ S", f"/ (S / {system.batch})")
    return f"The learner keeps up with {_workers(advice.fed)}: {costs}, so {full} ({advice.costs.about})."


def _asked(advice: Advice) -> str:
    system = advice.costs.system
    fed = [count for count in advice.asked if count <= system.n0]
    beyond = [count for count in advice.asked if count > system.n0]
    parts = [f"it keeps up with {listed(fed)}"] if fed else []
    if beyond and is_overflowing(system, beyond[0]):
        growths = listed([f"{number(max(0.0, advice.at(count).growth))} a second" for count in beyond])
        parts.append(f"{listed(beyond)} overflow{'' if len(beyond) > 1 else 's'}: the queue grows by {growths}")
    elif beyond and system.waits | (system.queue != UNBOUNDED):
        idle = [f"{percent(1 - advice.at(count).played / _unheld(advice, count))}" for count in beyond]
        parts.append(f"{listed(beyond)} wait for the learner {listed(idle)} of their time")
    elif beyond:
        idle = [percent(advice.at(count).slots_idle) for count in beyond]
        parts.append(f"{listed(beyond)} are idle {listed(idle)} of their time")
    said = "; ".join(parts)
    return f"{said[0].upper()}{said[1:]}."


def _unheld(advice: Advice, workers: int) -> float:
    """Return the gradients per second of workers that never wait."""
    return workers / (advice.costs.system.cycle_s + advice.costs.system.latency_s)


def _enough_words(advice: Advice) -> str:
    most = number(advice.costs.system.batch / advice.costs.system.update_s)
    reached = max(counted.outcome.throughput for counted in advice.counted)
    share = percent(NEARLY_ALL)
    text = f"The learner takes {most} gradients a second at most; {advice.enough:,} workers reach {share} of what any"
    text += " number does, and more stop helping there"
    if reached < 0.9 * advice.costs.system.batch / advice.costs.system.update_s:
        text += f" ({_held_up(advice)}, at {number(reached)} a second)"
    return f"{text}."


def _held_up(advice: Advice) -> str:
    """Return what keeps any number of workers from what the learner could take."""
    most = max(advice.counted, key=lambda counted: counted.outcome.throughput).outcome
    reasons = {
        "the limit on rollouts in flight holds them up first": most.idle_limit,
        "the bound on age holds them up first": most.idle_age,
        "weight syncs hold them up first": most.idle_sync,
    }
    reason = max(reasons, key=lambda name: reasons[name])
    return reason if reasons[reason] > _HELD_UP else "the cores are used up first"


def _stale(advice: Advice) -> str:
    system = advice.costs.system
    said = []
    for count in (count for count in advice.asked if not is_overflowing(system, count)):
        outcome = advice.at(count)
        said.append(f"{number(outcome.staleness)} with {_workers(count)} (95 %: at most {outcome.staleness_95:,.0f})")
    without_end = [count for count in advice.asked if is_overflowing(system, count)]
    if without_end:
        said.append(f"grows with {listed(without_end)}")
    return f"Gradients get stale, by updates of others meanwhile: {', '.join(said)}."


def _remedy_words(advice: Advice) -> str:
    most = max(advice.asked)
    if not needs_remedy(advice):
        busy = advice.at(most).utilisation
        return f"No remedy is needed up to {most:,} workers, which keep the learner {percent(busy)} busy."
    best = advice.remedies[0]
    setting = f" (`{best.setting}`)" if best.setting else ""
    now = advice.at(most).throughput
    stale = "and the queue still grows" if best.grows else f"{updates(best.staleness)} stale"
    text = f"With {most:,} workers the best remedy is: {best.name}{setting}, {number(best.episodes_per_s)} episodes a"
    text += f" second instead of {number(now)}, {gain(best.gain)}, {stale}"
    cheapest = next((other for other in advice.remedies if _only_fresher(other, now)), None)
    if cheapest is not None and cheapest is not best:
        text += (
            f"; {cheapest.name} (`{cheapest.setting}`) is no faster, but keeps them {number(cheapest.staleness)} stale"
        )
    return f"{text}."


def _only_fresher(remedy: Remedy, throughput: float) -> bool:
    return not remedy.grows and bool(remedy.setting) and abs(remedy.episodes_per_s / throughput - 1) < 0.1


def _sure(advice: Advice) -> str:
    costs, system = advice.costs, advice.costs.system
    parts = []
    if costs.uncertainty:
        low, high = (system.n0 * (1 + sign * costs.uncertainty) for sign in (-1, 1))
        parts.append(
            f"N0 is {number(max(0.0, low))} to {number(high)} by this log of {costs.parcels:,} gradients (95 %)"
        )
    else:
        parts.append(f"10 % on either cost moves N0 by {number(0.1 * system.n0)}")
    if advice.fed >= 1:
        full = costs.simulate(system._replace(workers=advice.fed))
        varied = (
            f"cycles that vary by {percent(costs.deviation)}" if costs.deviation >= 0.005 else "cycles that do not vary"
        )
        waiting = f"{number(full.waiting)} gradients wait on average"
        parts.append(f"with {varied}, {_workers(advice.fed)} keep it {percent(full.utilisation)} busy and {waiting}")
    if costs.growth == 1.0:
        parts.append("if episodes get longer, as they do when something is learned, N0 grows in proportion")
    return f"How sure: {'; '.join(parts)}."


def _grown(advice: Advice) -> Iterator[str]:
    costs, schedule = advice.costs, advice.schedule
    if costs.growth == 1.0:
        return
    each_s = costs.system.update_s / costs.system.batch
    first, last = costs.cycles_s[0] / each_s, costs.cycles_s[-1] / each_s
    grown = f"Cycles get {number(costs.growth)} times as long: N0 is {number(first)} at first"
    when = "first" if costs.growth > 1 else "last"
    yield f"{grown} and {number(last)} at the end; the {when} is what counts where workers do not wait."
    if schedule is not None:
        workers = f"from {schedule.start:,} to {schedule.end:,}"
        gain = f"{number(schedule.gain)} times as fast as the best fixed number, {schedule.fixed:,}"
        yield f"Workers may grow with them, {workers}: {gain}."


def table(advice: Advice) -> rich.table.Table:
    """Return what each number of workers comes to."""
    shown = rich.table.Table(box=rich.box.SIMPLE_HEAD)
    for name in ("workers", "gradients/s", "busy", "stale", "95 %", "waiting", "queue grows"):
        shown.add_column(name, justify="right")
    for workers, outcome, *_ in advice.counted:
        rest = number(outcome.staleness), f"{outcome.staleness_95:,.0f}", number(outcome.waiting), "-"
        if is_overflowing(advice.costs.system, workers):
            rest = "grows", "grows", "grows", f"{number(outcome.growth)}/s"
        shown.add_row(f"{workers:,}", number(outcome.throughput), percent(outcome.utilisation), *rest)
    return shown


def remedy_table(advice: Advice) -> rich.table.Table:
    """Return what the remedies come to with the most workers asked for."""
    shown = rich.table.Table(box=rich.box.SIMPLE_HEAD)
    shown.add_column(f"with {max(advice.asked):,} workers")
    for name in ("keeps up with", "episodes/s", "gain", "95 %", "stale"):
        shown.add_column(name, justify="right")
    for remedy in advice.remedies:
        feeds = "all" if math.isinf(remedy.n0) else f"{math.floor(remedy.n0 + 1e-9):,}"
        stale = "grows" if remedy.grows else number(remedy.staleness)
        spread = f"{percent(remedy.gain.low)} to {percent(remedy.gain.high)}"
        shown.add_row(remedy.name, feeds, number(remedy.episodes_per_s), percent(remedy.gain.mean), spread, stale)
    return shown


def chart(advice: Advice) -> str:
    """Return gradients per second as bars, a line for each number of workers."""
    most = max(counted.outcome.throughput for counted in advice.counted)
    lines = []
    for workers, outcome, *_ in advice.counted:
        bar = "█" * max(1, round(_BAR * outcome.throughput / most))
        mark = " overflows" if is_overflowing(advice.costs.system, workers) else ""
        lines.append(f"{workers:>8,} {bar:<{_BAR}} {number(outcome.throughput)}/s{mark}")
    return "\n".join(lines)


def as_json(advice: Advice) -> dict[str, Any]:
    """Return the advice for machines."""
    costs, system = advice.costs, advice.costs.system
    return {
        "about": costs.about,
        "n0": system.n0,
        "n_star": system.n_star,
        "fed": advice.fed,
        "enough": advice.enough,
        "uncertainty": costs.uncertainty,
        "growth": costs.growth,
        "jitter": costs.deviation,
        "costs": {name: value for name, value in system._asdict().items() if name != "workers"},
        "words": sentences(advice),
        "table": [_row(one, is_overflowing(system, one.workers)) for one in advice.counted],
        "remedies": [
            {**remedy._asdict(), "n0": finite(remedy.n0), "gain": remedy.gain._asdict()} for remedy in advice.remedies
        ],
        "schedule": {**advice.schedule._asdict(), "line": advice.schedule.line} if advice.schedule else None,
    }


def _row(counted: Counted, grows: bool) -> dict[str, Any]:
    """Return a row for machines; what grows without end has no mean."""
    intervals = {"throughput_interval": counted.throughput[1:], "staleness_interval": counted.staleness[1:]}
    row = {"workers": counted.workers, "grows": grows, **counted.outcome._asdict(), **intervals}
    endless = ("staleness", "staleness_95", "waiting", "staleness_before", "staleness_interval")
    return {name: None if grows and name in endless else value for name, value in row.items()}


def _workers(count: int) -> str:
    return f"{count:,} worker{'s' if count != 1 else ''}"
