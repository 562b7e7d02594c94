"""The same runs on four axes: who is ahead by episodes need not be ahead by time."""

from functools import partial

import numpy as np
from matplotlib.axes import Axes

from analysis.data.outcomes import reference_score
from analysis.data.study import Study
from analysis.figures.figure import StudyFigure
from analysis.figures.panels import plot_score
from analysis.words import duration, listed, number

_TITLES = {"episodes": "episodes", "env_steps": "steps", "updates": "updates", "clock_s": "time"}


def plot_score_over(study: Study, ax: Axes, axis: str) -> Axes:
    """Draw the score of every schedule over episodes, env_steps, updates or clock_s."""
    plot_score(study, ax, study.schedules(), axis)
    ax.set_title(f"Score against {_TITLES[axis]}")
    return ax


def sentence(study: Study) -> str:
    """Say which schedule is ahead per episode and which per hour."""
    score = reference_score(study)
    firsts = [
        _first(study, f"episodes_to_{score:g}", "in episodes", lambda episodes: f"{number(episodes)} episodes"),
        _first(study, f"time_to_{score:g}_s", "in time", duration),
    ]
    reached = [first for first in firsts if first]
    if len(reached) < len(firsts):
        return f"No schedule reaches a mean score of {score:g} in most of its runs."
    return f"A mean score of {score:g} is reached first {listed(reached)}."


def _first(study: Study, column: str, axis: str, show) -> str:
    """Say which schedule's median is the least, and what it is; nothing if all are infinite."""
    medians = {schedule: float(np.median(study.values(schedule, column))) for schedule in study.schedules()}
    first = min(medians, key=lambda schedule: medians[schedule])
    return f"{axis} by {first.title} ({show(medians[first])})" if np.isfinite(medians[first]) else ""


def figures(study: Study) -> list[StudyFigure]:
    """Return the figure: without the clock where nothing takes any time."""
    axes = [axis for axis in _TITLES if study.shown.takes_time or axis != "clock_s"]
    title = f"The same runs on {'four' if study.shown.takes_time else 'three'} axes"
    panels = tuple(partial(plot_score_over, axis=axis) for axis in axes)
    return [StudyFigure("score_axes", title, panels, sentence, section="tradeoff")]
