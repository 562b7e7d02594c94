"""Why it collapses: the work that arrives at the master against what it can do, and the gradients that wait."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.data import metrics
from analysis.data.study import Schedule, Study
from analysis.figures import sentences, style
from analysis.figures.figure import StudyFigure
from analysis.figures.panels import draw_over, legend_title
from analysis.words import duration, number, percent

_SEEN = 0.01  # of the axis: lines closer together than that are one


def plot_load(study: Study, ax: Axes) -> Axes:
    """Draw the work that arrives at the master, as a share of what it can do."""
    draw_over(study, ax, study.schedules(), _smooth_load)
    style.make_logarithmic(ax)
    ax.axhline(1.0, color=style.WARNING, linewidth=1.2)
    style.plain(ax.yaxis)
    ax.text(0.99, 0.93, "all that the master can do", transform=ax.get_yaxis_transform(), ha="right", va="top",
            fontsize=8.5, color=style.WARNING, path_effects=style.HALO, zorder=6)  # fmt: skip
    ax.set_ylabel("arriving work / capacity")
    ax.set_title("Arrivals against the master's capacity")
    return ax


def _smooth_load(curve: pd.DataFrame) -> np.ndarray:
    load = pd.Series(metrics.offered_load(curve))
    return load.rolling(3, min_periods=1, center=True).mean().to_numpy()


def plot_backlog(study: Study, ax: Axes) -> Axes:
    """Draw gradients sent and applied over time, for one run of each fixed count that overloads the master."""
    waits = [_draw_backlog(study, ax, schedule) for schedule in backlogged(study)]
    ax.set_xlim(left=0)
    style.from_zero(ax)
    ax.set_xlabel(f"time ({study.time_unit[1]})")
    ax.set_ylabel("gradients (thousands)")
    ax.set_title("Gradients sent and applied")
    seen = "dotted: sent; solid: applied; shaded: gradients that wait"
    style.note(ax, f"one run each; {seen if max(waits) > _SEEN else 'sent and applied are one line: none waits'}")
    style.legend(ax, legend_title(study))
    return ax


def _draw_backlog(study: Study, ax: Axes, schedule: Schedule) -> float:
    """Draw when the first run's gradients were sent and when applied; return the longest wait, as a share of all."""
    curve = next(study.each_curve(schedule))
    done = _from_zero(curve["updates"]) / 1e3
    sent, applied = (_from_zero(curve[name]) / study.time_unit[0] for name in ("arrived_s", "clock_s"))
    look = style.line(schedule)
    ax.fill_betweenx(done, sent, applied, color=look["color"], alpha=0.16, linewidth=0)
    ax.plot(sent, done, linewidth=1.4, linestyle="dotted", color=look["color"])
    ax.plot(applied, done, **{**look, "linestyle": "solid"})
    return float((applied - sent).max() / applied.max()) if applied.max() else 0.0


def _from_zero(values: pd.Series) -> np.ndarray:
    return np.concatenate([[0.0], values.to_numpy(float)])


def backlogged(study: Study) -> list[Schedule]:
    """Return the fixed schedules whose queue outgrew the master, or the largest if none did."""
    fixed = study.schedules(dynamic=False)
    behind = [s for s in fixed if study.values(s, "queue_peak").median() > metrics.BACKLOG * s.end]
    return behind or fixed[-1:]


def sentence(study: Study) -> str:
    """Say how much arrives, and how long the last gradient waited."""
    return f"{_of_load(study)} {_of_backlog(study)}"


def _of_load(study: Study) -> str:
    """Say what arrives at the master at the start, and whether longer episodes relieve it."""
    fixed = study.schedules(dynamic=False)
    start = {schedule: study.estimate(schedule, "load_start").value for schedule in fixed}
    said = f"At the start the work that arrives is {sentences.each(start, _times)} of what the master can do."
    bearable = [schedule for schedule in fixed if start[schedule] <= 1]
    if not bearable:
        return said
    largest = bearable[-1]
    before, after = percent(start[largest]), percent(study.estimate(largest, "load_end").value)
    return f"{said} As episodes grow longer, the load of {largest.title} goes from {before} to {after}."


def _times(load: float) -> str:
    return f"{number(load)} times" if load > 1 else percent(load)


def _of_backlog(study: Study) -> str:
    """Say how long the last gradient waited."""
    waits = []
    for schedule in backlogged(study):
        last = next(study.each_curve(schedule)).iloc[-1]
        wait = duration(float(last["clock_s"] - last["arrived_s"]))
        waits.append(f"with {schedule.title} the last gradient waits {wait}")
    return sentences.sentence("; ".join(waits))


def applies(study: Study) -> bool:
    """Apply where there are fixed worker counts: their load changes only because episodes do."""
    return bool(study.schedules(dynamic=False))


FIGURE = StudyFigure(
    name="arrivals",
    title="Arrivals against the master's capacity",
    panels=(plot_load, plot_backlog),
    sentence=sentence,
    section="why",
    applies=applies,
)
