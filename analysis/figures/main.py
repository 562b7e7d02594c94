"""The figure that answers a study's question; which it is depends on what the study varies."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from analysis.data import outcomes
from analysis.data.capacity import limit_of
from analysis.data.study import Schedule, Study
from analysis.figures import (
    algorithms,
    cliff,
    collapse_map,
    domination,
    dose,
    edge,
    factors,
    fixed_workers,
    hours,
    settings,
    style,
    table2,
    topologies,
)
from analysis.figures.figure import StudyFigure
from analysis.figures.panels import draw_limit, named, plot_score
from analysis.figures.sentences import of_scores

MAIN = "main"  # the name of the figure that answers, whichever it is
_ANSWERS = (  # each made for one kind of question
    edge.FIGURE,
    collapse_map.FIGURE,
    dose.FIGURE,
    factors.FIGURE,
    table2.FIGURE,
    hours.ANSWER,
    topologies.FIGURE,
    topologies.SPEED,
    domination.FIGURE,
)


def main_figure(study: Study) -> StudyFigure:
    """Return the figure that answers the study's question."""
    for answer in _ANSWERS:
        for figure in answer.of(study):
            return figure._replace(name=MAIN)
    for figure in algorithms.figures(study):
        return figure._replace(name=MAIN)
    if study.done["variant"].nunique() > 1 and cliff.applies(study):
        return cliff.FIGURE._replace(name=MAIN)
    if study.compares_settings and study.done["variant"].nunique() > 1:
        return settings.figures(study)[0]._replace(name=MAIN)
    sentence = fixed_workers.sentence if study.shown.schedules(dynamic=False) else of_all
    return StudyFigure(MAIN, "What was learned", (plot_learning, plot_bearing), sentence, section="report")


def plot_learning(study: Study, ax: Axes) -> Axes:
    """Draw the mean score of every schedule over the episodes."""
    plot_score(study, ax, study.schedules())
    ax.set_title(f"Mean score over {study.length}")
    return ax


def of_all(study: Study) -> str:
    """Say where every schedule ends."""
    return of_scores(study, study.schedules())


def plot_bearing(study: Study, ax: Axes) -> Axes:
    """Draw what each schedule has learned at the end against its workers, and where the master saturates."""
    schedules = study.schedules()
    for schedule in schedules:
        (_draw_growth if schedule.dynamic else _draw_fixed)(study, ax, schedule)
    limit = limit_of(study)
    style.worker_axis(ax, sorted({count for schedule in schedules for count in (schedule.start, schedule.end)}))
    style.from_zero(ax)
    if limit:
        draw_limit(ax, limit)
    style.legend(ax)
    ax.set_ylabel(f"final score ({study.score.unit})")
    ax.set_title("What was learned, by number of workers")
    style.note(ax, "dots: runs; markers: IQM of all runs; hollow: dynamic, from start to end")
    return ax


def _draw_fixed(study: Study, ax: Axes, schedule: Schedule) -> None:
    """Draw the runs of a fixed schedule as dots, and all of them as a marker with its interval."""
    values, shown = study.values(schedule, "final_score"), outcomes.estimate(study, schedule)
    shade = style.tone(schedule)
    look: dict[str, Any] = {"color": shade, "zorder": 4}
    jitter = np.exp(np.linspace(-0.05, 0.05, len(values)) if len(values) > 1 else np.zeros(1))
    ax.plot(schedule.end * jitter, values, ".", alpha=0.45, markersize=6, color=shade, zorder=3)
    if np.isfinite(shown.low):
        ax.plot([schedule.end] * 2, [shown.low, shown.high], linewidth=2.2, **look)
    ax.plot(schedule.end, shown.value, style.shape(schedule), markersize=9, markeredgecolor="white",
            markeredgewidth=0.8, linestyle="none", label=named(study, schedule), **look)  # fmt: skip


def _draw_growth(study: Study, ax: Axes, schedule: Schedule) -> None:
    """Draw a dynamic schedule as a line from its start to the number of workers that it came to."""
    height, end = (outcomes.estimate(study, schedule, column).value for column in ("final_score", "workers_max"))
    shade, dashes = style.tone(schedule), style.line(schedule)["linestyle"]
    ax.plot([schedule.start, end], [height, height], style.shape(schedule), linestyle=dashes, linewidth=1.6,
            markersize=8, markevery=[1], markerfacecolor="white", markeredgewidth=1.6, color=shade, zorder=5,
            label=named(study, schedule))  # fmt: skip
