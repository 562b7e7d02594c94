"""The page: results that Python computed for a grid of settings; sliders choose among them. It needs no network."""

import html
import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from a3c.advise import answer, workers
from a3c.advise.costs import Costs
from a3c.advise.remedies import needs_bound
from a3c.advise.simulator import UNBOUNDED, UNLIMITED, Outcome, System, simulate
from a3c.advise.words import number, percent

_TEMPLATE = Path(__file__).with_name("page.html")
_CODE, _AS_CODE = re.compile(r"`([^`]*)`"), r"<code>\1</code>"
_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
_DEVICES = (0.5, 0.75, 1.0, 1.5, 2.0)
_BOUNDS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, UNLIMITED)
_COUNTS = 10  # of workers
_MANY = 2_000  # workers: beyond, a page has fewer settings, and each is simulated for fewer cycles
_CYCLES = 8


class Axis(NamedTuple):
    """A slider: the settings that it chooses from."""

    label: str
    texts: list[str]
    changes: list[Callable[[System], System]]
    start: int  # the setting that the answer is about
    at: list[int] | None = None  # where they lie along a chart, if not evenly


class Metric(NamedTuple):
    """A number of each setting: how it is read from an outcome, and how it is shown."""

    label: str
    value: Callable[[System, Outcome], float]
    text: Callable[[float], str]
    endless: bool = False  # it has no mean where the queue grows


def page_of_workers(advice: workers.Advice) -> str:
    """Return the page for workers and a learner."""
    system = advice.costs.system
    axes = [
        _workers_axis(advice),
        _times("time of an episode", system, "cycle_s", _FACTORS[1:-1]),
        _times("time of an update", system, "service_s", _FACTORS),
    ]
    axes.append(_exchange_axis(system))
    metrics = [
        Metric("gradients per second", lambda _, one: one.throughput, number),
        Metric("learner busy", lambda _, one: one.utilisation, percent),
        Metric("updates stale, mean", lambda _, one: one.staleness, number, endless=True),
        Metric("stale, 95 % at most", lambda _, one: one.staleness_95, number, endless=True),
        Metric("N0, if nobody waits", lambda system, _: system.n0, number),
        Metric("N*, if all wait", lambda system, _: system.n_star, number),
    ]
    said = workers.sentences(advice)
    schedule = "" if advice.schedule is None else advice.schedule.line
    title = "How many workers does this learner keep up with?"
    return _page(title, said, schedule, advice.costs, axes, metrics)


def page_of_log(told: answer.Answer) -> str:
    """Return the page for a trainer's log."""
    title = "What limits this trainer?"
    if not told.costs:
        return _page(title, answer.sentences(told), "", None, [], [])
    system = told.costs[0].system
    axes = [
        Axis("generators", [f"× {one:g}" for one in _DEVICES], [_slots(one) for one in _DEVICES], 2),
        Axis("trainer's speed", [f"× {one:g}" for one in _DEVICES], [_speed(one) for one in _DEVICES], 2),
        _bound_axis(system),
    ]
    metrics = [
        Metric("seconds a step", lambda system, one: system.sync_every / one.updates if one.updates else 0.0, number),
        Metric("trainer idle", lambda _, one: one.idle, percent),
        Metric("updates stale, mean", lambda _, one: one.staleness, number, endless=True),
        Metric("generators idle", lambda _, one: one.slots_idle, percent),
        Metric("rollouts per second", lambda _, one: one.throughput, number),
        Metric("rollouts dropped", lambda _, one: one.dropped, percent),
    ]
    return _page(title, answer.sentences(told), "", told.costs[0], axes, metrics)


def _page(title: str, said: list[str], code: str, costs: Costs | None, axes: list[Axis], metrics: list[Metric]) -> str:
    """Return the page, its grid simulated with one seed, the answer's first."""
    data: dict[str, Any] = {"axes": [], "metrics": [], "texts": [], "values": []}
    if costs is not None:
        data["axes"] = [{"label": one.label, "texts": one.texts, "start": one.start, "at": one.at} for one in axes]
        data["metrics"] = [metric.label for metric in metrics]
        for changes in itertools.product(*(axis.changes for axis in axes)):
            texts, values = _results(costs, changes, metrics)
            data["texts"].append(texts)
            data["values"].append(values)
    words = "".join(f"<p>{_CODE.sub(_AS_CODE, html.escape(sentence))}</p>\n" for sentence in said)
    if code:
        words += f"<pre>{html.escape(code)}</pre>\n"
    script = json.dumps(data).replace("</", "<\\/")
    text = _TEMPLATE.read_text(encoding="utf-8").replace("<!--TITLE-->", html.escape(title))
    return text.replace("<!--WORDS-->", words).replace('"DATA"', script)


def _results(
    costs: Costs, changes: tuple[Callable[[System], System], ...], metrics: list[Metric]
) -> tuple[list[str], list[float | None]]:
    """Return what a setting comes to, as texts and as numbers; "grows" where there is no mean."""
    system = costs.system
    for change in changes:
        system = change(system)
    events = None if system.workers <= _MANY else _CYCLES * system.workers
    outcome = simulate(system, costs.cycle_factors, costs.service_factors, events=events)
    grows = needs_bound(system)
    texts: list[str] = []
    values: list[float | None] = []
    for metric in metrics:
        value = None if grows and metric.endless else metric.value(system, outcome)
        texts.append("grows" if value is None else metric.text(value))
        values.append(None if value is None else float(f"{value:.4g}"))
    return texts, values


def _workers_axis(advice: workers.Advice) -> Axis:
    """Return numbers of workers up to 1.6 N*, those asked for among them."""
    system = advice.costs.system
    end = max(4, *advice.asked, round(1.6 * system.n_star))
    number_of = _COUNTS if end <= _MANY else _COUNTS // 2
    chosen = {max(system.group, round(end * step / number_of)) for step in range(1, number_of + 1)}
    counts = sorted(
        chosen | {count for count in advice.asked if count >= system.group} | {max(system.group, advice.fed)}
    )
    start = counts.index(max(system.group, min(advice.fed, max(advice.asked))))
    changes = [_replace(workers=count) for count in counts]
    return Axis("workers", [f"{count:,}" for count in counts], changes, start, counts)


def _times(what: str, system: System, name: str, factors: tuple[float, ...]) -> Axis:
    """Return factors of a duration."""
    changes = [_replace(**{name: getattr(system, name) * one}) for one in factors]
    return Axis(what, [f"× {one:g}" for one in factors], changes, factors.index(1.0))


def _exchange_axis(system: System) -> Axis:
    """Return how workers go on after they have handed over."""
    cases = {
        "never wait": {"waits": False, "queue": UNBOUNDED},
        "a queue of 8": {"waits": False, "queue": max(8, system.batch)},
        "wait for their update": {"waits": True, "queue": UNBOUNDED},
    }
    start = 2 if system.waits else 1 if system.queue != UNBOUNDED else 0
    cases[list(cases)[start]] = {"waits": system.waits, "queue": system.queue}
    return Axis("after a hand-over workers", list(cases), [_replace(**case) for case in cases.values()], start)


def _bound_axis(system: System) -> Axis:
    bounds = [*sorted({*_BOUNDS[:-1], *({system.staleness} - {UNLIMITED})}), UNLIMITED]
    if system.colocated or system.one_ahead:  # what such a system does is no question of the bound alone
        bounds = [system.staleness]
    texts = ["none" if bound == UNLIMITED else f"{bound:g}" for bound in bounds]
    return Axis("bound on age", texts, [_replace(staleness=bound) for bound in bounds], bounds.index(system.staleness))


def _slots(times: float) -> Callable[[System], System]:
    return lambda system: system._replace(workers=max(system.group, round(times * system.workers)))


def _speed(times: float) -> Callable[[System], System]:
    return lambda system: system._replace(service_s=system.service_s / times)


def _replace(**changes: Any) -> Callable[[System], System]:
    return lambda system: system._replace(**changes)
