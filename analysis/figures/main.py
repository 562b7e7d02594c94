"""The figure that answers a study's question; which it is depends on what the study varies."""

from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from analysis.data import outcomes, statistics
from analysis.data.capacity import limit_of
from analysis.data.study import Schedule, Study
from analysis.figures import collapse_map, fixed_workers, settings, style
from analysis.figures.figure import StudyFigure
from analysis.figures.panels import draw_limit, named
from analysis.figures.score_axes import plot_score_over
from analysis.figures.sentences import of_scores

_PLATE = {"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 0.6}  # behind words that lie on lines


def main_figure(study: Study) -> StudyFigure:
    """Return the figure that answers the study's question."""
    for figure in collapse_map.FIGURE.of(study):
        return figure._replace(name="main")
    if study.compares_settings:
        return settings.figures(study)[0]._replace(name="main")
    if study.shown.schedules(dynamic=False):
        panels, sentence = (fixed_workers.plot_fixed_score, plot_bearing), fixed_workers.sentence
    else:
        panels, sentence = (partial(plot_score_over, axis="episodes"), plot_bearing), of_all
    return StudyFigure("main", "What was learned", panels, sentence, section="report")


def of_all(study: Study) -> str:
    """Say where every schedule ends."""
    return of_scores(study, study.schedules())


def plot_bearing(study: Study, ax: Axes) -> Axes:
    """Draw what each schedule has learned at the end against its workers, and where the master saturates."""
    schedules = study.schedules()
    for schedule in schedules:
        (_draw_arrow if schedule.dynamic else _draw_fixed)(study, ax, schedule)
    limit = limit_of(study)
    style.worker_axis(ax, sorted({count for schedule in schedules for count in (schedule.start, schedule.end)}))
    ax.set_ylim(top=1.15 * ax.get_ylim()[1])
    style.from_zero(ax)
    if limit:
        draw_limit(ax, limit)
    ax.set_ylabel(f"score at the end ({study.score.unit})")
    ax.set_title("What was learned, by number of workers")
    style.note(ax, "dots: runs; markers: those that learned; arrows: dynamic schedules")
    return ax


def _draw_fixed(study: Study, ax: Axes, schedule: Schedule) -> None:
    """Draw the runs of a fixed schedule as dots, and what those that learned come to as a marker with its interval."""
    values, shown = study.values(schedule, "final_score"), outcomes.estimate(study, schedule)
    shade = style.tone(schedule)
    look: dict[str, Any] = {"color": shade, "zorder": 4}
    jitter = np.exp(np.linspace(-0.05, 0.05, len(values)) if len(values) > 1 else np.zeros(1))
    ax.plot(schedule.end * jitter, values, ".", alpha=0.45, markersize=6, color=shade, zorder=3)
    if shown.runs >= statistics.FEWEST_TO_RESAMPLE:
        ax.plot([schedule.end] * 2, [shown.low, shown.high], linewidth=2.2, **look)
    shape = style.shape(schedule)
    ax.plot(schedule.end, shown.value, shape, markersize=9, markeredgecolor="white", markeredgewidth=0.8, **look)
    ax.annotate(named(study, schedule), (schedule.end, shown.value), (8, 7), textcoords="offset points", fontsize=9.5,
                bbox=_PLATE, color=shade, zorder=6)  # fmt: skip


def _draw_arrow(study: Study, ax: Axes, schedule: Schedule) -> None:
    """Draw a dynamic schedule from its start to the number of workers that it came to."""
    height, end = (outcomes.estimate(study, schedule, column).value for column in ("final_score", "workers_max"))
    look = {"color": style.tone(schedule), "linestyle": style.line(schedule)["linestyle"], "linewidth": 1.8}
    arrow = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0, **look}
    ax.annotate("", (end, height), (schedule.start, height), arrowprops=arrow, zorder=3)
    there = [text.get_text() for text in ax.texts if "→" in text.get_text()]
    place = {"textcoords": "offset points", "va": "center", "fontsize": 9, "color": look["color"], "bbox": _PLATE}
    if schedule.span not in there:
        ax.annotate(schedule.span, (end, height), (-10, -14 - 13 * len(there)), zorder=5, **place)
