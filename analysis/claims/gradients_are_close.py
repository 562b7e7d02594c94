"""What asynchrony does to gradients, by the report."""

import pandas as pd

from analysis.claims.claim import Claim
from analysis.claims.verdicts import RELEVANT, Finding, judged, lacking, over_bound
from analysis.data import statistics
from analysis.data.study import Study
from analysis.words import apart


def judge(study: Study) -> list[Finding]:
    """See whether gradients are stale, and whether the least delay that was put in changes what is learned."""
    fixed = study.main.schedules(dynamic=False)
    close = _close(study)
    if close.estimate is None and len(study.done_variants) > 1:  # a study of something else
        return [close]
    schedule = study.main.fixed(10) or (fixed[0] if fixed else None)
    if schedule is None or "staleness_mean" not in study.done:
        return [lacking("runs of a fixed schedule that record staleness")]
    text = "With {ours} a gradient comes {value} updates late, so that it is not that of the parameters it changes."
    return [over_bound(study.main, schedule, "staleness_mean", 0.0, text), close]


def _close(study: Study) -> Finding:
    """Judge whether the smallest delay that was tried ends as well as none, over all other settings."""
    held = study.done["hold"].dropna() if "hold" in study.done else pd.Series(dtype=float)
    delays = sorted(set(held[held > 0]))
    if not delays or not (held == 0).any():
        return lacking("runs over exchange.hold, 0 and others: gradients that are late by a known number of updates")
    rows = study.done.assign(block=study.done["seed"].astype(str) + " " + study.done["optimizer"].astype(str))
    by_block = rows.pivot_table(index=["schedule", "block"], columns="hold", values="final_score")
    pair = by_block[[delays[0], 0.0]].dropna()
    difference = statistics.paired_difference(pair[delays[0]].to_numpy(float), pair[0.0].to_numpy(float))
    margin = RELEVANT * abs(float(statistics.iqm(pair[0.0].to_numpy(float)))) if len(pair) else 0.0
    text = f"Held back by {delays[0]:g}, runs end {apart(difference, study.score.unit)} than without."
    return judged(text, difference, -margin, margin)


CLAIM = Claim(
    "Asynchronous gradients are not correct, but close.",
    "report, 3.1",
    judge,
    over_settings=True,
    quote="Since A3C updates the model asynchronously, the gradient is not correct (but close).",
)
