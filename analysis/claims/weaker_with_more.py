"""The slides' thesis: the more workers, the weaker the model after the same episodes."""

from analysis.claims.claim import Claim
from analysis.claims.verdicts import Finding, better, lacking
from analysis.data.capacity import limit_of
from analysis.data.study import Study


def judge(study: Study) -> list[Finding]:
    """Compare the fewest fixed workers with the most, and with the most of those that the master bears."""
    fixed = study.schedules(dynamic=False)
    if len(fixed) < 2:
        return [lacking("runs with at least two fixed numbers of workers")]
    limit = limit_of(study)
    findings = [better(study, fixed[0], fixed[-1])]
    if limit is None:
        return findings
    borne = [schedule for schedule in fixed if schedule.end < limit.workers]
    if len(borne) < 2:
        return [*findings, lacking("runs with at least two fixed numbers of workers that the master bears")]
    below = better(study, borne[0], borne[-1])
    return [*findings, below._replace(text=f"Below {limit.short}: {below.text}")] if borne != fixed else findings


CLAIM = Claim(
    "The more workers, the weaker the model after the same number of episodes.",
    "slides, problems of A3C",
    judge,
    quote="越多Worker, Model Converge很不穩定,訓練相同的episode下model反而比較弱(Bad Learning Efficiency)",
)
