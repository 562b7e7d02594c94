"""The number of workers that learns best, by the slides."""

from analysis.claims.claim import Claim
from analysis.claims.verdicts import Finding, better, collapses, lacking
from analysis.data.inference import chance_of_order
from analysis.data.study import Study
from analysis.words import percent

_OTHERS = (4, 20)


def judge(study: Study) -> list[Finding]:
    """Compare 10 workers with 4 and with 20, and see whether 40 collapse."""
    ten = study.fixed(10)
    if ten is None:
        return [lacking("runs with 10 fixed workers")]
    findings = []
    for workers in _OTHERS:
        other = study.fixed(workers)
        findings.append(better(study, ten, other) if other else lacking(f"runs with {workers} fixed workers"))
    forty = study.fixed(40)
    last = collapses(study, forty) if forty else lacking("runs with 40 fixed workers")
    return [*findings, last._replace(text=f"{last.text}{_luck(study)}")]


def _luck(study: Study) -> str:
    """Say how often one run of each, which is what the slides show, would have looked as they do."""
    schedules = [study.fixed(workers) for workers in (10, *_OTHERS, 40)]
    ends = [study.values(schedule, "final_score").to_numpy(float) for schedule in schedules if schedule]
    if len(ends) < len(schedules):
        return ""
    chance = chance_of_order(ends[0], ends[1:-1], ends[-1], study.score.learned_above)
    return f" One run of each, as the slides show, has this order with a probability of {percent(chance)}."


CLAIM = Claim(
    "10 workers learn best; 4 and 20 are worse; 40 collapses.",
    "slides, experiment 1",
    judge,
    quote="10 Worker最好, 4, 20個Worker的學習效果變差, 40 Worker則是爛掉",
)
