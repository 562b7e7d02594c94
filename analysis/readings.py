"""The sentence under each figure, computed from the same data, so that it is true of any study."""

from collections.abc import Sequence

import numpy as np

from analysis import metrics, statistics
from analysis.figures_tradeoff import collapse_map, frontier_points, reference_score
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
        parts.append(f"{names(failed)} {verb} below {metrics.COLLAPSE_SCORE:g} pipe an episode: {how}")
    return sentence("; ".join(parts))


def of_fixed(study: Study) -> str:
    """Read figure 1."""
    return of_scores(study, study.schedules(dynamic=False))


def of_all(study: Study) -> str:
    """Read the scores of all schedules."""
    return of_scores(study, study.schedules())


def of_dynamic(study: Study, dynamic: Sequence[Schedule]) -> str:
    """Compare a dynamic schedule with its control, the fixed schedule nearest to its start."""
    said: dict[str, list[str]] = {}
    for schedule in dynamic:
        control = control_of(study, schedule)
        if control is None:
            return of_scores(study, dynamic)
        faster = statistics.paired_ratio(*study.paired(control, schedule, "clock_s"))
        better = statistics.paired_difference(*study.paired(schedule, control, "final_score"))
        time = duration(study.estimate(schedule, "clock_s").value)
        words = (
            f"took {time} for {study.episodes:,} episodes, {with_interval(faster)} times as fast as {control.title}, "
        )
        said.setdefault(f"{words}and ended {apart(better, 'pipes')}", []).append(schedule.title)
    parts = [f"{listed(titles)} {words}" for words, titles in said.items()]
    collapsed = [s for s in study.schedules(dynamic=False) if study.values(s, "collapsed").mean() > 0.5]
    beware = f" {sentence(names(collapsed) + ' look fast only because their birds die early')}" if collapsed else ""
    return sentence("; ".join(parts)) + beware


def of_workers_alive(study: Study) -> str:
    """Say when each dynamic schedule began to grow and when it was full."""
    said: dict[str, list[str]] = {}
    for schedule in study.schedules(dynamic=True):
        growth = [curve["workers"].to_numpy() for curve in study.each_curve(schedule)]
        begun = [
            float(np.argmax(workers > schedule.start)) / len(workers)
            for workers in growth
            if workers.max() > schedule.start
        ]
        full = [
            float(np.argmax(workers >= schedule.end)) / len(workers)
            for workers in growth
            if workers.max() >= schedule.end
        ]
        words = "never changed its count"
        if begun:
            reached = (
                f"was full after {percent(float(np.median(full)))}" if len(full) > len(growth) / 2 else "was never full"
            )
            words = f"grew from {percent(float(np.median(begun)))} of the episodes on and {reached}"
        said.setdefault(words, []).append(schedule.title)
    return sentence("; ".join(f"{listed(titles)} {words}" for words, titles in said.items()))


def of_tradeoff(study: Study) -> str:
    """Read the frontier and the time to a score."""
    return f"{of_frontier(study)} {of_time_to_score(study)}"


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
    best = points[points["best"]].sort_values("speed", kind="stable")
    points = best.iloc[[0, -1]] if len(best) > 1 else best
    ends = [f"{number(point.learning)} pipes at {number(point.speed)} steps/s" for _, point in points.iterrows()]
    return f"No other schedule beats {listed(best.index)} in both learning and speed: {' to '.join(ends)}."


def of_time_to_score(study: Study) -> str:
    """Say how many runs reached the score, and when."""
    score = reference_score(study)
    reached, never = [], []
    for schedule in study.schedules():
        times = study.values(schedule, f"time_to_{score:g}_s").to_numpy(float)
        hits = int(np.isfinite(times).sum())
        when = f" after {duration(float(np.median(times)))}" if hits > len(times) / 2 else ""
        if hits:
            reached.append(
                (float(np.median(times)), f"by {schedule.title}{when} ({hits} of {count(len(times), 'run')})")
            )
        else:
            never.append(schedule)
    ranked = [text for _, text in sorted(reached)]
    if len(ranked) > 4:
        ranked = [f"first {ranked[0]}", f"last {ranked[-1]}"]
    parts = [listed(ranked)] if ranked else []
    parts += [f"by no run of {names(never)}"] if never else []
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


def names(schedules: Sequence[Schedule]) -> str:
    if any(schedule.dynamic or schedule.tint >= 0 for schedule in schedules):
        return listed(schedule.title for schedule in schedules)
    return listed(schedule.label for schedule in schedules) + (" workers" if schedules[-1].end > 1 else " worker")


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "." if text else ""
