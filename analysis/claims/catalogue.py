"""The catalogue: which claims there are, under which number, and what a study's runs say of them."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from analysis.claims.claim import Claim, Judgement
from analysis.claims.finding import NO_RUNS, Finding, corrected, together, untested
from analysis.claims.verdicts import CROWDED
from analysis.data import outcomes
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
    "analysis.claims.weaker_with_more:CLAIM",
    "analysis.claims.slow_with_few:CLAIM",
    "analysis.claims.gradients_are_close:CLAIM",
    "analysis.claims.ppo_would_be_better:CLAIM",
    "analysis.claims.ten_to_twenty:CLAIM",
    "analysis.claims.growth_is_stable:CLAIM",
    "analysis.claims.ga3c_is_faster:CLAIM",
    "analysis.claims.one_step_is_superlinear:CLAIM",
)
_CROWDED = "Its runs had more processes than cores: their times say nothing of so many workers."


def load(references: Sequence[str] = CLAIMS) -> tuple[Claim, ...]:
    """Return the claims that "module:NAME" refer to; raise StudyError for what is no claim."""
    found = tuple(map(resolve, references))
    for reference, claim in zip(references, found, strict=True):
        if not isinstance(claim, Claim):
            raise StudyError(f"{reference} is no claim: it must be a Claim")
    return found


def judge_all(study: Study, variant: str | None = None, more: Sequence[Claim] = ()) -> list[Judgement]:
    """Return the verdict on every claim that is asked of the study, from one variant's runs: the main one's, if None.

    `more` are claims that are not the package's; they are numbered after its own. Everything that is asked of the same
    runs is corrected together.
    """
    return list(_judged(study, variant, tuple(more)))


@lru_cache(maxsize=64)  # page, README and tables ask for the same verdicts
def _judged(study: Study, variant: str | None, more: tuple[Claim, ...]) -> list[Judgement]:
    part = study.main if variant is None else study.of_variant(variant)
    numbered = [(number, claim) for number, claim in enumerate((*load(), *more), start=1) if _concerns(claim, study)]
    found = [_findings(claim, study if claim.over_settings else part) for _, claim in numbered]
    open_or_not = iter(corrected(list(itertools.chain(*found))))
    judgements = []
    for (number, claim), findings in zip(numbered, found, strict=True):
        parts = list(itertools.islice(open_or_not, len(findings)))
        verdict = together([finding.verdict for finding in parts], claim.rule)
        judgements.append(Judgement(number, claim, verdict, parts))
    return judgements


def _concerns(claim: Claim, study: Study) -> bool:
    """Return whether a claim is about the study's game: what the report and the slides say is about Flappy Bird."""
    speaks_of_it = study.plays_flappy_bird or not claim.source.startswith(("report", "slides"))
    return speaks_of_it and claim.applies(study)


@lru_cache(maxsize=256)  # a claim over all settings is asked of the same runs for each of them
def _findings(claim: Claim, study: Study) -> list[Finding]:
    """Return what the runs that can tell say of a claim: of speed, those with a core for each process."""
    if len(study.done) and outcomes.too_short(study):
        text = f"Too short to tell: none of {len(study.done)} runs reached what counts as learned."
        return [untested(text, "longer runs")]
    if not claim.of_speed or "oversubscribed" not in study.runs:
        return claim.judge(study)
    crowded = study.runs["oversubscribed"] == True  # noqa: E712  None is not False
    if not crowded.any():
        return claim.judge(study)
    findings = claim.judge(replace(study, runs=study.runs[~crowded]))
    why = untested(_CROWDED, CROWDED)
    told = [why if finding.text == NO_RUNS else finding for finding in findings]
    return list(dict.fromkeys(told))
