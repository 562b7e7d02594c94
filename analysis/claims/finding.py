"""The words of a verdict, what one part of a claim came to, and by which rule parts make a whole.

supported, refuted: the 95 % interval excludes the contrary, and does so after Holm's correction for all that the study
was asked. undecided: it does not; more runs could. not tested here: the study's runs or its machine can't tell, however
many there are.
"""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from analysis.data.inference import chance, holm
from analysis.data.statistics import FEWEST, Estimate
from analysis.words import capital, count

Verdict = Literal["supported", "refuted", "undecided", "not tested here"]
VERDICTS: tuple[Verdict, ...] = ("supported", "refuted", "undecided", "not tested here")
Rule = Literal["all", "any"]
RULES: dict[Rule, str] = {
    "all": "every part must hold; one that does not refutes it",
    "any": "one reading that holds is enough; it is refuted if none does",
}
RELEVANT = 0.1  # a difference counts from a tenth of what it is compared with on
NO_RUNS = "This study has no runs that tell."
_MOST_RUNS = 200  # more than this nobody will run


class Finding(NamedTuple):
    """One part of a claim, judged."""

    text: str  # what was measured, with its numbers
    verdict: Verdict
    estimate: Estimate | None = None
    needed: str = ""  # what would decide it
    seeds: int = 0  # that would decide it, if more of them would
    chance: float = math.nan  # one-sided p-value of the verdict; NaN where nothing was tested


def lacking(what: str) -> Finding:
    """Return the finding of a study that did not run what a claim needs."""
    return Finding(NO_RUNS, "not tested here", needed=what)


def untested(text: str, needed: str, estimate: Estimate | None = None) -> Finding:
    """Return the finding of a study whose runs say something, but not what a claim needs; `text` says why."""
    return Finding(capital(text), "not tested here", estimate, needed)


def above(estimate: Estimate, bound: float, margin: float = 0.0) -> Verdict:
    """Supported if the interval lies above `bound`, refuted if it lies below bound + margin; a lone run is neither."""
    if estimate.low > bound:
        return "supported"
    return "refuted" if estimate.high < bound + margin else "undecided"


def judged(text: str, estimate: Estimate, bound: float, margin: float = 0.0) -> Finding:
    """Return the finding that `estimate` lies above `bound`; what is below bound + margin is not relevantly above."""
    verdict = above(estimate, bound, margin)
    chances = chance(estimate, bound), chance(estimate, bound + margin)
    least = {"supported": chances[0], "refuted": chances[1]}.get(verdict, min(chances))
    if verdict != "undecided":
        return Finding(capital(text), verdict, estimate, chance=least)
    seeds = runs_needed(estimate, bound, margin)
    return Finding(capital(text), verdict, estimate, seeds_in_words(seeds, estimate.runs), seeds, least)


def contrary(finding: Finding) -> Finding:
    """Return the finding of the one who claims the contrary."""
    flipped: dict[Verdict, Verdict] = {"supported": "refuted", "refuted": "supported"}
    return finding._replace(verdict=flipped.get(finding.verdict, finding.verdict))


def together(verdicts: Sequence[Verdict], rule: Rule = "all") -> Verdict:
    """Return the verdict on a claim of several parts (RULES); what is open outweighs what was not tested."""
    decisive: Verdict = "refuted" if rule == "all" else "supported"
    for verdict in (decisive, "undecided", "not tested here"):
        if verdict in verdicts:
            return verdict
    if not verdicts:
        return "not tested here"
    return "supported" if rule == "all" else "refuted"


def corrected(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings of one study: what does not hold among so many (Holm 1979) is open."""
    tested = [place for place, finding in enumerate(findings) if not math.isnan(finding.chance)]
    holds = dict(zip(tested, holm([findings[place].chance for place in tested]), strict=True))
    return [
        finding if holds.get(place, True) or finding.verdict == "undecided" else _reopened(finding, len(tested))
        for place, finding in enumerate(findings)
    ]


def _reopened(finding: Finding, tests: int) -> Finding:
    text = f"{finding.text} Alone this would be {finding.verdict}, but not as one of {count(tests, 'comparison')}."
    assert finding.estimate is not None
    seeds = 2 * finding.estimate.runs
    return finding._replace(text=text, verdict="undecided", needed=seeds_in_words(seeds, seeds // 2), seeds=seeds)


def runs_needed(estimate: Estimate, bound: float, margin: float = 0.0) -> int:
    """Return how many runs would decide what `above` could not, if the estimate stays where it is."""
    if not math.isfinite(estimate.low):
        return FEWEST
    half = (estimate.high - estimate.low) / 2
    room = max(estimate.value - bound, bound + margin - estimate.value)  # how wide half an interval may be
    runs = math.inf if room <= 0 else math.ceil(estimate.runs * (half / room) ** 2)
    return max(int(min(runs, _MOST_RUNS)), estimate.runs + 1)


def seeds_in_words(seeds: int, runs: int) -> str:
    """Return how many seeds would decide, for people."""
    if seeds >= _MOST_RUNS:
        return f"more seeds than are practical (over {_MOST_RUNS}): it lies almost on the boundary"
    return f"about {seeds} seeds instead of {runs}"
