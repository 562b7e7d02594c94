"""What a claim is, and what became of it."""

from collections.abc import Callable
from typing import NamedTuple

from analysis.claims.verdicts import Finding, Verdict
from analysis.data.study import Study


class Claim(NamedTuple):
    """What somebody said, where, and how to judge it. A file of this folder ends in one: CLAIM."""

    text: str
    source: str
    judge: Callable[[Study], list[Finding]]  # one finding for each part of the claim; all must hold
    over_settings: bool = False  # needs runs with several settings, not those of one


class Judgement(NamedTuple):
    """A claim with its verdict and what it rests on."""

    number: int  # of the claim, in the catalogue's order
    claim: Claim
    verdict: Verdict
    findings: list[Finding]

    @property
    def rests_on_data(self) -> bool:
        """Whether the study has runs that tell."""
        return any(finding.estimate for finding in self.findings)

    @property
    def needed(self) -> list[str]:
        """What would decide the claim, if it is open."""
        if self.verdict != "undecided":
            return []
        undecided = [finding for finding in self.findings if finding.verdict == "undecided"]
        most = max(undecided, key=lambda finding: finding.seeds)  # as many seeds decide the other parts too
        return list(dict.fromkeys(f.needed for f in undecided if f.needed and (not f.seeds or f is most)))
