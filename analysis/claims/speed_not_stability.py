"""What more workers give, by the slides."""

from analysis.claims.claim import Claim
from analysis.claims.verdicts import Finding, better, lacking, times_as
from analysis.data.study import Study


def judge(study: Study) -> list[Finding]:
    """Compare the most fixed workers with the fewest."""
    fixed = study.schedules(dynamic=False)
    if len(fixed) < 2:
        return [lacking("runs with at least two fixed numbers of workers")]
    few, many = fixed[0], fixed[-1]
    text = "{ours} play {ratio} times as many steps per second as {theirs}."
    return [times_as(study, many, few, "steps_per_s", 1.0, text), better(study, few, many)]


CLAIM = Claim(
    "More workers give speed, not stability.",
    "slides, conclusion",
    judge,
    of_speed=True,
    quote="worker的數量變多,可大幅提升速度,但不容易穩定",
)
