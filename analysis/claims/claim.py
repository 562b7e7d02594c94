"""What a claim is, and what became of it."""

from collections.abc import Callable
from typing import NamedTuple

from analysis.claims.finding import NO_RUNS, Finding, Rule, Verdict
from analysis.data.study import Study


def of_every_study(study: Study) -> bool:
    """Ask the claim of every study, if only to say what it lacks."""
    return True


class Claim(NamedTuple):
    """What somebody said, where, and how to judge it. A file of this folder ends in one: CLAIM."""

    text: str
    source: str
    judge: Callable[[Study], list[Finding]]  # one finding for each part of the claim
    over_settings: bool = False  # needs runs with several settings, not those of one
    rule: Rule = "all"  # by which its parts make the whole
    of_speed: bool = False  # runs with more processes than cores say nothing of it
    quote: str = ""  # the source's own words
    applies: Callable[[Study], bool] = of_every_study  # of a part that most studies do not have: only of those that do


class Judgement(NamedTuple):
    """A claim with its verdict and what it rests on."""

    number: int  # of the claim, in the catalogue's order
    claim: Claim
    verdict: Verdict
    findings: list[Finding]

    @property
    def is_judged(self) -> bool:
        """Whether the study can tell: what it can't has no place among its verdicts."""
        return self.verdict != "not tested here"

    @property
    def rests_on_data(self) -> bool:
        """Whether the study has runs that tell something, if only why they don't tell enough."""
        return any(finding.estimate or finding.text != NO_RUNS for finding in self.findings)

    @property
    def needed(self) -> list[str]:
        """What would decide the claim, if it is open or was not tested."""
        if self.verdict not in ("undecided", "not tested here"):
            return []
        unsettled = [finding for finding in self.findings if finding.verdict == self.verdict]
        most = max(unsettled, key=lambda finding: finding.seeds)  # as many seeds decide the other parts too
        return list(dict.fromkeys(f.needed for f in unsettled if f.needed and (not f.seeds or f is most)))
