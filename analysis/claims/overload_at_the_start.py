"""Why many workers are too many, by the report."""

from analysis.claims.claim import Claim
from analysis.claims.verdicts import Finding, contrary, judged, lacking, over_bound
from analysis.data import outcomes, statistics
from analysis.data.study import Schedule, Study
from analysis.words import with_interval


def judge(study: Study) -> list[Finding]:
    """See what more than 20 workers send at the start, and what becomes of the load of 10 that learn."""
    fixed = study.schedules(dynamic=False)
    many = [schedule for schedule in fixed if schedule.end > 20]
    text = "At the start {ours} send {value} times what the master can apply."
    findings = [over_bound(study, schedule, "load_start", 1.0, text) for schedule in many]
    findings = findings or [lacking("runs with more than 20 fixed workers")]
    control = study.fixed(10) or (fixed[0] if fixed else None)
    if control is None or not outcomes.learned(study, control).any():
        return [*findings, lacking("runs of 10 fixed workers that learn")]
    return [*findings, _relief(study, control)]


def _relief(study: Study, schedule: Schedule) -> Finding:
    """Judge whether the load falls from the start to the end of a schedule's runs: of those that learned."""
    hits = outcomes.learned(study, schedule)
    end, start = (study.values(schedule, f"load_{when}")[hits].to_numpy(float) for when in ("end", "start"))
    ratio = statistics.paired_ratio(end, start)
    those = f"in the {hits.sum()} of {len(hits)} runs that learned"
    text = f"With {schedule.title}, {those}, the load at the end is {with_interval(ratio)} times that at the start."
    return contrary(judged(text, ratio, 1.0))


CLAIM = Claim(
    "Above 20 workers the master cannot keep up at the start; longer episodes relieve it.",
    "report, 3.2",
    judge,
    of_speed=True,
    quote="the master cannot handle so many gradients. Once the worker > 20, it would collapse. However, when the "
    "episode gets longer, the master updates less time.",
)
