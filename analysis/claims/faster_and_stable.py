"""What growing from 10 to 32 workers gains, by the slides."""

from analysis.claims.claim import Claim
from analysis.claims.verdicts import RELEVANT, Finding, collapses, contrary, in_steps, lacking, over_bound, times_as
from analysis.data.outcomes import by_rule, control_of
from analysis.data.study import Schedule, Study
from analysis.words import percent


def judge(study: Study) -> list[Finding]:
    """Compare the slides' 10→32 with its control in speed, and see whether it collapses or forgets."""
    dynamic = by_rule(study, "slides", 10, 32)
    if not dynamic:
        return [lacking("runs of 10→32")]
    findings = []
    for schedule in dynamic:
        control = control_of(study, schedule)
        if control is None:
            return [lacking("runs of a fixed schedule to compare with, best of 10 workers")]
        text = "{theirs} plays as many episodes {ratio} times as fast as {ours}"
        text += f" ({in_steps(study, schedule, control)})."
        findings.append(times_as(study, control, schedule, "clock_s", 1.0, text))
        findings += [contrary(collapses(study, schedule)), _stays(study, schedule)]
    return findings


def _stays(study: Study, schedule: Schedule) -> Finding:
    """Judge whether a schedule's runs keep what they learned: the last tenth against the best tenth."""
    text = "At its end {ours} has {value} of the score of its best tenth."
    if study.values(schedule, "held_share").isna().all():
        return Finding(f"No run of {schedule.title} learned anything to keep.", "refuted")
    return over_bound(study, schedule, "held_share", 1.0 - RELEVANT, text, percent)


CLAIM = Claim("10→32 is faster than fixed workers and stable.", "slides, 10→32", judge)
