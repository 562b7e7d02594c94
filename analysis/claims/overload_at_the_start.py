"""Why many workers are too many, by the report."""

from analysis.claims.claim import Claim
from analysis.claims.verdicts import Finding, Verdict, lacking, over_bound
from analysis.data import statistics
from analysis.data.outcomes import split_by_learning
from analysis.data.study import Schedule, Study
from analysis.words import with_interval


def judge(study: Study) -> list[Finding]:
    """See what more than 20 workers send at the start, and what becomes of the load of those that learn."""
    fixed = study.schedules(dynamic=False)
    many = [schedule for schedule in fixed if schedule.end > 20]
    text = "At the start {ours} send {value} times what the master can apply."
    findings = [over_bound(study, schedule, "load_start", 1.0, text) for schedule in many]
    findings = findings or [lacking("runs with more than 20 fixed workers")]
    learned, _ = split_by_learning(study, fixed)
    return [*findings, _relief(study, learned[-1]) if learned else lacking("runs of a fixed schedule that learns")]


def _relief(study: Study, schedule: Schedule) -> Finding:
    """Judge whether a schedule's load falls from the start to the end of its runs."""
    end, start = study.paired(schedule, schedule, "load_end")[0], study.paired(schedule, schedule, "load_start")[0]
    ratio = statistics.paired_ratio(end, start)
    text = f"With {schedule.title}, which learn, the load at the end is {with_interval(ratio)} times that at the start."
    verdict: Verdict = "supported" if ratio.high < 1 else "refuted" if ratio.low > 1 else "undecided"
    return Finding(text, verdict, ratio, "more than one seed" if verdict == "undecided" else "")


CLAIM = Claim(
    "Above 20 workers the master cannot keep up at the start; longer episodes relieve it.", "report, 3.2", judge
)
