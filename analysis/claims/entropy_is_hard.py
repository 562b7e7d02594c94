"""Whether entropy regularisation is hard to tune, by the report."""

import pandas as pd

from analysis.claims.claim import Claim
from analysis.claims.verdicts import RELEVANT, Finding, Verdict, above, lacking
from analysis.data import statistics
from analysis.data.study import Study
from analysis.words import listed, with_interval


def judge(study: Study) -> list[Finding]:
    """Compare each entropy coefficient with none: it is hard to tune if most do harm."""
    coefficients = sorted(study.done["entropy_coefficient"].dropna().unique())
    if len(coefficients) < 3 or 0.0 not in coefficients:
        return [lacking("runs over learner.entropy_coefficient: 0 and at least two others, with the same seeds")]
    schedule = study.fixed(10) or study.schedules()[0]
    runs = study.done[study.done["schedule"] == schedule.label]
    by_seed = runs.pivot_table(index="seed", columns="entropy_coefficient", values="final_score")
    differences = {c: _against_none(by_seed, c) for c in coefficients if c > 0}
    verdict = _verdict([above(difference, -margin, margin) for difference, margin in differences.values()])
    words = listed(f"{c:g} gives {with_interval(difference)}" for c, (difference, _) in differences.items())
    text = f"With {schedule.title}, against no entropy term: {words} {study.score.unit}."
    worst = min((difference for difference, _ in differences.values()), key=lambda difference: difference.value)
    return [Finding(text, verdict, worst, "more seeds, or more coefficients" if verdict == "undecided" else "")]


def _against_none(by_seed: pd.DataFrame, coefficient: float) -> tuple[statistics.Estimate, float]:
    """Return how much better a coefficient is than none, paired by seed, and from where on that is relevant."""
    pair = by_seed[[coefficient, 0.0]].dropna()
    ours, none = pair[coefficient].to_numpy(float), pair[0.0].to_numpy(float)
    margin = RELEVANT * abs(float(statistics.iqm(none))) if len(pair) else 0.0
    return statistics.paired_difference(ours, none), margin


def _verdict(as_good: list[Verdict]) -> Verdict:
    """Return whether most coefficients are worse than none (it is hard), or as good (it is not)."""
    if 2 * as_good.count("refuted") > len(as_good):
        return "supported"
    return "refuted" if 2 * as_good.count("supported") > len(as_good) else "undecided"


CLAIM = Claim("Entropy regularisation is hard to tune here.", "report, 3.5", judge, over_settings=True)
