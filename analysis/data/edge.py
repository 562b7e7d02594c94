"""Where learning ends: the share of runs that learn as a logistic function of workers / limit, over a study's runs.

The limit, N0 or N*, is known before the runs and differs by seed. The curve is 1 / (1 + (r / midpoint)^slope) for the
ratio r; intervals come from a bootstrap over seeds, since runs of one seed share their initial parameters.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from analysis.data.statistics import LEVEL
from analysis.data.study import Study

DRAWS = 1_000
_SEED = 20_261_119
_RIDGE = 1e-3  # on the slope: where a group of runs is separated without an error, the best slope would be infinite
_STEEPEST = 400.0
_AROUND = {"workers", "update_s", "jitter", "case", "seed"}  # what such a study varies
_FEWEST_RATIOS = 5  # distinct worker counts that make an edge visible
_FEWEST_SEEDS = 8


class Edge(NamedTuple):
    """A logistic fit: half of the runs learn at the midpoint."""

    midpoint: float  # in multiples of the limit
    low: float
    high: float
    slope: float  # of the logistic function, over the logarithm of the ratio
    slope_low: float
    slope_high: float
    runs: int
    seeds: int


def edge_of(runs: pd.DataFrame, limit: str = "limit_workers") -> Edge:
    """Return the edge of learning of some runs.

    Args:
        runs: `end` (workers), `seed`, `learned` (bool), and the column named by `limit`.
        limit: the column with each run's predicted limit.
    """
    ratio, learned, groups = _columns(runs, limit)
    midpoint, slope = _fit(ratio, learned)
    draws = np.array([_fit(ratio[rows], learned[rows]) for rows in _resampled(groups)])
    tail = 100 * (1 - LEVEL) / 2
    (low, slope_low), (high, slope_high) = np.percentile(draws, [tail, 100 - tail], axis=0)
    seeds = len(groups)
    return Edge(midpoint, float(low), float(high), slope, float(slope_low), float(slope_high), len(runs), seeds)


def own_limit_wins(runs: pd.DataFrame, own: str = "limit_workers", mean: str = "mean_limit") -> float:
    """Return the share of bootstrap draws in which a seed's own limit fits better than the mean over seeds."""
    ratio, learned, groups = _columns(runs, own)
    other = _columns(runs, mean)[0]
    wins = [
        _likelihood(ratio[rows], learned[rows]) > _likelihood(other[rows], learned[rows]) for rows in _resampled(groups)
    ]
    return float(np.mean(wins))


def edges(study: Study) -> pd.DataFrame:
    """Return a row for all runs of the study, and one for each cost of an update if there are several."""
    runs = _runs_of(study)
    groups: list[tuple[str, pd.DataFrame]] = [("all", runs)]
    if runs["update_s"].nunique() > 1:
        costs = sorted(map(float, runs["update_s"].unique()))
        groups += [(update_words(cost), runs[runs["update_s"] == cost]) for cost in costs]
    rows: list[dict[str, Any]] = []
    for name, part in groups:
        if part["learned"].nunique() > 1:
            wins = own_limit_wins(part) if part["seed"].nunique() > 1 else np.nan
            rows.append({"runs_of": name, **edge_of(part)._asdict(), "own_limit_wins": wins})
    return pd.DataFrame(rows)


def update_words(update_s: float) -> str:
    """Return what a group of runs with this cost of an update is called."""
    return f"update {1000 * update_s:.3g} ms"


def shares(study: Study) -> pd.DataFrame:
    """Return a row for each cost of an update and worker count: its ratio to the mean limit, and who learned."""
    runs = _runs_of(study)
    groups = runs.groupby(["update_s", "end"])
    table = groups.agg(
        ratio=("limit_workers", "mean"), learned=("learned", "sum"), runs=("learned", "size")
    ).reset_index()
    return table.assign(ratio=table["end"] / table["ratio"]).rename(columns={"end": "workers"})


def has_edge(study: Study) -> bool:
    """Return whether a study has enough worker counts and seeds around a known limit to fit its edge."""
    done = study.done
    if "limit_workers" not in done or done["limit_workers"].isna().any() or not len(done) or done["dynamic"].any():
        return False
    if (
        not set(study.axes) <= _AROUND
        or not np.isfinite(done["limit_workers"]).all()
        or done["seed"].nunique() < _FEWEST_SEEDS
    ):
        return False
    learned = done["final_score"] >= study.score.learned_above
    return bool(done["end"].nunique() >= _FEWEST_RATIOS and learned.nunique() > 1)


def _runs_of(study: Study) -> pd.DataFrame:
    """Return the study's runs with `learned`, and with the mean limit over the seeds of each cost of an update."""
    runs = study.done.assign(learned=study.done["final_score"] >= study.score.learned_above)
    return runs.assign(mean_limit=runs.groupby("update_s")["limit_workers"].transform("mean"))


def _columns(runs: pd.DataFrame, limit: str) -> tuple[NDArray, NDArray, list[NDArray]]:
    """Return the logarithms of the ratios, who learned, and the rows of each seed."""
    ratio = np.log(runs["end"].to_numpy(float) / runs[limit].to_numpy(float))
    seeds = runs["seed"].to_numpy()
    return ratio, runs["learned"].to_numpy(bool), [np.flatnonzero(seeds == seed) for seed in np.unique(seeds)]


def _resampled(groups: list[NDArray]) -> list[NDArray]:
    """Return the rows of each bootstrap draw: whole seeds, with replacement."""
    generator = np.random.default_rng(_SEED)
    picks = generator.integers(0, len(groups), (DRAWS, len(groups)))
    return [np.concatenate([groups[pick] for pick in draw]) for draw in picks]


def _fit(ratio: NDArray, learned: NDArray) -> tuple[float, float]:
    """Return (midpoint, slope) of the most likely logistic curve."""
    offset, slope = _coefficients(ratio, learned)
    return float(np.exp(offset / slope)), slope


def _coefficients(ratio: NDArray, learned: NDArray) -> tuple[float, float]:
    """Return (a, b) of P(learned) = expit(a - b ratio), by Newton's method with a small ridge on b."""
    design = np.column_stack([np.ones_like(ratio), -ratio])
    ridge = np.diag([0.0, _RIDGE])
    found = np.array([0.0, 1.0])
    for _ in range(100):
        chance = expit(design @ found)
        gradient = design.T @ (learned - chance) - ridge @ found
        curvature = (design * (chance * (1 - chance))[:, None]).T @ design + ridge + 1e-9 * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        scale = min(1.0, 5.0 / float(np.abs(step).max() + 1e-12))
        found = found + scale * step
        if np.abs(scale * step).max() < 1e-7 or abs(found[1]) > _STEEPEST:
            break
    return float(found[0]), float(found[1])


def _likelihood(ratio: NDArray, learned: NDArray) -> float:
    """Return the logarithm of the likelihood of the best curve."""
    offset, slope = _coefficients(ratio, learned)
    place = offset - slope * ratio
    return float(np.where(learned, log_expit(place), log_expit(-place)).sum())
