"""Advice in words, as a table and as a chart: for people, and as JSON for machines."""

import math
from collections.abc import Iterator
from typing import Any

import rich.box
import rich.table

from a3c.advise.advice import NEARLY_ALL, Advice, Remedy, is_overflowing
from a3c_core.command_line.arguments import in_seconds

_BAR = 40  # characters of the longest bar


def sentences(advice: Advice) -> list[str]:
    """Return the advice in words, the answer first."""
    spoken = [_fed(advice), _asked(advice), _enough(advice), _stale(advice), _remedy(advice), _sure(advice)]
    return [*spoken, *_grown(advice), *(f"{note[0].upper()}{note[1:]}." for note in advice.costs.notes)]


def _fed(advice: Advice) -> str:
    system = advice.costs.system
    cycle, update = in_seconds(system.cycle_s + system.latency_s), in_seconds(system.update_s)
    gradients = f" of {system.batch} gradients" if system.batch > 1 else ""
    costs = f"a worker's cycle takes C = {cycle} and an update{gradients} S = {update}"
    full = f"N0 = C / S = {_number(system.n0)}, N* = (C + S) / S = {_number(system.n_star)}"
    if system.batch > 1:
        full = full.replace("/ S", f"/ (S / {system.batch})")
    return f"This learner can feed {_workers(advice.fed)}: {costs}, so {full} ({advice.costs.about})."


def _asked(advice: Advice) -> str:
    system = advice.costs.system
    fed = [count for count in advice.asked if count <= system.n0]
    beyond = [count for count in advice.asked if count > system.n0]
    parts = [f"{_listed(fed)} can be fed"] if fed else []
    if beyond and is_overflowing(system, beyond[0]):
        growths = _listed([f"{_number(max(0.0, advice.at(count).growth))} a second" for count in beyond])
        parts.append(f"{_listed(beyond)} overflow{'' if len(beyond) > 1 else 's'}: gradients pile up, by {growths}")
    elif beyond:
        idle = [f"{_percent(1 - advice.at(count).played / _unheld(advice, count))}" for count in beyond]
        parts.append(f"{_listed(beyond)} wait for the learner {_listed(idle)} of their time")
    return "; ".join(parts) + "."


def _unheld(advice: Advice, workers: int) -> float:
    """Return the gradients per second of workers that never wait."""
    return workers / (advice.costs.system.cycle_s + advice.costs.system.latency_s)


def _enough(advice: Advice) -> str:
    most = _number(advice.costs.system.batch / advice.costs.system.update_s)
    reached = max(counted.outcome.throughput for counted in advice.counted)
    share = _percent(NEARLY_ALL)
    text = f"The learner takes {most} gradients a second at most; {advice.enough:,} workers reach {share} of what any"
    text += " number does, and more stop helping there"
    if reached < 0.9 * advice.costs.system.batch / advice.costs.system.update_s:
        text += f" (the cores are used up first, at {_number(reached)} a second)"
    return f"{text}."


def _stale(advice: Advice) -> str:
    system = advice.costs.system
    said = []
    for count in (count for count in advice.asked if not is_overflowing(system, count)):
        outcome = advice.at(count)
        said.append(f"{_number(outcome.staleness)} with {_workers(count)} (95 %: at most {outcome.staleness_95:,.0f})")
    without_end = [count for count in advice.asked if is_overflowing(system, count)]
    if without_end:
        said.append(f"ever more with {_listed(without_end)}")
    return f"Gradients get stale, by updates of others meanwhile: {', '.join(said)}."


def _remedy(advice: Advice) -> str:
    most = max(advice.asked)
    if most <= advice.costs.system.n0:
        busy = advice.at(most).utilisation
        return f"No remedy is needed up to {most:,} workers, which keep the learner {_percent(busy)} busy."
    best = advice.remedies[0]
    setting = f" (`{best.setting}`)" if best.setting else ""
    now = advice.at(most).throughput
    text = f"With {most:,} workers these costs ask for: {best.name}{setting}, {_number(best.episodes_per_s)} episodes a"
    text += f" second instead of {_number(now)}, {_number(best.staleness)} updates stale"
    cheapest = next((other for other in advice.remedies if _only_fresher(other, now)), None)
    if cheapest is not None and cheapest is not best:
        text += (
            f"; {cheapest.name} (`{cheapest.setting}`) is no faster, but keeps them {_number(cheapest.staleness)} stale"
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
            f"N0 is {_number(max(0.0, low))} to {_number(high)} by this log of {costs.parcels:,} gradients (95 %)"
        )
    else:
        parts.append(f"10 % on either cost moves N0 by {_number(0.1 * system.n0)}")
    if advice.fed >= 1:
        full = costs.simulate(system._replace(workers=advice.fed))
        varied = (
            f"cycles that vary by {_percent(costs.deviation)}"
            if costs.deviation >= 0.005
            else "cycles that do not vary"
        )
        waiting = f"{_number(full.waiting)} gradients wait on average"
        parts.append(f"with {varied}, {_workers(advice.fed)} keep it {_percent(full.utilisation)} busy and {waiting}")
    if costs.growth == 1.0:
        parts.append("if episodes get longer, as they do when something is learned, N0 grows in proportion")
    return f"How sure: {'; '.join(parts)}."


def _grown(advice: Advice) -> Iterator[str]:
    costs, schedule = advice.costs, advice.schedule
    if costs.growth == 1.0:
        return
    each_s = costs.system.update_s / costs.system.batch
    first, last = costs.cycles_s[0] / each_s, costs.cycles_s[-1] / each_s
    grown = f"Cycles get {_number(costs.growth)} times as long: N0 is {_number(first)} at first"
    when = "first" if costs.growth > 1 else "last"
    yield f"{grown} and {_number(last)} at the end; the {when} is what counts where workers do not wait."
    if schedule is not None:
        workers = f"from {schedule.start:,} to {schedule.end:,}"
        gain = f"{_number(schedule.gain)} times as fast as the best fixed number, {schedule.fixed:,}"
        yield f"Workers may grow with them, {workers}: {gain}."


def table(advice: Advice) -> rich.table.Table:
    """Return what each number of workers comes to."""
    shown = rich.table.Table(box=rich.box.SIMPLE_HEAD)
    for name in ("workers", "gradients/s", "busy", "stale", "95 %", "waiting", "queue grows"):
        shown.add_column(name, justify="right")
    for workers, outcome in advice.counted:
        rest = _number(outcome.staleness), f"{outcome.staleness_95:,.0f}", _number(outcome.waiting), "-"
        if is_overflowing(advice.costs.system, workers):
            rest = "∞", "∞", "∞", f"{_number(outcome.growth)}/s"
        shown.add_row(f"{workers:,}", _number(outcome.throughput), _percent(outcome.utilisation), *rest)
    return shown


def remedy_table(advice: Advice) -> rich.table.Table:
    """Return what the remedies come to with the most workers asked for."""
    shown = rich.table.Table(box=rich.box.SIMPLE_HEAD)
    shown.add_column(f"with {max(advice.asked):,} workers")
    for name in ("feeds", "episodes/s", "stale"):
        shown.add_column(name, justify="right")
    for remedy in advice.remedies:
        feeds = "all" if math.isinf(remedy.n0) else f"{math.floor(remedy.n0 + 1e-9):,}"
        stale = "grows" if remedy.grows else _number(remedy.staleness)
        shown.add_row(remedy.name, feeds, _number(remedy.episodes_per_s), stale)
    return shown


def chart(advice: Advice) -> str:
    """Return gradients per second as bars, a line for each number of workers."""
    most = max(counted.outcome.throughput for counted in advice.counted)
    lines = []
    for workers, outcome in advice.counted:
        bar = "█" * max(1, round(_BAR * outcome.throughput / most))
        mark = " overflows" if is_overflowing(advice.costs.system, workers) else ""
        lines.append(f"{workers:>8,} {bar:<{_BAR}} {_number(outcome.throughput)}/s{mark}")
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
        "table": [{"workers": workers, **outcome._asdict()} for workers, outcome in advice.counted],
        "remedies": [{**remedy._asdict(), "n0": _finite(remedy.n0)} for remedy in advice.remedies],
        "schedule": {**advice.schedule._asdict(), "line": advice.schedule.line} if advice.schedule else None,
    }


def _workers(count: int) -> str:
    return f"{count:,} worker{'s' if count != 1 else ''}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _number(value: float) -> str:
    """Return a number to three digits, or all before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{round(value, 2):.3g}"


def _listed(values: list[Any]) -> str:
    texts = [f"{value:,}" if isinstance(value, int) else str(value) for value in values]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
