"""Verdicts from intervals: supported, refuted or undecided, and how many runs would decide.

A difference counts from a tenth of what it is compared with (RELEVANT) on. "Better" is supported when the interval lies
above 0, and refuted when it excludes every relevant gain; "as good" is supported when it excludes every relevant loss.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from analysis.data import statistics
from analysis.data.statistics import FEWEST_TO_RESAMPLE, Estimate
from analysis.data.study import Schedule, Study
from analysis.words import apart, number, percent, with_interval

Verdict = Literal["supported", "refuted", "undecided"]
RELEVANT = 0.1
_MOST_RUNS = 200  # more than this nobody will run


class Finding(NamedTuple):
    """One part of a claim, judged."""

    text: str  # what was measured, with its numbers
    verdict: Verdict
    estimate: Estimate | None = None
    needed: str = ""  # what would decide it
    seeds: int = 0  # that would decide it, if more of them would


def lacking(what: str) -> Finding:
    """Return the finding of a study that did not run what a claim needs."""
    return Finding("This study has no runs that tell.", "undecided", needed=what)


def above(estimate: Estimate, bound: float, margin: float = 0.0) -> Verdict:
    """Supported if the interval lies above `bound`, refuted if it lies below bound + margin; a lone run is neither."""
    if estimate.low > bound:
        return "supported"
    return "refuted" if estimate.high < bound + margin else "undecided"


def together(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict on a claim of several parts: all must hold."""
    if "refuted" in verdicts:
        return "refuted"
    return "supported" if verdicts and set(verdicts) == {"supported"} else "undecided"


def better(study: Study, ours: Schedule, theirs: Schedule) -> Finding:
    """Judge whether `ours` ends with a better score than `theirs`, paired by seed."""
    pair = study.paired(ours, theirs, "final_score")
    if not len(pair[0]):
        return _no_shared_seed(ours, theirs)
    difference = statistics.paired_difference(*pair)
    margin = RELEVANT * abs(float(statistics.iqm(pair[0])))
    text = f"{ours.title} {_end(ours)} {apart(difference, study.score.unit)} than {theirs.title}."
    return _finding(text, above(difference, 0.0, margin), difference, 0.0, margin)


def as_good(study: Study, ours: Schedule, theirs: Schedule) -> Finding:
    """Judge whether `ours` does not end with a score that is worse than `theirs` by a relevant amount."""
    pair = study.paired(ours, theirs, "final_score")
    if not len(pair[0]):
        return _no_shared_seed(ours, theirs)
    difference = statistics.paired_difference(*pair)
    margin = RELEVANT * abs(float(statistics.iqm(pair[1])))
    text = f"{ours.title} {_end(ours)} {apart(difference, study.score.unit)} than {theirs.title}."
    return _finding(text, above(difference, -margin, margin), difference, -margin, margin)


def times_as(study: Study, ours: Schedule, theirs: Schedule, column: str, bound: float, text: str) -> Finding:
    """Judge whether `column` of ours is over `bound` times that of theirs; `text` has places for the ratio and both."""
    pair = study.paired(ours, theirs, column)
    if not len(pair[0]):
        return _no_shared_seed(ours, theirs)
    ratio = statistics.paired_ratio(*pair)
    shown = text.format(ratio=with_interval(ratio), ours=ours.title, theirs=theirs.title)
    return _finding(shown, above(ratio, bound), ratio, bound)


def in_steps(study: Study, ours: Schedule, theirs: Schedule) -> str:
    """Return the speed-up in steps: episodes are shorter where less is learned, steps are not."""
    ratio = statistics.paired_ratio(*study.paired(ours, theirs, "steps_per_s"))
    return f"in steps per second {with_interval(ratio)} times"


def collapses(study: Study, schedule: Schedule) -> Finding:
    """Judge whether most runs of a schedule collapse."""
    values = study.values(schedule, "collapsed").astype(bool)
    share = statistics.share(int(values.sum()), len(values))
    text = (
        f"{int(values.sum())} of {len(values)} runs with {schedule.title} collapsed ({with_interval(share, percent)})."
    )
    return _finding(text, above(share, 0.5), share, 0.5)


def over_bound(
    study: Study, schedule: Schedule, column: str, bound: float, text: str, show: Callable[[float], str] = number
) -> Finding:
    """Judge whether `column` of a schedule's runs lies above `bound`; `text` has a place for the value."""
    estimate = study.estimate(schedule, column)
    if not estimate.runs:
        return lacking(f"runs of {schedule.title} that record it")
    shown = text.format(value=with_interval(estimate, show), ours=schedule.title)
    return _finding(shown, above(estimate, bound), estimate, bound)


def contrary(finding: Finding) -> Finding:
    """Return the finding of the one who claims the contrary."""
    flipped: dict[Verdict, Verdict] = {"supported": "refuted", "refuted": "supported", "undecided": "undecided"}
    return finding._replace(verdict=flipped[finding.verdict])


def runs_needed(estimate: Estimate, bound: float, margin: float = 0.0) -> int:
    """Return how many runs would decide what `above` could not, if the estimate stays where it is."""
    if not math.isfinite(estimate.low):
        return FEWEST_TO_RESAMPLE
    half = (estimate.high - estimate.low) / 2
    room = max(estimate.value - bound, bound + margin - estimate.value)  # how wide half an interval may be
    runs = math.inf if room <= 0 else math.ceil(estimate.runs * (half / room) ** 2)
    return max(int(min(runs, _MOST_RUNS)), estimate.runs + 1)


def seeds_in_words(seeds: int, runs: int) -> str:
    """Return how many seeds would decide, for people."""
    if seeds >= _MOST_RUNS:
        return f"more seeds than are practical (over {_MOST_RUNS}): it lies almost on the boundary"
    return f"about {seeds} seeds instead of {runs}"


def _finding(text: str, verdict: Verdict, estimate: Estimate, bound: float, margin: float = 0.0) -> Finding:
    text = text[:1].upper() + text[1:]
    if verdict != "undecided":
        return Finding(text, verdict, estimate)
    seeds = runs_needed(estimate, bound, margin)
    return Finding(text, verdict, estimate, seeds_in_words(seeds, estimate.runs), seeds)


def _no_shared_seed(ours: Schedule, theirs: Schedule) -> Finding:
    text = f"{ours.title} and {theirs.title} share no seed."
    return Finding(text, "undecided", needed=f"runs of {ours.title} and {theirs.title} with the same seeds")


def _end(schedule: Schedule) -> str:
    return "ends" if schedule.dynamic or schedule.end == 1 else "end"
