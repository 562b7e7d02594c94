"""The report's own figures, rebuilt from records with their uncertainty: fixed workers, and dynamic against fixed."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from analysis import curves, style
from analysis.study import Schedule, Study

_PLATE = {"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 0.6}  # behind words that lie on lines


def plot_score(study: Study, ax: Axes, schedules: Sequence[Schedule], axis: str = "episodes") -> Axes:
    """Draw the mean score of `schedules` over episodes, env_steps, updates or clock_s."""
    scale, label = _axis(study, axis)
    for order, schedule in enumerate(schedules):
        style.draw_band(ax, curves.over(study, schedule, "score", axis), schedule, order, scale)
    style.from_zero(ax)
    ax.set_xlim(0, study.episodes if axis == "episodes" else None)
    ax.set_xlabel(label)
    ax.set_ylabel("mean score (pipes)")
    if axis == "episodes":
        style.plain(ax.xaxis)
    style.note(ax, spread_note(study, schedules))
    style.legend(ax, legend_title(study))
    return ax


def plot_fixed_score(study: Study, ax: Axes) -> Axes:
    """Figure 1: mean score over the episodes, by number of fixed workers."""
    plot_score(study, ax, study.schedules(dynamic=False))
    ax.set_title(f"Mean score over {study.episodes:,} episodes")
    return ax


def plot_time(study: Study, ax: Axes, schedules: Sequence[Schedule]) -> Axes:
    """Draw the time that `schedules` spent over episodes."""
    unit_s, unit = study.time_unit
    for order, schedule in enumerate(schedules):
        band = curves.over_episodes(study, schedule, "clock_s")
        scaled = curves.Band(band.x, band.middle / unit_s, band.low / unit_s, band.high / unit_s, band.runs)
        style.draw_band(ax, scaled, schedule, order)
    style.from_zero(ax)
    ax.set_xlim(0, study.episodes)
    ax.set_xlabel("episodes")
    ax.set_ylabel(f"time spent ({unit})")
    style.plain(ax.xaxis)
    style.note(ax, spread_note(study, schedules))
    style.legend(ax, legend_title(study))
    return ax


def plot_fixed_time(study: Study, ax: Axes) -> Axes:
    """Figure 1, right: time spent over the episodes, by number of fixed workers."""
    plot_time(study, ax, study.schedules(dynamic=False))
    ax.set_title(f"Time spent over {study.episodes:,} episodes")
    return ax


def plot_dynamic_score(study: Study, ax: Axes, dynamic: Sequence[Schedule]) -> Axes:
    """Figures 2 to 4, left: score of a dynamic schedule against all fixed ones."""
    plot_score(study, ax, [*study.schedules(dynamic=False), *dynamic])
    ax.set_title(f"{_name(dynamic)} against fixed workers: score")
    return ax


def plot_dynamic_time(study: Study, ax: Axes, dynamic: Sequence[Schedule]) -> Axes:
    """Figures 2 to 4, right: time spent by a dynamic schedule against all fixed ones."""
    plot_time(study, ax, [*study.schedules(dynamic=False), *dynamic])
    ax.set_title(f"{_name(dynamic)} against fixed workers: time")
    return ax


def plot_workers_alive(study: Study, ax: Axes, axis: str = "episodes") -> Axes:
    """Draw how many workers the dynamic schedules had, over episodes or clock_s."""
    scale, label = _axis(study, axis)
    for order, schedule in enumerate(study.schedules(dynamic=True)):
        style.draw_band(ax, curves.over(study, schedule, "workers", axis), schedule, order, scale)
    ax.set_ylim(bottom=0)
    ax.set_xlim(0, study.episodes if axis == "episodes" else None)
    ax.set_xlabel(label)
    ax.set_ylabel("workers")
    ax.set_title(f"Workers alive over {'time' if axis == 'clock_s' else label}")
    if axis == "episodes":
        style.plain(ax.xaxis)
    style.note(ax, spread_note(study, study.schedules(dynamic=True)))
    style.legend(ax, legend_title(study))
    return ax


def plot_bearing(study: Study, ax: Axes) -> Axes:
    """Draw what each schedule has learned at the end against its workers, and where the master saturates."""
    schedules = study.schedules()
    for schedule in schedules:
        (_draw_arrow if schedule.dynamic else _draw_fixed)(study, ax, schedule)
    limits = study.done["saturation_start"].dropna() if "saturation_start" in study.done else np.array([])
    counts = sorted({count for schedule in schedules for count in (schedule.start, schedule.end)})
    style.worker_axis(ax, counts)
    ax.set_ylim(top=1.15 * ax.get_ylim()[1])
    style.from_zero(ax)
    if len(limits):
        _draw_limit(ax, float(np.median(limits)))
    ax.set_ylabel("score at the end (pipes)")
    ax.set_title("What was learned, by number of workers")
    style.note(ax, "arrows: dynamic schedules, to where they came; dots: runs")
    return ax


def spread_note(study: Study, schedules: Sequence[Schedule]) -> str:
    """Return what lines and shading stand for."""
    runs = [len(study.values(schedule, "final_score")) for schedule in schedules]
    return curves.spread_words(min(runs)) if runs else ""


def legend_title(study: Study) -> str:
    """Return what the entries of a legend are."""
    return "setting" if (study.runs["tint"] >= 0).any() else "workers"


def _axis(study: Study, axis: str) -> tuple[float, str]:
    """Return what divides an axis's values, and its label."""
    if axis == "clock_s":
        return study.time_unit[0], f"time ({study.time_unit[1]})"
    return _AXES[axis]


def _draw_fixed(study: Study, ax: Axes, schedule: Schedule) -> None:
    values, shown = study.values(schedule, "final_score"), study.estimate(schedule, "final_score")
    look: dict[str, Any] = {"color": style.tone(schedule), "zorder": 4}
    jitter = np.exp(np.linspace(-0.05, 0.05, len(values)) if len(values) > 1 else np.zeros(1))
    ax.plot(schedule.end * jitter, values, ".", alpha=0.45, markersize=6, color=look["color"], zorder=3)
    if len(values) >= curves.statistics.FEWEST_TO_RESAMPLE:
        ax.plot([schedule.end] * 2, [shown.low, shown.high], linewidth=2.2, **look)
    shape = style.shape(schedule)
    ax.plot(schedule.end, shown.value, shape, markersize=9, markeredgecolor="white", markeredgewidth=0.8, **look)
    place: dict[str, Any] = {
        "textcoords": "offset points",
        "fontsize": 9.5,
        "bbox": _PLATE,
        "color": look["color"],
        "zorder": 6,
    }
    ax.annotate(schedule.label, (schedule.end, shown.value), (8, 7), **place)


def _draw_arrow(study: Study, ax: Axes, schedule: Schedule) -> None:
    """Draw a dynamic schedule from its start to the number of workers that it came to."""
    height, end = (study.estimate(schedule, column).value for column in ("final_score", "workers_max"))
    look = {"color": style.tone(schedule), "linestyle": style.line(schedule)["linestyle"], "linewidth": 1.8}
    arrow = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0, **look}
    ax.annotate("", (end, height), (schedule.start, height), arrowprops=arrow, zorder=3)
    named = [text.get_text() for text in ax.texts if "→" in text.get_text()]
    place = {"textcoords": "offset points", "va": "center", "fontsize": 9, "color": look["color"], "bbox": _PLATE}
    if schedule.span not in named:
        ax.annotate(schedule.span, (end, height), (-10, -14 - 13 * len(named)), zorder=5, **place)


def _draw_limit(ax: Axes, workers: float) -> None:
    if not np.isfinite(workers):  # a master that costs nothing is never busy
        return
    ax.axvspan(workers, ax.get_xlim()[1], color=style.WARNING, alpha=0.06, linewidth=0)
    ax.axvline(workers, color=style.WARNING, linewidth=1.2)
    ax.annotate(
        f"N* = {workers:.1f}\nfrom here on workers\nkeep the master busy\nat the start",
        (workers, 0.48 * ax.get_ylim()[1]),
        (5, 0),
        textcoords="offset points",
        va="top",
        fontsize=8.5,
        color=style.WARNING,
    )


def _name(dynamic: Sequence[Schedule]) -> str:
    return dynamic[0].span


_AXES = {
    "episodes": (1.0, "episodes"),
    "env_steps": (1e6, "environment steps (millions)"),
    "updates": (1e3, "updates applied (thousands)"),
}
