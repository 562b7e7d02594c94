"""The sentences under the figures that say why: load, queue, staleness, saturation, and what an episode costs."""

from collections.abc import Callable

import numpy as np

from analysis.figures_why import backlogged, saturating_workers, worker_time
from analysis.readings import sentence
from analysis.study import Schedule, Study
from analysis.words import duration, listed, number, percent


def of_load(study: Study) -> str:
    """Say what arrives at the master at the start, and whether longer episodes relieve it."""
    fixed = study.schedules(dynamic=False)
    start = {s: study.estimate(s, "load_start").value for s in fixed}
    said = f"At the start the work that arrives is {_each(start, _times)} of what the master can do."
    under = [s for s in fixed if start[s] <= 1]
    if not under:
        return said
    end = percent(study.estimate(under[-1], "load_end").value)
    return (
        f"{said} As episodes grow longer, the load of {under[-1].title} goes from {percent(start[under[-1]])} to {end}."
    )


def _times(load: float) -> str:
    return f"{number(load)} times" if load > 1 else percent(load)


def _each(values: dict[Schedule, float], show: Callable[[float], str]) -> str:
    """Return "3 with 4 workers and 5 with 10 workers", or of many only the least and the most."""
    if len(values) <= 5:
        return listed(f"{show(value)} with {schedule.title}" for schedule, value in values.items())
    least, most = min(values, key=lambda s: values[s]), max(values, key=lambda s: values[s])
    return f"from {show(values[least])} with {least.title} to {show(values[most])} with {most.title}"


def of_queue(study: Study) -> str:
    """Say how long the queue got."""
    peaks = {s: float(study.values(s, "queue_peak").median()) for s in study.schedules()}
    said = _fixed_and_dynamic(peaks, lambda peak: f"{peak:,.0f}")
    return f"At its longest the queue holds {said} (medians over runs)."


def of_staleness(study: Study) -> str:
    """Say how old gradients are when they are applied."""
    ages = {s: study.estimate(s, "staleness_mean").value for s in study.schedules()}
    said = _fixed_and_dynamic(ages, number)
    return f"Between a gradient's pull and its turn the master applies other updates: on average {said}."


def _fixed_and_dynamic(values: dict[Schedule, float], show: Callable[[float], str]) -> str:
    """Return the values of fixed schedules, then the most of the dynamic ones."""
    fixed = {schedule: value for schedule, value in values.items() if not schedule.dynamic}
    dynamic = {schedule: value for schedule, value in values.items() if schedule.dynamic}
    if len(dynamic) <= 1 or not fixed:
        return _each(values, show)
    most = max(dynamic, key=lambda s: dynamic[s])
    return f"{_each(fixed, show)}; of the dynamic schedules, at most {show(dynamic[most])} with {most.title}"


def of_backlog(study: Study) -> str:
    """Say how long the last gradient waited."""
    waits = []
    for schedule in backlogged(study):
        last = next(study.each_curve(schedule)).iloc[-1]
        waits.append(
            f"with {schedule.title} the last gradient waits {duration(float(last['clock_s'] - last['arrived_s']))}"
        )
    return sentence("; ".join(waits))


def of_arrivals(study: Study) -> str:
    """Read arrivals and capacity."""
    return f"{of_load(study)} {of_backlog(study)}"


def of_waiting(study: Study) -> str:
    """Read queue and staleness."""
    return f"{of_queue(study)} {of_staleness(study)}"


def of_saturation(study: Study) -> str:
    """Compare the predicted saturation with where the master is seen to saturate."""
    fixed, limit = study.schedules(dynamic=False), saturating_workers(study)
    busy = {s: study.estimate(s, "utilisation_start").value for s in fixed}
    seen = [s for s in fixed if busy[s] >= 0.98]
    idle = [s for s in fixed if busy[s] < 0.98]
    if not seen and not idle:
        return "Nothing takes any time here, so that the master is never seen to be busy."
    observed = "the master is seen to saturate "
    if seen and idle:
        observed += f"between {idle[-1].end} ({percent(busy[idle[-1]])} busy) and {seen[0].end} workers"
    else:
        observed += f"at or below {seen[0].end} workers" if seen else f"with none of up to {idle[-1].end} workers"
    if not np.isfinite(limit):
        return sentence(observed)
    agrees = (not idle or idle[-1].end < limit) and (not seen or limit <= seen[0].end)
    done = study.done
    cycle, service = duration(float(done["cycle_s_start"].median())), duration(float(done["service_s"].median()))
    said = f"At the start an episode takes a worker C = {cycle} and the master S = {service}"
    n_star = float(done["saturation_start"].median())
    verdict = "as predicted" if agrees else "unlike predicted"
    return f"{said}, so N* = (C + S) / S = {n_star:.1f}; {observed}, {verdict}.{_crowding(study)}"


def _crowding(study: Study) -> str:
    """Say where more processes than cores slow the master itself."""
    slow = {s: study.estimate(s, "service_s_start").value for s in study.schedules(dynamic=False)}
    expected = float(study.done["service_s"].median())
    worst = max(slow, key=lambda s: slow[s], default=None)
    if worst is None or not slow[worst] > 1.1 * expected:
        return ""
    return f" With {worst.title} there are more processes than cores, and an update takes {duration(slow[worst])}."


def of_worker_time(study: Study) -> str:
    """Say what an episode's time goes to."""
    rows = worker_time(study)
    end, start = rows.iloc[0], rows.iloc[1]
    return (
        f"Playing takes {percent(start['playing'])} of a worker's cycle at the start; one update costs the master "
        f"{percent(start['master'])} of it then, and {percent(end['master'])} at the end."
    )
