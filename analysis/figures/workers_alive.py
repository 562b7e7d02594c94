"""How many workers the dynamic schedules had, over episodes and over time."""

from functools import partial

import numpy as np
from matplotlib.axes import Axes

from analysis.data.study import Schedule, Study
from analysis.figures import style
from analysis.figures.figure import StudyFigure
from analysis.figures.panels import axis_of, draw_over
from analysis.figures.sentences import grouped
from analysis.words import percent


def plot_workers_alive(study: Study, ax: Axes, axis: str = "episodes") -> Axes:
    """Draw how many workers the dynamic schedules had, over episodes or clock_s."""
    draw_over(study, ax, study.schedules(dynamic=True), "workers", axis)
    ax.set_ylim(0, 1.08 * ax.get_ylim()[1])
    style.whole_numbers(ax.yaxis)
    ax.set_ylabel("workers")
    ax.set_title(f"Workers alive over {'time' if axis == 'clock_s' else axis_of(study, axis)[1]}")
    return ax


def sentence(study: Study) -> str:
    """Say when each dynamic schedule began to grow and when it was full."""
    said: dict[str, list[str]] = {}
    for schedule in study.schedules(dynamic=True):
        said.setdefault(_growth(study, schedule), []).append(schedule.title)
    return grouped(said)


def _growth(study: Study, schedule: Schedule) -> str:
    """Say when most runs of a schedule grew and were full."""
    runs = [curve["workers"].to_numpy() for curve in study.each_curve(schedule)]
    begun = [_first(workers > schedule.start) for workers in runs if workers.max() > schedule.start]
    full = [_first(workers >= schedule.end) for workers in runs if workers.max() >= schedule.end]
    if not begun:
        return "never changed its count"
    most_are_full = len(full) > len(runs) / 2
    reached = f"was full after {percent(float(np.median(full)))}" if most_are_full else "was never full"
    return f"grew from {percent(float(np.median(begun)))} of the episodes on and {reached}"


def _first(true: np.ndarray) -> float:
    """Return the share of the bins before the first that is true."""
    return float(np.argmax(true)) / len(true)


def applies(study: Study) -> bool:
    """Apply where worker counts change."""
    return bool(study.schedules(dynamic=True))


FIGURE = StudyFigure(
    name="workers_alive",
    title="Workers alive",
    panels=tuple(partial(plot_workers_alive, axis=axis) for axis in ("episodes", "clock_s")),
    sentence=sentence,
    section="report",
    applies=applies,
)
