"""The learning curve of one run: a picture of its score, by episodes and by the run's clock."""

from pathlib import Path

import numpy as np
import pyarrow as pa

WINDOW = 100  # episodes, of the means
_MOST_POINTS = 2000
_UNITS = ((2 * 3600.0, 3600.0, "hours"), (120.0, 60.0, "minutes"), (-1.0, 1.0, "seconds"))  # from so many seconds on


def rolling_mean(values: np.ndarray, window: int = WINDOW) -> np.ndarray:
    """Return the mean of each value and up to `window` - 1 before it: float64 [N]."""
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(0, ends - window)
    return (sums[ends] - sums[starts]) / (ends - starts)


def draw_curve(records: pa.Table, title: str, path: Path) -> None:
    """Draw the mean score over 100 episodes as a PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # slow to import, and needed by those who look only
    from matplotlib.figure import Figure

    shown = np.unique(np.linspace(0, len(records) - 1, min(len(records), _MOST_POINTS)).astype(int))
    score = rolling_mean(records["score"].to_numpy())[shown]
    figure = Figure(figsize=(10, 4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, sharey=True)
    left.plot(shown, score)
    left.set(xlabel="episodes", ylabel="mean score of the last 100 episodes")
    clock_s = records["applied_s"].to_numpy()[shown]
    unit_s, unit = next((size, name) for least, size, name in _UNITS if clock_s.max(initial=0.0) >= least)
    right.plot(clock_s / unit_s, score)
    right.set(xlabel=f"the run's clock ({unit})")
    figure.suptitle(title)
    figure.savefig(path, dpi=80, format="png")
