"""What dynamic workers gain, by the report."""

from analysis.claims.claim import Claim
from analysis.claims.verdicts import Finding, as_good, in_steps, lacking, times_as
from analysis.data.outcomes import by_rule, split_by_learning
from analysis.data.study import Study

ABOUT_SEVEN = 5.0  # times as fast: what still passes for "about 7"


def judge(study: Study) -> list[Finding]:
    """Compare the report's 6→12 with whichever fixed schedule that learns makes it look best."""
    dynamic = by_rule(study, "report", 6, 12) or by_rule(study, "report")
    rivals, _ = split_by_learning(study, study.schedules(dynamic=False))
    if not dynamic or not rivals:
        return [lacking("runs of 6→12" if not dynamic else "runs of a fixed schedule that learns, to compare with")]
    slowest = max(rivals, key=lambda fixed: study.estimate(fixed, "clock_s").value)
    best = max(rivals, key=lambda fixed: study.estimate(fixed, "final_score").value)
    findings = []
    for schedule in dynamic:
        text = "{theirs} plays as many episodes {ratio} times as fast as {ours}, the slowest that learn"
        text += f" ({in_steps(study, schedule, slowest)})."
        findings.append(times_as(study, slowest, schedule, "clock_s", ABOUT_SEVEN, text))
        findings.append(as_good(study, schedule, best))
    return findings


CLAIM = Claim("Dynamic workers are about 7 times faster over 100,000 episodes, and as good.", "report, 3.4", judge)
