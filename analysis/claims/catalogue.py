"""The catalogue: which claims there are, under which number, and what a study's runs say of them."""

from collections.abc import Sequence

from analysis.claims.claim import Claim, Judgement
from analysis.claims.verdicts import together
from analysis.data.study import Study, StudyError
from analysis.references import resolve

CLAIMS = (  # their numbers are their places, from 1 on
    "analysis.claims.ten_learn_best:CLAIM",
    "analysis.claims.overload_at_the_start:CLAIM",
    "analysis.claims.seven_times_faster:CLAIM",
    "analysis.claims.faster_and_stable:CLAIM",
    "analysis.claims.playing_costs_most:CLAIM",
    "analysis.claims.entropy_is_hard:CLAIM",
    "analysis.claims.speed_not_stability:CLAIM",
)


def load(references: Sequence[str] = CLAIMS) -> tuple[Claim, ...]:
    """Return the claims that "module:NAME" refer to; raise StudyError for what is no claim."""
    found = tuple(map(resolve, references))
    for reference, claim in zip(references, found, strict=True):
        if not isinstance(claim, Claim):
            raise StudyError(f"{reference} is no claim: it must be a Claim")
    return found


def judge_all(study: Study, variant: str | None = None, more: Sequence[Claim] = ()) -> list[Judgement]:
    """Return the verdict on every claim, from the runs with one variant of the settings: the main one, if None.

    `more` are claims that are not the package's; they are numbered after its own.
    """
    part = study.main if variant is None else study.of_variant(variant)
    judgements = []
    for number, claim in enumerate((*load(), *more), start=1):
        findings = claim.judge(study if claim.over_settings else part)
        verdict = together([finding.verdict for finding in findings])
        judgements.append(Judgement(number, claim, verdict, findings))
    return judgements
