"""What GA3C gains over A3C, by a talk of its time; with which costs that holds is what the runs tell.

A3C has the largest number of workers that was run and that its master bears by N0, known before the runs. GA3C has as
many agents, and the most that were run, with each of the settings that it was run with. Where most runs of both come to
the study's score, the time to it is compared, elsewhere steps per second. Costs that differ are different machines:
each has a finding of its own.
"""

import numpy as np
import pandas as pd

from analysis.claims.claim import Claim
from analysis.claims.verdicts import Finding, judged, lacking, untested
from analysis.data import statistics
from analysis.data.outcomes import reference_score
from analysis.data.study import Study
from analysis.words import with_interval

ONE_ORDER = 10.0  # times as fast
_COSTS = ["profile", "update_s"]


def judge(study: Study) -> list[Finding]:
    """Compare GA3C with A3C at each of the costs that both were run with."""
    rows = study.done[(study.done["algorithm"] == "a3c") & ~study.done["dynamic"]]
    rows = rows.reindex(columns=list(dict.fromkeys([*rows, *_COSTS, "limit_workers"])))  # real runs have no costs
    findings = [finding for _, runs in rows.groupby(_COSTS, sort=False) for finding in _at_costs(study, runs)]
    return findings or [lacking("runs of topologies ga3c and master with the same costs and seeds")]


def _at_costs(study: Study, runs: pd.DataFrame) -> list[Finding]:
    a3c, ga3c = (runs[runs["topology"] == name] for name in ("master", "ga3c"))
    borne = a3c[a3c["end"] <= a3c["limit_workers"]]
    if not len(borne) or not len(ga3c):
        return []
    baseline = _by_settings(borne, int(borne["end"].max()))[0]
    counts = dict.fromkeys([int(baseline["end"].iloc[0]), int(ga3c["end"].max())])
    found = [one for count in counts for one in _by_settings(ga3c, count)]
    return [_compared(study, one, baseline, named=ga3c["variant"].nunique() > 1) for one in found]


def _by_settings(runs: pd.DataFrame, workers: int) -> list[pd.DataFrame]:
    """Return the runs with so many workers, by seed, of each of the settings that have them."""
    fitting = runs[runs["end"] == workers]
    return [one.set_index("seed").sort_index() for _, one in fitting.groupby("variant", sort=False)]


def _compared(study: Study, ours: pd.DataFrame, theirs: pd.DataFrame, named: bool) -> Finding:
    score = max(reference_score(study.of_variant(variant)) for variant in study.done_variants)
    pair = pd.concat([ours, theirs], axis=1, join="inner", keys=["ours", "theirs"])
    its_settings = f" ({ours['variant'].iloc[0]})" if named else ""
    who = f"{ours['end'].iloc[0]} agents of GA3C{its_settings}", f"{theirs['end'].iloc[0]} workers of A3C"
    costs = f"{ours['profile'].iloc[0]}, an update of {1e3 * ours['update_s'].iloc[0]:.3g} ms"
    if not len(pair):
        return untested(f"{who[0]} and {who[1]} share no seed at the costs {costs}.", "runs with the same seeds")
    mine, its = (pair[side][f"time_to_{score:g}_s"].to_numpy(float) for side in ("ours", "theirs"))
    both = np.isfinite(mine) & np.isfinite(its)
    if score > study.score.learned_above and both.mean() > 0.5:
        ratio, what = statistics.paired_ratio(its[both], mine[both]), f"come to {score:g} {study.score.unit}"
    else:
        speeds = (pair[side]["steps_per_s"].to_numpy(float) for side in ("ours", "theirs"))
        ratio, what = statistics.paired_ratio(*speeds), "play"
    text = f"At the costs {costs}, {who[0]} {what} {with_interval(ratio)} times as fast as {who[1]}."
    return judged(text, ratio, ONE_ORDER)


CLAIM = Claim(
    "GA3C is one to two orders of magnitude faster than A3C.",
    "Chen & Zhong 2016, A3C on Atari games, conclusions",
    judge,
    over_settings=True,
    rule="any",
    of_speed=True,
    quote="GA3C could possibly reduce training time by 1-2 order of magnitude.",
    applies=lambda study: "topology" in study.done and bool((study.done["topology"] == "ga3c").any()),
)
