"""Sentences and parts of sentences that several figures share; each is computed, so that it is true of any study."""

from collections.abc import Callable, Sequence

from analysis.data import outcomes, statistics
from analysis.data.outcomes import mostly_collapsed
from analysis.data.study import Schedule, Study
from analysis.words import count, listed, percent, with_interval

_MOST_LISTED = 5  # values in a row that people still read


def of_scores(study: Study, schedules: Sequence[Schedule]) -> str:
    """Say where each schedule's runs end, and which learned nothing."""
    failed = [schedule for schedule in schedules if not outcomes.learned(study, schedule).any()]
    learned = [schedule for schedule in schedules if schedule not in failed]
    parts = [_ends(study, learned)] if learned else []
    parts += [_failures(study, failed)] if failed else []
    return sentence("; ".join(parts))


def _ends(study: Study, learned: Sequence[Schedule]) -> str:
    scores = listed(f"{schedule.title} score {end_of(study, schedule)}" for schedule in learned)
    return f"At the end {scores} {study.score.unit}"


def end_of(study: Study, schedule: Schedule) -> str:
    """Return the final score over all runs, and how many of them learned, where not all did."""
    score = with_interval(outcomes.estimate(study, schedule))
    if not outcomes.is_mixed(study, schedule):
        return score
    return f"{score} ({how_many_learned(study, [schedule])} learned)"


def how_many_learned(study: Study, schedules: Sequence[Schedule]) -> str:
    """Return "3 of 5 runs (60 % [23 %, 88 %])", of all runs of some schedules together."""
    hits = [bool(hit) for schedule in schedules for hit in outcomes.learned(study, schedule)]
    share = statistics.share(sum(hits), len(hits))
    return f"{sum(hits)} of {count(len(hits), 'run')} ({with_interval(share, percent)})"


def _failures(study: Study, failed: Sequence[Schedule]) -> str:
    plural = len(failed) > 1 or not failed[0].dynamic  # "20 workers stay", "10→20 stays"
    how = "collapsed" if all(mostly_collapsed(study, schedule) for schedule in failed) else "learned nothing"
    least = study.score.amount(study.score.learned_above)
    runs = sum(len(outcomes.learned(study, schedule)) for schedule in failed)
    share = percent(statistics.share(0, runs).high)
    stay = f"{names(failed)} {'stay' if plural else 'stays'} below {least} an episode: {how}"
    return f"{stay} (0 of {count(runs, 'run')} learned, at most {share})"


def names(schedules: Sequence[Schedule]) -> str:
    """Return "4 and 10 workers", or the titles where not all are fixed worker counts."""
    if any(schedule.dynamic or schedule.tint >= 0 for schedule in schedules):
        return listed(schedule.title for schedule in schedules)
    return listed(schedule.label for schedule in schedules) + (" workers" if schedules[-1].end > 1 else " worker")


def sentence(text: str) -> str:
    """Return the text with a capital and a full stop; nothing if it is empty."""
    return text[:1].upper() + text[1:] + "." if text else ""


def each(values: dict[Schedule, float], show: Callable[[float], str]) -> str:
    """Return "3 with 4 workers and 5 with 10 workers", or of many only the least and the most."""
    if len(values) <= _MOST_LISTED:
        return listed(f"{show(value)} with {schedule.title}" for schedule, value in values.items())
    least, most = min(values, key=lambda s: values[s]), max(values, key=lambda s: values[s])
    return f"from {show(values[least])} with {least.title} to {show(values[most])} with {most.title}"


def grouped(titles: dict[str, list[str]]) -> str:
    """Return "A and B do this; C does that" of {what is said: whom it is true of}: the same is said once."""
    return sentence("; ".join(f"{listed(who)} {words}" for words, who in titles.items()))
