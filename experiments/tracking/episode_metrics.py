"""A run's records as points of MLflow's curves: pure, so that the same records always give the same points."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from a3c_core.tools.learning_curve import rolling_mean

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

    Every episode (or every so many) has its score and the run's clock; means over the last 100 episodes follow more
    rarely. The timestamp is the run's start plus its clock, so that the time axis shows the run's clock.
    """
    clock_s = records["applied_s"].to_numpy()
    stamps = started_ms + np.rint(clock_s * 1000).astype(np.int64)
    single = {"score": records["score"].to_numpy(), "time_s": clock_s}
    means = {
        "score_mean_100": rolling_mean(records["score"].to_numpy()),
        "staleness": rolling_mean(records["staleness"].to_numpy()),
        "queue_length": rolling_mean(records["queue_length"].to_numpy()),
        "workers": records["workers_alive"].to_numpy(),
    }
    stride = max(every, MEANS_EVERY)
    size = int((MOST_POINTS - 10) / (len(single) / every + len(means) / stride))
    for start in range(first, len(records), size):
        end = min(start + size, len(records))
        episodes = np.arange(start, end)
        chosen = episodes[episodes % every == 0]
        rare = episodes[(episodes + 1) % stride == 0]
        points = [_point(key, values, stamps, e) for key, values in single.items() for e in chosen]
        points += [_point(key, values, stamps, e) for key, values in means.items() for e in rare]
        yield Batch(points, end)


def _point(key: str, values: np.ndarray, stamps: np.ndarray, episode: int) -> Point:
    return Point(key, float(values[episode]), int(stamps[episode]), int(episode))
