"""Many runs' curves as one: the interquartile mean over runs, and how far they spread."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.data import statistics
from analysis.data.study import Schedule, Study

_GRID = 200  # points of a curve over anything but episodes

Column = str | Callable[[pd.DataFrame], np.ndarray]


class Band(NamedTuple):
    """A curve over `x` [K] with its 95 % interval, which is NaN for fewer than 8 runs."""

    x: np.ndarray
    middle: np.ndarray
    low: np.ndarray
    high: np.ndarray
    runs: int


@lru_cache(maxsize=1024)
def over_episodes(study: Study, schedule: Schedule, column: Column) -> Band:
    """Return `column` (a curve's column, or a function of a curve) over episodes, up to the end of the shortest run."""
    curves = list(study.each_curve(schedule))
    length = min(map(len, curves))
    matrix = np.stack([_values(curve, column)[:length] for curve in curves])  # [runs, bins]
    return _band(curves[0]["episodes"].to_numpy(float)[:length], matrix)


@lru_cache(maxsize=1024)
def over(study: Study, schedule: Schedule, column: Column, axis: str) -> Band:
    """Return `column` over another `axis` (env_steps, updates, clock_s), until half of the runs have ended.

    A run that has ended keeps its last value: what it has learned does not go away.
    """
    if axis == "episodes" and study.planned_env_steps is None:  # its bins are parts of the episodes
        return over_episodes(study, schedule, column)
    curves = list(study.each_curve(schedule))
    end = float(np.median([curve[axis].iloc[-1] for curve in curves]))
    grid = np.linspace(end / _GRID, end, _GRID)
    matrix = np.stack([np.interp(grid, curve[axis].to_numpy(float), _values(curve, column)) for curve in curves])
    return _band(grid, matrix)


def each_over(study: Study, schedule: Schedule, column: Column, axis: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return `column` of each of the schedule's runs over `axis`, as (x, y)."""
    curves = study.each_curve(schedule)
    return [(curve[axis].to_numpy(float), _values(curve, column)) for curve in curves]


@lru_cache(maxsize=256)
def of_learned(study: Study, schedule: Schedule, column: Column, axis: str) -> Band | None:
    """Return `column` of those of the schedule's runs that learned, where others did not; None elsewhere."""
    hits = study.values(schedule, "final_score") >= study.score.learned_above
    if hits.nunique() < 2:
        return None
    seeds = hits.index[hits]
    some = (study.runs["schedule"] != schedule.label) | study.runs["seed"].isin(seeds)
    return over(replace(study, runs=study.runs[some]), schedule, column, axis)


def _values(curve: pd.DataFrame, column: Column) -> np.ndarray:
    return curve[column].to_numpy(float) if isinstance(column, str) else column(curve)


def _band(x: np.ndarray, matrix: np.ndarray) -> Band:
    """Return the band of `matrix` [runs, K]; points where a run has no value are left out."""
    whole = np.isfinite(matrix).all(axis=0)
    x, matrix = x[whole], matrix[:, whole]
    low, high = statistics.interval(matrix) if matrix.size else (matrix[0], matrix[0])
    return Band(x, statistics.iqm(matrix, axis=0) if matrix.size else matrix[0], low, high, len(matrix))


def spread_words(runs: int) -> str:
    """Return what lines and shading of a figure with that many runs mean."""
    if runs == 1:
        return "one run each"
    middle = "mean" if runs < 4 else "IQM" if runs < statistics.FEWEST else "IQM, 95 % interval"
    return f"thick: all {runs} runs ({middle}); thin: each run"
