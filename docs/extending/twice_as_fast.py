"""A claim of one's own: that twice the workers play twice as fast."""

from analysis.claims.claim import Claim
from analysis.claims.verdicts import Finding, lacking, times_as
from analysis.data.study import Study

NEARLY_TWICE = 1.8  # times as fast


def judge(study: Study) -> list[Finding]:
    """Compare 20 workers with 10, run by run with the same seed."""
    ten, twenty = study.fixed(10), study.fixed(20)
    if ten is None or twenty is None:
        return [lacking("runs with 10 and with 20 fixed workers")]
    text = "{ours} play {ratio} times as many steps per second as {theirs}."
    return [times_as(study, twenty, ten, "steps_per_s", NEARLY_TWICE, text)]


CLAIM = Claim("Twice the workers play twice as fast.", "a guess", judge)
