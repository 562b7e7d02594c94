"""What growing from 10 to 32 workers gains, by the slides."""

from functools import partial

from analysis.claims.claim import Claim
from analysis.claims.verdicts import (
    RELEVANT,
    Finding,
    collapses,
    contrary,
    falls_short,
    in_steps,
    lacking,
    over_bound,
    times_as,
)
from analysis.data.outcomes import by_rule, control_of
from analysis.data.study import Schedule, Study
from analysis.words import percent


def judge_growth(study: Study, start: int, end: int) -> list[Finding]:
    """Compare a schedule of the slides with its start in speed, and see whether it collapses or forgets."""
    dynamic = by_rule(study, "slides", start, end)
    if not dynamic:
        return [lacking(f"runs of {start}→{end}")]
    return [finding for schedule in dynamic for finding in _of(study, schedule)]


def _of(study: Study, schedule: Schedule) -> list[Finding]:
    control, short = control_of(study, schedule), falls_short(study, schedule)
    if control is None:
        return [lacking(f"runs of a fixed schedule to compare with, best of {schedule.start} workers")]
    if short:
        return [short]
    text = "{theirs} plays as many episodes {ratio} times as fast as {ours}"
    text += f" ({in_steps(study, schedule, control)})."
    faster = times_as(study, control, schedule, "clock_s", 1.0, text)
    return [faster, contrary(collapses(study, schedule)), _stays(study, schedule)]


def _stays(study: Study, schedule: Schedule) -> Finding:
    """Judge whether a schedule's runs keep what they learned: the last tenth against the best tenth."""
    text = "At its end {ours} has {value} of the score of its best tenth."
    if study.values(schedule, "held_share").isna().all():
        return Finding(f"No run of {schedule.title} learned anything to keep.", "refuted")
    return over_bound(study, schedule, "held_share", 1.0 - RELEVANT, text, percent)


CLAIM = Claim(
    "10→32 is faster than fixed workers and stable.",
    "slides, 10→32",
    partial(judge_growth, start=10, end=32),
    of_speed=True,
    quote="dynamic add workers to 32 vs. fixed workers",
)
