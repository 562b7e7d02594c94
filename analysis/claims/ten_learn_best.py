"""The number of workers that learns best, by the slides."""

from analysis.claims.claim import Claim
from analysis.claims.verdicts import Finding, better, collapses, lacking
from analysis.data.study import Study


def judge(study: Study) -> list[Finding]:
    """Compare 10 workers with 4 and with 20, and see whether 40 collapse."""
    ten = study.fixed(10)
    if ten is None:
        return [lacking("runs with 10 fixed workers")]
    findings = []
    for workers in (4, 20):
        other = study.fixed(workers)
        findings.append(better(study, ten, other) if other else lacking(f"runs with {workers} fixed workers"))
    forty = study.fixed(40)
    return [*findings, collapses(study, forty) if forty else lacking("runs with 40 fixed workers")]


CLAIM = Claim("10 workers learn best; 4 and 20 are worse; 40 collapses.", "slides, experiment 1", judge)
