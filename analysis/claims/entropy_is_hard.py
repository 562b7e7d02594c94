"""Whether entropy regularisation is hard to tune, by the report.

Which coefficients were tried must not matter. So it is hard if none helps over a range that is covered: from one that
is as good as none to one that does harm, in steps of at most ten times. One that helps refutes it, wherever it lies.
"""

import itertools

import pandas as pd

from analysis.claims.claim import Claim
from analysis.claims.verdicts import RELEVANT, Finding, contrary, judged, lacking, untested
from analysis.data import statistics
from analysis.data.inference import alike
from analysis.data.study import Study
from analysis.words import apart

_STEP = 10.0  # times: coefficients further apart leave a gap
_ROUNDING = 1.001


def judge(study: Study) -> list[Finding]:
    """Compare each entropy coefficient with none, paired by seed, and see whether the range is covered."""
    coefficients = sorted(study.done["entropy_coefficient"].dropna().unique())
    if len(coefficients) < 3 or 0.0 not in coefficients:
        return [lacking("runs over learner.entropy_coefficient: 0 and at least two others, with the same seeds")]
    schedule = study.fixed(10) or study.schedules()[0]
    runs = study.done[study.done["schedule"] == schedule.label]
    by_seed = runs.pivot_table(index="seed", columns="entropy_coefficient", values="final_score")
    against = {float(c): _against_none(by_seed, c) for c in coefficients if c > 0 and c in by_seed}
    unit = study.score.unit
    findings = [_helps_not(c, difference, margin, unit) for c, (difference, margin) in against.items()]
    return [*findings, *_gap(against)]


def _against_none(by_seed: pd.DataFrame, coefficient: float) -> tuple[statistics.Estimate, float]:
    """Return how much better a coefficient is than none, paired by seed, and from where on that is relevant."""
    pair = by_seed[[coefficient, 0.0]].dropna()
    ours, none = pair[coefficient].to_numpy(float), pair[0.0].to_numpy(float)
    margin = RELEVANT * abs(float(statistics.iqm(none))) if len(pair) else 0.0
    return statistics.paired_difference(ours, none), margin


def _helps_not(coefficient: float, difference: statistics.Estimate, margin: float, unit: str) -> Finding:
    """Judge whether a coefficient is no better than none, by a relevant amount."""
    text = f"{coefficient:g} ends {apart(difference, unit)} than no entropy term."
    return contrary(judged(text, difference, 0.0, margin))


def _gap(against: dict[float, tuple[statistics.Estimate, float]]) -> list[Finding]:
    """Return why the coefficients do not cover the range, or may not, if so."""
    order = sorted(against)
    least, most = against[order[0]], against[order[-1]]
    in_small_steps = max(b / a for a, b in itertools.pairwise(order)) <= _STEP * _ROUNDING
    if in_small_steps and alike(*least) and most[0].high < 0:
        return []
    if in_small_steps and least[0].high >= 0:
        text = f"Whether {order[0]:g} is as good as none and {order[-1]:g} does harm is open."
        return [Finding(text, "undecided", needed="more seeds")]
    text = "The coefficients tried do not reach from one that is as good as none to one that does harm in small steps."
    return [untested(text, f"coefficients in steps of at most {_STEP:g} times, from harmless to harmful")]


CLAIM = Claim(
    "Entropy regularisation is hard to tune here.",
    "report, 3.5",
    judge,
    over_settings=True,
    quote="it is hard to tune well. We've tried it, but it is hard to converge.",
)
