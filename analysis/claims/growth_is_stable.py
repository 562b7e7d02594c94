"""What growing in steps gains over as many workers from the start, by the slides.

A growing schedule needs two controls: its number at the start, which it should outpace, and its number at the end,
which it should outlearn.
"""

from analysis.claims.claim import Claim
from analysis.claims.verdicts import Finding, better, falls_short, lacking, times_as
from analysis.data.outcomes import by_rule
from analysis.data.study import Schedule, Study


def judge(study: Study) -> list[Finding]:
    """Compare the growing schedules of the slides that come to their end with fixed ones at their start and end."""
    dynamic = by_rule(study, "slides")
    if not dynamic:
        return [lacking("runs of a dynamic schedule")]
    found = [finding for schedule in dynamic for finding in _of(study, schedule)]
    return [finding for finding in found if finding.verdict != "not tested here"] or found


def _of(study: Study, schedule: Schedule) -> list[Finding]:
    start, end, short = study.fixed(schedule.start), study.fixed(schedule.end), falls_short(study, schedule)
    if short:
        return [short]
    if start is None or end is None:
        missing = schedule.start if start is None else schedule.end
        return [lacking(f"runs with {missing} fixed workers, to compare {schedule.title} with")]
    text = "{ours} plays {ratio} times as many steps per second as {theirs}."
    return [times_as(study, schedule, start, "steps_per_s", 1.0, text), better(study, schedule, end)]


CLAIM = Claim(
    "Growing in steps avoids instability and still gains speed.",
    "slides, conclusion",
    judge,
    of_speed=True,
    quote="用動態增加的方法來避免不穩定且達到加速的效果",
)
