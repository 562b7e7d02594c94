"""What another algorithm would gain, by the report."""

import numpy as np
import pandas as pd

from analysis.claims.claim import Claim
from analysis.claims.verdicts import RELEVANT, Finding, judged, lacking
from analysis.data import statistics
from analysis.data.study import Study
from analysis.words import apart


def judge(study: Study) -> list[Finding]:
    """Compare PPO's score after the same episodes with A3C's, by the same workers and seed."""
    known = set(study.done["algorithm"]) if "algorithm" in study.done else set()
    if not {"a3c", "ppo"} <= known:
        return [lacking("runs with algorithm ppo beside those with a3c, with the same workers and seeds")]
    table = study.done.pivot_table(index=["schedule", "seed"], columns="algorithm", values="final_score")
    pair = table[["ppo", "a3c"]].dropna()
    if not len(pair):
        return [lacking("runs with algorithm ppo and a3c that share workers and seeds")]
    return [_compared(study, pair)]


def _compared(study: Study, pair: pd.DataFrame) -> Finding:
    ours, theirs = (pair[name].to_numpy(float) for name in ("ppo", "a3c"))
    difference = statistics.paired_difference(ours, theirs)
    margin = RELEVANT * float(np.abs(statistics.iqm(ours)))
    text = f"After the same episodes PPO ends {apart(difference, study.score.unit)} than A3C."
    return judged(text, difference, 0.0, margin)


CLAIM = Claim(
    "Actor-critic wastes samples; PPO would do better.",
    "report, 3.6",
    judge,
    over_settings=True,
    quote="Low sample-efficiency: It is the biggest problem of Actor-Critic. … distributed PPO. It should have a "
    "better result.",
)
