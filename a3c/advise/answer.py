"""The answer for a trainer's log: what limits it now, who is idle, what to change, and what could be taken away."""

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import rich.box
import rich.table

from a3c.advise import knobs
from a3c.advise.costs import Costs
from a3c.advise.fit_steps import Given, fit_steps, resampled
from a3c.advise.measurements import SYNCHRONOUS, LogError, Measurements, mean
from a3c.advise.remedies import SEEDS, Change, Split, best_changes, measure, needs_bound, removable
from a3c.advise.words import Interval, finite, gain, interval, listed, number, percent, updates
from a3c_core.command_line.arguments import in_seconds

MOST_CHANGES = 3
_HELD_UP = 0.05  # of a step: a trainer that waits longer is limited by what it waits for
_SYNCS = 0.15
_REASON = 0.1  # of the generators' time: a rule that keeps them idle for longer limits them
_FINE = 30  # updates: a lag that Sample Factory's documentation calls usually fine


class Answer(NamedTuple):
    """All that there is to say of a trainer's log."""

    found: Measurements
    costs: list[
        Costs
    ]  # one for each seed, by the log's steps drawn again; the first is the log itself. Empty: no times
    limit: str  # generation, training, weight sync, age, in flight, unknown
    step_s: Interval
    idle: Interval  # the trainer's, simulated
    slots_idle: Interval
    staleness: Interval
    before: float  # the part of the staleness that arises before the queue
    dropped: float
    length_bias: float
    grows: bool  # the queue does
    changes: tuple[Change, ...]
    spare: tuple[float, float]  # shares of the generators and of the trainer's devices that could go


def answer(found: Measurements, given: Given) -> Answer:
    """Return the answer to measurements, with what the command line says otherwise."""
    found = replace(found, unknown=tuple(one for one in found.unknown if not _is_said(one, given)))
    try:
        costs = [fit_steps(found, given)]
    except LogError:
        if found.staleness_growth is None and found.system != "sample-factory":
            raise
        return _without_times(found)
    costs += [fit_steps(resampled(found, seed), given) for seed in range(1, SEEDS)]
    now = measure(costs, lambda system: system)
    grows = needs_bound(costs[0].system) and now[0].growth > 0.01 * now[0].throughput
    intervals = [interval([getattr(one, name) for one in now]) for name in ("idle", "slots_idle", "staleness")]
    return Answer(
        found=found,
        costs=costs,
        limit=_limit(found, costs[0], now[0], grows),
        step_s=interval([costs[0].system.sync_every / one.updates if one.updates else math.inf for one in now]),
        idle=intervals[0],
        slots_idle=intervals[1],
        staleness=intervals[2],
        before=now[0].staleness_before,
        dropped=now[0].dropped,
        length_bias=now[0].length_bias,
        grows=grows,
        changes=tuple(best_changes(costs, found.system)),
        spare=removable(costs),
    )


def _is_said(unknown: str, given: Given) -> bool:
    """Return whether the command line says what the log does not."""
    names = [name.removeprefix("--").replace("-", "_") for name in re.findall(r"--[a-z][a-z-]*", unknown)]
    fields = [{"jitter": "cycle_factors", "update": "update_s"}.get(name, name) for name in names]
    return bool(fields) and all(getattr(given, name, None) is not None for name in fields)


def _without_times(found: Measurements) -> Answer:
    """Return what a log without times of updates allows to say."""
    none = Interval(math.nan, math.nan, math.nan)
    limit = "training" if found.staleness_growth else "unknown"
    grows = found.staleness_growth is not None
    return Answer(found, [], limit, none, none, none, none, math.nan, math.nan, math.nan, grows, (), (0.0, 0.0))


def _limit(found: Measurements, costs: Costs, now: Any, grows: bool) -> str:
    """Return what limits the run: by the log's own times where it has them, else by the simulation."""
    if grows or found.staleness_growth:
        return "training"
    shares = found.shares if found.steps else {"wait": now.idle, "sync": now.syncing, "update": now.utilisation}
    if shares["sync"] > _SYNCS and shares["sync"] > shares["wait"]:
        return "weight sync"
    if found.mode == SYNCHRONOUS:
        return "generation" if shares["wait"] > shares["update"] else "training"
    if shares["wait"] <= _HELD_UP:
        return "training"
    if now.idle_age > max(_REASON, now.idle_limit) and not costs.system.one_ahead:
        return "age"
    return "in flight" if now.idle_limit > _REASON else "generation"


# In words


def sentences(told: Answer) -> list[str]:
    """Return the answer in words, what limits first."""
    spoken = [*_limits(told), *_times(told), *_stale(told), *_changes(told), *_spare(told), *_sure(told)]
    notes = told.costs[0].notes if told.costs else told.found.notes
    spoken += [f"{note[0].upper()}{note[1:]}." for note in notes]
    if told.found.unknown:
        spoken.append(f"This log can't tell: {'; '.join(told.found.unknown)}.")
    return spoken


def _limits(told: Answer) -> Iterator[str]:
    found = told.found
    if found.staleness_growth is not None:
        rate = number(round(found.staleness_growth, 1))
        about = "about five" if 4.5 <= found.staleness_growth < 5.5 else f"about {rate}"
        yield f"The learner is overloaded: staleness grows by {about} versions a second ({rate} by the log's lag)."
        made = found.updates_per_s or 0.0
        if made > found.staleness_growth:
            times = 1.0 / (1.0 - found.staleness_growth / made)
            fast = f"{number(times)} times as fast"
            yield f"It makes {number(made)} versions a second, and would keep up if it were {fast}."
    elif told.limit == "unknown":
        lag = mean(found.staleness)
        fine = "below" if lag < 20 else "within" if lag <= _FINE else "beyond"
        yield (
            f"The learner is not overloaded by this log: the lag is {number(lag)} updates on average and does not only "
            f"grow. It is {fine} the 20 to 30 that Sample Factory's documentation calls usually fine."
        )
    elif found.mode == SYNCHRONOUS:
        other = "generation" if told.limit == "training" else "training"
        yield f"Generation and training take turns, and {told.limit} takes longer: {other} can't begin before it ends."
    else:
        yield {
            "training": "Training is the limit: the generators are fast enough.",
            "generation": "Generation is the limit: the trainer waits for rollouts.",
            "weight sync": "Weight syncs are the limit: trainer and generators wait for them.",
            "age": "The bound on age is the limit: it keeps generators idle while the trainer waits.",
            "in flight": "The limit on rollouts in flight is the limit: slots are idle while the trainer waits.",
        }[told.limit]


def _times(told: Answer) -> Iterator[str]:
    found = told.found
    if not told.costs:
        return
    if found.steps:
        shares = found.shares
        parts = [f"trains for {percent(shares['update'])}", f"waits for rollouts for {percent(shares['wait'])}"]
        rest = 1.0 - sum(shares.values())
        if rest > 0.02:
            parts.append(f"does other work for {percent(rest)}")
        if shares["sync"]:
            parts.append(f"waits for weight syncs for {percent(shares['sync'])}")
        verb = "A step" if found.updates_a_step == 1 else f"A step of {found.updates_a_step} updates"
        yield (
            f"{verb} takes {in_seconds(found.step_mean_s)}: the trainer {listed(parts)} of it (from times, "
            f"{found.steps} step{'s' if found.steps > 1 else ''})."
        )
    idle = found.generators_idle
    said = "" if idle is None else f"; by the times of single {found.unit}s {percent(idle)}"
    yield f"The generators are idle {_range(told.slots_idle)} of the time by the simulation{said}."


def _stale(told: Answer) -> Iterator[str]:
    measured = mean(told.found.staleness) if told.found.staleness.size else math.nan
    known = "" if math.isnan(measured) else f"; the log has {number(measured)}"
    if not told.costs:
        return
    if told.grows:
        yield f"Staleness grows: nothing bounds it{known}."
        return
    if _is_fresh(told):
        yield f"Rollouts are learned from by the parameters that generated them{known}."
        return
    inside = told.staleness.mean - told.before
    low, high = (number(max(0.0, value)) for value in told.staleness[1:])
    spread = "" if low == high else f" ({low} to {high})"
    yield (
        f"Rollouts are {updates(told.staleness.mean)} stale when they are learned from{spread}, "
        f"{number(told.before)} before the queue and {number(max(0.0, inside))} in it{known}."
    )
    if told.dropped > 0.005 or abs(told.length_bias) > 0.02:
        yield (
            f"{percent(told.dropped)} of the rollouts are dropped, and those learned from are "
            f"{percent(abs(told.length_bias))} {'shorter' if told.length_bias < 0 else 'longer'} than all."
        )


def _is_fresh(told: Answer) -> bool:
    """Return whether nothing is ever stale."""
    return told.staleness.mean < 0.005


def _changes(told: Answer) -> Iterator[str]:
    if not told.costs:
        whose, helpful = told.found.system, (knobs.TRAINERS, knobs.QUEUE, knobs.STALENESS)
        named = "; ".join(f"`{knobs.setting(whose, knob, times=2)}`" for knob in helpful)
        if told.grows:
            yield (
                f"What helps, in this order: {named}. Without the times of updates the log allows no prediction "
                "of their gains."
            )
        return
    if not told.changes:
        yield "None of the changes looked at would gain 1 % or more."
        return
    for place, change in enumerate(told.changes[:MOST_CHANGES], 1):
        setting = f" (`{change.setting}`)" if change.setting else ""
        what = f"{change.name}{setting}: {gain(change.gain)} rollouts a second"
        yield f"Change {place}: {what}; {_age(change)}."


def _age(change: Change) -> str:
    """Return how stale rollouts are after a change."""
    return "the queue grows" if change.grows else f"{updates(change.staleness)} stale"


def _spare(told: Answer) -> Iterator[str]:
    if not told.costs or told.found.mode == SYNCHRONOUS:
        return
    generators, trainers = told.spare
    parts = []
    if generators:
        parts.append(f"{percent(generators)} of the generators")
    if trainers:
        parts.append(f"{percent(trainers)} of the trainer's devices, if updates scale perfectly,")
    if parts:
        yield f"{' or '.join(parts)} could go with a loss of less than 2 %."
    else:
        yield "Nothing could be taken away without a loss."


def _sure(told: Answer) -> Iterator[str]:
    if not told.costs:
        return
    steps = told.found.steps
    if steps < 2:
        yield (
            "How sure: the log has one step, so that ranges are the simulation's own over seeds, and say "
            "nothing of other steps."
        )
    else:
        yield (
            f"How sure: ranges hold 95 % over {SEEDS} seeds, each with the log's {steps} steps drawn "
            "again; steps count as independent."
        )


def _range(share: Interval) -> str:
    low, high = (percent(min(1.0, max(0.0, value))) for value in share[1:])
    return percent(share.mean) if low == high else f"{percent(share.mean)} ({low} to {high})"


def split_table(found: list[Split], budget: int) -> rich.table.Table:
    """Return what the splits of a budget come to."""
    shown = rich.table.Table(box=rich.box.SIMPLE_HEAD, title=f"{budget} devices", title_justify="left")
    for name in ("gen:train", "step s", "95 %", "trainer idle", "gen. idle", "stale", "hours"):
        shown.add_column(name, justify="right", no_wrap=True)
    for one in found:
        spread = f"{number(max(0.0, one.step_s.low))}-{number(one.step_s.high)}"
        shares = percent(one.idle), percent(one.slots_idle), number(one.staleness), number(one.hours)
        shown.add_row(f"{one.generators}:{one.trainers}", number(one.step_s.mean), spread, *shares)
    return shown


def scaling_words(costs: Costs, serial: float) -> str:
    """Return how a budget's two sides are assumed to scale."""
    shrinks = "an update's time shrinks in proportion to the trainer's devices"
    if serial:
        shrinks = (
            f"{percent(serial)} of an update's time stays and the rest shrinks in proportion to the trainer's devices"
        )
    return (
        "Assumed: slots for rollouts grow in proportion to the generators and a rollout takes as long as now; "
        f"{shrinks} (--serial says otherwise). Hours are machine-hours of 1,000 steps on all devices; a step ends with "
        "a weight sync."
    )


def split_words(found: list[Split]) -> str:
    """Return the best split, and the cheapest that comes near."""
    best = min(found, key=lambda one: one.step_s.mean)
    return (
        f"The best split is {best.generators}:{best.trainers} (generators:trainer): a step of "
        f"{in_seconds(best.step_s.mean)}, the trainer idle {percent(best.idle)}, "
        f"{updates(best.staleness)} stale."
    )


def what_if_words(found: list[Change], serial: float) -> Iterator[str]:
    """Return what overlap would gain."""
    for change in found:
        text = f"{change.name}, {change.setting}: {gain(change.gain)} rollouts a second; "
        text = f"{text[0].upper()}{text[1:]}{_age(change)}"
        yield f"{text}, the trainer idle {percent(change.idle)}."
    if max(change.gain.mean for change in found) < 0.05:
        yield "Overlap gains less than 5 %: one side takes nearly all of the time."


def as_json(told: Answer) -> dict[str, Any]:
    """Return the answer for machines."""
    found = told.found
    numbers = {"step_s": told.step_s, "idle": told.idle, "slots_idle": told.slots_idle, "staleness": told.staleness}
    shares = {name: finite(value) for name, value in found.shares.items()} if found.steps else {}
    return {
        "system": found.system,
        "mode": found.mode,
        "steps": found.steps,
        "limit": told.limit,
        "grows": told.grows,
        "staleness_growth": found.staleness_growth,
        "measured": {
            "step_s": finite(found.step_mean_s) if found.steps else None,
            **shares,
            "generators_idle": found.generators_idle,
        },
        "simulated": {
            name: {key: finite(value) for key, value in one._asdict().items()} for name, one in numbers.items()
        },
        "staleness_before": finite(told.before),
        "dropped": finite(told.dropped),
        "length_bias": finite(told.length_bias),
        "costs": told.costs[0].system._asdict() if told.costs else None,
        "changes": [change_json(change) for change in told.changes],
        "could_go": {"generators": told.spare[0], "trainers": told.spare[1]},
        "words": sentences(told),
        "unknown": list(found.unknown),
    }


def change_json(change: Change) -> dict[str, Any]:
    """Return a change for machines."""
    return {**change._asdict(), "gain": change.gain._asdict(), "system": change.system._asdict()}
