"""What dynamic workers gain, by the report.

It does not say which schedule that was, nor what "the original one" is. So every schedule by its rule is compared with
two baselines that are chosen before there are any runs: its own number at the start, and the fewest fixed workers.
"""

from analysis.claims.claim import Claim
from analysis.claims.verdicts import Finding, falls_short, in_steps, lacking, times_as
from analysis.data.outcomes import by_rule, control_of
from analysis.data.study import Schedule, Study

SEVEN = 6.5  # times as fast: what rounds to 7


def judge(study: Study) -> list[Finding]:
    """Compare each schedule by the report's rule with both baselines."""
    dynamic = by_rule(study, "report")
    fixed = study.schedules(dynamic=False)
    if not dynamic or not fixed:
        return [lacking("runs of a dynamic schedule" if not dynamic else "runs of a fixed schedule, to compare with")]
    findings = []
    for schedule in dynamic:
        short = falls_short(study, schedule)
        compared = [_against(study, schedule, baseline) for baseline in _baselines(study, schedule)]
        findings += [short] if short else compared
    return findings


def _baselines(study: Study, schedule: Schedule) -> list[Schedule]:
    """Return what may have been the original one."""
    candidates = [control_of(study, schedule), study.schedules(dynamic=False)[0]]
    return list(dict.fromkeys(baseline for baseline in candidates if baseline))


def _against(study: Study, schedule: Schedule, baseline: Schedule) -> Finding:
    text = "{theirs} plays as many episodes {ratio} times as fast as {ours}"
    text += f" ({in_steps(study, schedule, baseline)})."
    return times_as(study, baseline, schedule, "clock_s", SEVEN, text)


CLAIM = Claim(
    "Dynamic workers are 7 times faster than the original over 100,000 episodes (which, the report does not say).",
    "report, 3.4",
    judge,
    rule="any",
    of_speed=True,
    quote="It seems 7 times faster than the original one in the 100000 episodes.",
)
