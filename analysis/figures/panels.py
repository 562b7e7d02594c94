"""Panels that several figures share: score and time over the episodes, and what stands around them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from analysis.data import curves, outcomes
from analysis.data.capacity import Limit
from analysis.data.study import Schedule, Study
from analysis.figures import style

_AXES = {  # what divides an axis's values, and its label
    "episodes": (1.0, "episodes"),
    "env_steps": (1e6, "environment steps (millions)"),
    "updates": (1e3, "updates applied (thousands)"),
}
_FOR_WORDS = 0.22  # of a panel's height, above all that is drawn
_BEYOND = {  # a limit: what happens there, at the start of a run
    "N0": "from here on\nmore gradients arrive than\nthe master can apply",
    "N*": "from here on\nworkers keep the master busy",
}


def plot_score(study: Study, ax: Axes, schedules: Sequence[Schedule], axis: str = "episodes") -> Axes:
    """Draw the score of `schedules` over episodes, env_steps, updates or clock_s: every run, and all runs together.

    Where only some runs of a schedule learned, a dotted line is of those.
    """
    scale, _ = axis_of(study, axis)
    for order, schedule in enumerate(schedules):
        for x, y in curves.each_over(study, schedule, "score", axis):
            ax.plot(x / scale, y, color=style.tone(schedule), linewidth=0.5, alpha=0.3, zorder=1)
        band = curves.over(study, schedule, "score", axis)
        style.draw_band(ax, band, schedule, order, scale, named(study, schedule))
        some = curves.of_learned(study, schedule, "score", axis)
        if some is not None:
            ax.plot(some.x / scale, some.middle, color=style.tone(schedule), linestyle="dotted", linewidth=1.6)
    _frame(study, ax, schedules, axis)
    style.from_zero(ax)
    ax.set_ylabel(f"mean score ({study.score.unit})")
    return ax


def plot_time(study: Study, ax: Axes, schedules: Sequence[Schedule]) -> Axes:
    """Draw the time that `schedules` spent over episodes."""
    unit_s, unit = study.time_unit
    for order, schedule in enumerate(schedules):
        band = curves.over(study, schedule, "clock_s", "episodes")
        scaled = curves.Band(band.x, band.middle / unit_s, band.low / unit_s, band.high / unit_s, band.runs)
        style.draw_band(ax, scaled, schedule, order, label=named(study, schedule))
    style.from_zero(ax)
    _frame(study, ax, schedules, "episodes")
    ax.set_ylabel(f"time spent ({unit})")
    return ax


def draw_over(
    study: Study, ax: Axes, schedules: Sequence[Schedule], column: curves.Column, axis: str = "episodes"
) -> None:
    """Draw `column` of `schedules` over episodes, env_steps, updates or clock_s, with a legend and x labelled."""
    scale, _ = axis_of(study, axis)
    for order, schedule in enumerate(schedules):
        style.draw_band(ax, curves.over(study, schedule, column, axis), schedule, order, scale)
    _frame(study, ax, schedules, axis)


def draw_runs(study: Study, ax: Axes, column: str) -> None:
    """Draw `column` of every run against its workers at the start."""
    schedules = study.schedules()
    for schedule in schedules:
        values = study.values(schedule, column)
        face = "none" if schedule.dynamic else style.tone(schedule)
        ax.plot([schedule.start] * len(values), values, style.shape(schedule), markersize=7, alpha=0.8,
                markerfacecolor=face, markeredgecolor=style.tone(schedule))  # fmt: skip
    style.worker_axis(ax, sorted({schedule.start for schedule in schedules}))


def draw_limit(ax: Axes, limit: Limit) -> None:
    """Mark the number of workers that the master was to bear, known before the runs; the words stand above all runs."""
    low_y, high_y = ax.get_ylim()
    ax.set_ylim(low_y, low_y + (high_y - low_y) / (1 - _FOR_WORDS))
    ax.axvspan(limit.workers, ax.get_xlim()[1], color=style.WARNING, alpha=0.06, linewidth=0)
    ax.axvline(limit.workers, color=style.WARNING, linewidth=1.2)
    text, place = f"{limit.short}: {_BEYOND[limit.name]}", (limit.workers, ax.get_ylim()[1])
    low, high = np.log(ax.get_xlim())
    is_left = np.log(limit.workers) < 0.5 * (low + high)  # words go to where there is more room
    side: dict[str, Any] = {"xytext": (5, -2), "ha": "left"} if is_left else {"xytext": (-5, -2), "ha": "right"}
    ax.annotate(text, place, textcoords="offset points", va="top", fontsize=8.5, color=style.WARNING, **side)


def named(study: Study, schedule: Schedule) -> str:
    """Return a schedule's label, with the share of its runs that learned where only some did."""
    hits = outcomes.learned(study, schedule)
    return f"{schedule.label} ({hits.sum()} of {len(hits)} learned)" if hits.nunique() > 1 else schedule.label


def axis_of(study: Study, axis: str) -> tuple[float, str]:
    """Return what divides an axis's values, and its label."""
    if axis == "clock_s":
        return study.time_unit[0], f"time ({study.time_unit[1]})"
    return _AXES[axis]


def legend_title(study: Study) -> str:
    """Return what the entries of a legend are."""
    return "setting" if study.schedules_are_settings else "workers"


def _frame(study: Study, ax: Axes, schedules: Sequence[Schedule], axis: str) -> None:
    """Limit and label x, say what the shading means, and put the legend under the axes."""
    is_planned = axis == "episodes" and study.planned_env_steps is None
    ax.set_xlim(0, study.planned_episodes if is_planned else None)
    ax.set_xlabel(axis_of(study, axis)[1])
    if axis == "episodes":
        style.plain(ax.xaxis)
    style.note(ax, _spread_note(study, schedules))
    style.legend(ax, legend_title(study))


def _spread_note(study: Study, schedules: Sequence[Schedule]) -> str:
    """Return what lines and shading stand for."""
    runs = [len(study.values(schedule, "final_score")) for schedule in schedules]
    if not runs:
        return ""
    mixed = any(outcomes.is_mixed(study, schedule) for schedule in schedules)
    return curves.spread_words(min(runs)) + ("; dotted: learned" if mixed else "")
