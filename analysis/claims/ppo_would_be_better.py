"""What another algorithm would gain, by the report."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from analysis.claims.claim import Claim
from analysis.claims.verdicts import RELEVANT, Finding, judged, lacking
from analysis.data import metrics, statistics
from analysis.data.algorithms import QUEUE
from analysis.data.study import Study
from analysis.words import apart

_TAIL = 0.1  # of what was played: the mean score over it is what was learned by then
Curves = tuple[pd.DataFrame, pd.DataFrame]  # PPO's and A3C's, with the same workers, exchange and seed


def judge(study: Study) -> list[Finding]:
    """Compare PPO's score with A3C's after the same env steps and after the same time, for each kind of queue."""
    known = set(study.done["algorithm"]) if "algorithm" in study.done else set()
    if not {"a3c", "ppo"} <= known:
        return [lacking("runs with algorithm ppo beside those with a3c, with the same workers and seeds")]
    done = study.done if QUEUE in study.done else study.done.assign(**{QUEUE: ""})
    findings = []
    for queue, runs in done.groupby(QUEUE, sort=False):
        pairs = list(_pairs(study, runs))
        where = f", with a queue that is {queue}" if done[QUEUE].nunique() > 1 else ""
        findings += [_compared(study, pairs, axis, what + where) for axis, what in _AXES.items()] if pairs else []
    return findings or [lacking("runs with algorithm ppo and a3c that share workers and seeds")]


_AXES = {"env_steps": "after the same env steps", "clock_s": "after the same time"}


def _pairs(study: Study, runs: pd.DataFrame) -> Iterator[tuple[int, Curves]]:
    """Yield (seed, the curves of PPO and of A3C) for every number of workers and seed that both have."""
    curves = dict(iter(study.curves.groupby("cell", observed=True)))
    both = [runs[runs["algorithm"] == name][["schedule", "seed", "cell"]] for name in ("ppo", "a3c")]
    paired = both[0].merge(both[1], on=["schedule", "seed"], suffixes=("_ppo", "_a3c"))
    for seed, ours, theirs in paired[["seed", "cell_ppo", "cell_a3c"]].values.tolist():
        if ours in curves and theirs in curves:
            yield seed, (curves[ours], curves[theirs])


def _compared(study: Study, pairs: list[tuple[int, Curves]], axis: str, what: str) -> Finding:
    """Judge how much more PPO has learned by then: a seed is one block, whatever its numbers of workers."""
    scores = pd.DataFrame([(seed, *_scores(pair, axis)) for seed, pair in pairs], columns=["seed", "ours", "theirs"])
    by_seed = scores.groupby("seed").mean()
    ours, theirs = by_seed["ours"].to_numpy(float), by_seed["theirs"].to_numpy(float)
    difference = statistics.paired_difference(ours, theirs)
    margin = RELEVANT * float(np.abs(statistics.iqm(ours)))
    return judged(f"{what} PPO is {apart(difference, study.score.unit)} than A3C.", difference, 0.0, margin)


def _scores(pair: Curves, axis: str) -> tuple[float, float]:
    """Return what both had learned when the first of the two had come to its end."""
    end = min(float(curve[axis].iloc[-1]) for curve in pair)
    ours, theirs = (_by_then(curve, axis, end) for curve in pair)
    return ours, theirs


def _by_then(curve: pd.DataFrame, axis: str, end: float) -> float:
    """Return the mean score over the last tenth before `end`, in bins that had ended by then, or in the first."""
    place = curve[axis].to_numpy(float)
    recent = (place > (1 - _TAIL) * end) & (place <= end)
    last = max(1, int(np.searchsorted(place, end, side="right")))
    chosen = curve[recent] if recent.any() else curve.iloc[last - 1 : last]
    return metrics.mean_score(chosen)


CLAIM = Claim(
    "Actor-critic wastes samples; PPO would do better.",
    "report, 3.6",
    judge,
    over_settings=True,
    quote="Low sample-efficiency: It is the biggest problem of Actor-Critic. … distributed PPO. It should have a "
    "better result.",
)
