"""Judges: what a study's runs say of one part of a claim, as a finding.

A difference counts from a tenth of what it is compared with (RELEVANT) on. "Better" is supported when the interval lies
above 0, and refuted when it excludes every relevant gain; "as good" is supported when it excludes every relevant loss.
Where only some runs of a schedule learned, "better" compares the shares that did, seed by seed.
"""

from collections.abc import Callable

from analysis.claims.finding import RELEVANT, Finding, contrary, judged, lacking, untested
from analysis.data import outcomes, statistics
from analysis.data.inference import mcnemar, share_difference
from analysis.data.study import Schedule, Study
from analysis.words import apart, number, percent, with_interval

CROWDED = "runs on at least as many cores as processes, or in virtual time"


def better(study: Study, ours: Schedule, theirs: Schedule) -> Finding:
    """Judge whether `ours` ends with a better score than `theirs`, paired by seed."""
    if outcomes.is_mixed(study, ours) or outcomes.is_mixed(study, theirs):
        return _learns_more_often(study, ours, theirs)
    return _ends_above(study, ours, theirs, gain=True)


def as_good(study: Study, ours: Schedule, theirs: Schedule) -> Finding:
    """Judge whether `ours` does not end with a score that is worse than `theirs` by a relevant amount."""
    if outcomes.is_mixed(study, ours) or outcomes.is_mixed(study, theirs):
        return contrary(_learns_more_often(study, theirs, ours))
    return _ends_above(study, ours, theirs, gain=False)


def _ends_above(study: Study, ours: Schedule, theirs: Schedule, gain: bool) -> Finding:
    """Judge whether ours ends above theirs (gain), or not relevantly below."""
    pair = study.paired(ours, theirs, "final_score")
    if not len(pair[0]):
        return no_shared_seed(ours, theirs)
    difference = statistics.paired_difference(*pair)
    margin = RELEVANT * abs(float(statistics.iqm(pair[0 if gain else 1])))
    text = f"{ours.title} {_end(ours)} {apart(difference, study.score.unit)} than {theirs.title}."
    return judged(text, difference, 0.0 if gain else -margin, margin)


def _learns_more_often(study: Study, ours: Schedule, theirs: Schedule) -> Finding:
    """Judge whether a larger share of our runs learned, by more than a tenth."""
    hits = outcomes.paired_hits(study, ours, theirs)
    if not len(hits[0]):
        return no_shared_seed(ours, theirs)
    difference = share_difference(*hits)
    said = [f"{each.sum()} of {len(each)} runs with {s.title}" for each, s in zip(hits, (ours, theirs), strict=True)]
    text = f"{said[0]} learned, and {said[1]}: {with_interval(difference, percent)} more."
    found = judged(text, difference, 0.0, RELEVANT)
    return found._replace(chance=mcnemar(*hits) / 2) if found.verdict == "supported" else found


def times_as(study: Study, ours: Schedule, theirs: Schedule, column: str, bound: float, text: str) -> Finding:
    """Judge whether `column` of ours is over `bound` times that of theirs; `text` has places for the ratio and both."""
    pair = study.paired(ours, theirs, column)
    if not len(pair[0]):
        return no_shared_seed(ours, theirs)
    ratio = statistics.paired_ratio(*pair)
    shown = text.format(ratio=with_interval(ratio), ours=ours.title, theirs=theirs.title)
    return judged(shown, ratio, bound)


def in_steps(study: Study, ours: Schedule, theirs: Schedule) -> str:
    """Return the speed-up in steps: episodes are shorter where less is learned, steps are not."""
    ratio = statistics.paired_ratio(*study.paired(ours, theirs, "steps_per_s"))
    return f"in steps per second {with_interval(ratio)} times"


def collapses(study: Study, schedule: Schedule) -> Finding:
    """Judge whether most runs of a schedule collapse: on too few cores, workers that wait for one spare the master."""
    values = study.values(schedule, "collapsed").astype(bool)
    share = statistics.share(int(values.sum()), len(values))
    text = (
        f"{int(values.sum())} of {len(values)} runs with {schedule.title} collapsed ({with_interval(share, percent)})."
    )
    if is_crowded(study, schedule):
        why = "They had more processes than cores, so that no master met the work of so many workers."
        return untested(f"{text} {why}", CROWDED, share)
    return judged(text, share, 0.5)


def is_crowded(study: Study, schedule: Schedule) -> bool:
    """Return whether some run of a schedule had more processes than cores."""
    return "oversubscribed" in study.done and bool((study.values(schedule, "oversubscribed") == True).any())  # noqa: E712


def over_bound(
    study: Study, schedule: Schedule, column: str, bound: float, text: str, show: Callable[[float], str] = number
) -> Finding:
    """Judge whether `column` of a schedule's runs lies above `bound`; `text` has a place for the value."""
    estimate = outcomes.estimate(study, schedule, column)
    if not estimate.runs:
        return lacking(f"runs of {schedule.title} that record it")
    value = with_interval(outcomes.estimate(study, schedule, column), show)
    return judged(text.format(value=value, ours=schedule.title), estimate, bound)


def falls_short(study: Study, schedule: Schedule) -> Finding | None:
    """Return why a growing schedule's runs say nothing of the number it grows to: most never had so many workers."""
    reached = study.values(schedule, "workers_max") if "workers_max" in study.done else None
    if reached is None or reached.median() >= schedule.end:
        return None
    text = f"{schedule.title} never had more than {int(reached.max())} of its {schedule.end} workers"
    if reached.max() >= schedule.end:
        text = f"most runs of {schedule.title} never had its {schedule.end} workers"
    needed = f"runs of {schedule.title} that come to {schedule.end} workers"
    return untested(
        f"{text}, so that these runs say nothing of {schedule.end}.", needed, study.estimate(schedule, "workers_max")
    )


def no_shared_seed(ours: Schedule, theirs: Schedule) -> Finding:
    """Return the finding of runs that can't be paired."""
    text = f"{ours.title} and {theirs.title} share no seed."
    return untested(text, f"runs of {ours.title} and {theirs.title} with the same seeds")


def _end(schedule: Schedule) -> str:
    return "ends" if schedule.dynamic or schedule.end == 1 else "end"
