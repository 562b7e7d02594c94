"""A run's records as points of MLflow's curves: pure, so that the same records always give the same points."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from a3c_core.command_line.learning_curve import rolling_mean

MEANS_EVERY = 20  # episodes between two points of a mean
MOST_POINTS = 1000  # that MLflow takes at once


class Point(NamedTuple):
    """One point of a curve."""

    key: str
    value: float
    timestamp_ms: int
    episode: int


class Batch(NamedTuple):
    """Points of the episodes before `end`, after those of earlier batches."""

    points: list[Point]
    end: int


def batches(records: pa.Table, first: int, started_ms: int, every: int = 1) -> Iterator[Batch]:
    """Yield the points of all episodes from `first` on.

    Every episode (or every so many) has its score, the run's clock and the real seconds that it took until then, where
    these are known; means over the last 100 episodes follow more rarely. The timestamp is the run's start plus its
    clock, so that the time axis shows the run's clock.
    """
    clock_s = records["applied_s"].to_numpy()
    stamps = started_ms + np.rint(clock_s * 1000).astype(np.int64)
    single = {
        "episode/score": records["score"].to_numpy(),
        "episode/clock_s": clock_s,
        "episode/wall_time_s": records["wall_s"].to_numpy(),
    }
    means = {
        "mean_100/score": rolling_mean(records["score"].to_numpy()),
        "mean_100/staleness": rolling_mean(records["staleness"].to_numpy()),
        "mean_100/queue_length": rolling_mean(records["queue_length"].to_numpy()),
        "workers/alive": records["workers_alive"].to_numpy(),
    }
    stride = max(every, MEANS_EVERY)
    size = int((MOST_POINTS - 10) / (len(single) / every + len(means) / stride))
    for start in range(first, len(records), size):
        end = min(start + size, len(records))
        episodes = np.arange(start, end)
        chosen = episodes[episodes % every == 0]
        rare = episodes[(episodes + 1) % stride == 0]
        points = [point for key, values in single.items() for point in _points(key, values, stamps, chosen)]
        points += [point for key, values in means.items() for point in _points(key, values, stamps, rare)]
        yield Batch(points, end)


def _points(key: str, values: np.ndarray, stamps: np.ndarray, episodes: np.ndarray) -> Iterator[Point]:
    """Yield a curve's points at these episodes, but where there is no value."""
    for episode in episodes[~np.isnan(values[episodes])]:
        yield Point(key, float(values[episode]), int(stamps[episode]), int(episode))
