"""The sentence under each figure, computed from the same data, so that it is true of any study."""

from collections.abc import Sequence

import numpy as np

from analysis import metrics, statistics
from analysis.figures_tradeoff import collapse_map, frontier_points, reference_score
from analysis.figures_why import backlogged, saturating_workers, worker_time
from analysis.study import Schedule, Study
from analysis.words import apart, count, duration, listed, number, percent, with_interval


def of_scores(study: Study, schedules: Sequence[Schedule]) -> str:
    """Say where each schedule ends, best first, and which learned nothing."""
    ends = {schedule: study.estimate(schedule, "final_score") for schedule in schedules}
    learned = sorted((s for s in schedules if ends[s].value >= metrics.COLLAPSE_SCORE), key=lambda s: -ends[s].value)
    failed = [s for s in schedules if s not in learned]
    parts = []
    if learned:
        parts.append("At the end " + listed(f"{s.title} score {with_interval(ends[s])}" for s in learned) + " pipes")
    if failed:
        verb = "stay" if len(failed) > 1 or not failed[0].dynamic else "stays"
        how = "collapsed" if all(study.values(s, "collapsed").mean() > 0.5 for s in failed) else "learned nothing"
        parts.append(f"{_names(failed)} {verb} below {metrics.COLLAPSE_SCORE:g} pipe an episode: {how}")
    return _sentence("; ".join(parts))


def of_fixed(study: Study) -> str:
    """Read figure 1."""
    return of_scores(study, study.schedules(dynamic=False))


def of_all(study: Study) -> str:
    """Read the scores of all schedules."""
    return of_scores(study, study.schedules())


def of_dynamic(study: Study, dynamic: Sequence[Schedule]) -> str:
    """Compare a dynamic schedule with its control, the fixed schedule nearest to its start."""
    parts = []
    for schedule in dynamic:
        control = control_of(study, schedule)
        if control is None:
            return of_scores(study, dynamic)
        faster = statistics.paired_ratio(*study.paired(control, schedule, "clock_s"))
        better = statistics.paired_difference(*study.paired(schedule, control, "final_score"))
        hours = study.estimate(schedule, "clock_s").value
        parts.append(
            f"{schedule.title} plays {study.episodes:,} episodes in {duration(hours)}, {with_interval(faster)} times as fast "
            f"as {control.title}, and ends {apart(better, 'pipes')}"
        )
    collapsed = [s for s in study.schedules(dynamic=False) if study.values(s, "collapsed").mean() > 0.5]
    beware = f" {_sentence(_names(collapsed) + ' look fast only because their birds die early')}" if collapsed else ""
    return _sentence("; ".join(parts)) + beware


def of_workers_alive(study: Study) -> str:
    """Say when each dynamic schedule began to grow and when it was full."""
    parts = []
    for schedule in study.schedules(dynamic=True):
        growth = [curve["workers"].to_numpy() for curve in study.each_curve(schedule)]
        share = [(np.flatnonzero(w > schedule.start), np.flatnonzero(w >= schedule.end), len(w)) for w in growth]
        begun = [first[0] / size for first, _, size in share if first.size]
        full = [last[0] / size for _, last, size in share if last.size]
        if not begun:
            parts.append(f"{schedule.title} never changed its count")
            continue
        reached = f"is full after {percent(float(np.median(full)))}" if len(full) > len(growth) / 2 else "is never full"
        parts.append(f"{schedule.title} grows after {percent(float(np.median(begun)))} of the episodes and {reached}")
    return _sentence("; ".join(parts))


def of_load(study: Study) -> str:
    """Say what arrives at the master at the start, and whether longer episodes relieve it."""
    fixed = study.schedules(dynamic=False)
    start = {s: study.estimate(s, "load_start").value for s in fixed}
    over, under = [s for s in fixed if start[s] > 1], [s for s in fixed if start[s] <= 1]
    parts = [f"{number(start[s])} times with {s.title}" for s in over] + [f"{percent(start[s])} with {s.title}" for s in under]
    said = f"At the start the work that arrives is {listed(parts)} of what the master can do."
    relief = ""
    if under:
        end = study.estimate(under[-1], "load_end").value
        relief = f" As episodes grow longer, the load of {under[-1].title} goes from {percent(start[under[-1]])} "
        relief += f"to {percent(end)}."
    return said + relief


def of_queue(study: Study) -> str:
    """Say how long the queue got."""
    parts = [f"{study.values(s, 'queue_peak').median():,.0f} with {s.title}" for s in study.schedules()]
    return _sentence(f"At its longest the queue holds {listed(parts)} (medians)")


def of_staleness(study: Study) -> str:
    """Say how old gradients are when they are applied."""
    parts = [f"{number(study.estimate(s, 'staleness_mean').value)} with {s.title}" for s in study.schedules()]
    return _sentence(f"Between a gradient's pull and its turn the master applies, on average, {listed(parts)} updates")


def of_backlog(study: Study) -> str:
    """Say how long the last gradient waited."""
    waits = []
    for schedule in backlogged(study):
        last = next(study.each_curve(schedule)).iloc[-1]
        waits.append(f"with {schedule.title} the last gradient waits {duration(float(last['clock_s'] - last['arrived_s']))}")
    return _sentence("; ".join(waits))


def of_arrivals(study: Study) -> str:
    """Read arrivals and capacity."""
    return f"{of_load(study)} {of_backlog(study)}"


def of_waiting(study: Study) -> str:
    """Read queue and staleness."""
    return f"{of_queue(study)} {of_staleness(study)}"


def of_tradeoff(study: Study) -> str:
    """Read the frontier and the time to a score."""
    return f"{of_frontier(study)} {of_time_to_score(study)}"


def of_saturation(study: Study) -> str:
    """Compare the predicted saturation with where the master is seen to saturate."""
    fixed, limit = study.schedules(dynamic=False), saturating_workers(study)
    busy = {s: study.estimate(s, "utilisation_start").value for s in fixed}
    seen = [s for s in fixed if busy[s] >= 0.98]
    idle = [s for s in fixed if busy[s] < 0.98]
    observed = "the master is seen to saturate "
    if seen and idle:
        observed += f"between {idle[-1].end} ({percent(busy[idle[-1]])} busy) and {seen[0].end} workers"
    else:
        observed += f"at or below {seen[0].end} workers" if seen else f"with none of up to {idle[-1].end} workers"
    if not np.isfinite(limit):
        return _sentence(observed)
    agrees = (not idle or idle[-1].end < limit) and (not seen or limit <= seen[0].end)
    done = study.done
    cycle, service = duration(float(done["cycle_s_start"].median())), duration(float(done["service_s"].median()))
    said = f"An untrained episode takes a worker C = {cycle} and the master S = {service}"
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
        f"{percent(start['master'])} of it then, and {percent(end['master'])} at the end, when episodes are longer."
    )


def of_axes(study: Study) -> str:
    """Say which schedule is ahead per episode and which per hour."""
    score = reference_score(study)
    kinds = (("episodes", f"episodes_to_{score:g}"), ("time", f"time_to_{score:g}_s"))
    parts = []
    for words, column in kinds:
        medians = {s: float(np.median(study.values(s, column))) for s in study.schedules()}
        first = min(medians, key=lambda s: medians[s])
        if not np.isfinite(medians[first]):
            return f"No schedule reaches a mean score of {score:g} in most of its runs."
        shown = number(medians[first]) + " episodes" if words == "episodes" else duration(medians[first])
        parts.append(f"in {words} by {first.title} ({shown})")
    return f"A mean score of {score:g} is reached first {listed(parts)}."


def of_frontier(study: Study) -> str:
    """Name the schedules that no other beats in both, from slow to fast."""
    points = frontier_points(study)
    best = points[points["best"]].sort_values("speed")
    shown = listed(f"{label} ({number(p.speed)} steps/s, {number(p.learning)} pipes)" for label, p in best.iterrows())
    return f"No other schedule beats {shown} in both speed and learning."


def of_time_to_score(study: Study) -> str:
    """Say how many runs reached the score, and when."""
    score = reference_score(study)
    reached, never = [], []
    for schedule in study.schedules():
        times = study.values(schedule, f"time_to_{score:g}_s").to_numpy(float)
        hits = int(np.isfinite(times).sum())
        when = f" after {duration(float(np.median(times)))}" if hits > len(times) / 2 else ""
        if hits:
            reached.append((float(np.median(times)), f"by {schedule.title}{when} ({hits} of {count(len(times), 'run')})"))
        else:
            never.append(schedule)
    parts = [listed(text for _, text in sorted(reached))] if reached else []
    parts += [f"by no run of {_names(never)}"] if never else []
    return f"A mean score of {score:g} is reached {'; '.join(parts)} (median times)."


def of_settings(study: Study) -> str:
    """Name the best and the worst setting."""
    ends = {
        (variant, schedule.title): study.of_variant(variant).estimate(schedule, "final_score").value
        for variant in study.variants
        for schedule in study.of_variant(variant).schedules()
    }
    best, worst = max(ends, key=lambda k: ends[k]), min(ends, key=lambda k: ends[k])
    return (
        f"The best end is that of {best[0]} with {best[1]} ({number(ends[best])} pipes), "
        f"the worst that of {worst[0]} with {worst[1]} ({number(ends[worst])})."
    )


def of_collapse_map(study: Study) -> str:
    """Count the combinations that the predicted line sorts rightly."""
    table = collapse_map(study)
    predicted = table["end"] >= (table["cycle_s"] + table["service_s"]) / table["service_s"]
    right = int((predicted == (table["collapsed"] > 0.5)).sum())
    return f"The line N* = (C + S) / S sorts {right} of {len(table)} combinations of workers and update cost rightly."


def control_of(study: Study, schedule: Schedule) -> Schedule | None:
    """Return a dynamic schedule's control: the fixed one with its number at the start, else the nearest below."""
    below = [fixed for fixed in study.schedules(dynamic=False) if fixed.end <= schedule.start]
    return below[-1] if below else None


def _names(schedules: Sequence[Schedule]) -> str:
    if any(schedule.dynamic or schedule.tint >= 0 for schedule in schedules):
        return listed(schedule.title for schedule in schedules)
    return listed(schedule.label for schedule in schedules) + (" workers" if schedules[-1].end > 1 else " worker")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "." if text else ""
