"""The trade-off: learning per episode against speed, and what both together come to, the time to a score."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.data import outcomes
from analysis.data.outcomes import reference_score
from analysis.data.study import Schedule, Study
from analysis.figures import style
from analysis.figures.figure import StudyFigure
from analysis.figures.panels import legend_title, named
from analysis.figures.sentences import names
from analysis.words import count, duration, listed, number

_FAR = 0.6  # of the most: where all are closer together than that, an axis need not begin at 0
_MANY = 1e6  # steps per second: numbers of that many digits do not fit beside each other
_SPEEDS = ["speed", "speed_low", "speed_high"]
_FOR_NEVER = 1.6  # times the longest time: there is room for words at the right
_MOST_RANKED = 4  # schedules that are all named


def plot_frontier(study: Study, ax: Axes) -> Axes:
    """Draw learning per episode against speed, and the schedules that no other beats in both."""
    points = frontier_points(study)
    scale, unit = (1e6, "million ") if points["speed"].max() >= _MANY else (1.0, "")
    points[_SPEEDS] /= scale
    best = points[points["best"]].sort_values("speed", kind="stable")
    ax.plot(best["speed"], best["learning"], color=style.GRID, linewidth=7, zorder=1, solid_capstyle="round")
    numbers = points.to_dict("index")
    for schedule in study.schedules():
        _draw_point(ax, numbers[schedule.label], schedule, named(study, schedule))
    ax.margins(0.12)
    if points["speed"].min() < _FAR * points["speed"].max():
        ax.set_xlim(0, 1.1 * points["speed"].max())
    if points["learning"].min() < _FAR * points["learning"].max():
        ax.set_ylim(bottom=-0.06 * ax.get_ylim()[1])
    ax.set_xlabel(f"speed ({unit}environment steps per second)")
    ax.set_ylabel("mean score, all episodes")
    style.plain(ax.xaxis)
    ax.set_title("Learning efficiency against speed")
    style.note(ax, "grey: schedules that no other beats in both; hollow: dynamic")
    style.legend(ax, legend_title(study))
    return ax


def _draw_point(ax: Axes, point: Mapping[Any, float], schedule: Schedule, label: str) -> None:
    """Draw a schedule's point with its intervals."""
    shade = style.tone(schedule)
    if np.isfinite(point["learning_low"]):
        ax.plot([point["speed"]] * 2, [point["learning_low"], point["learning_high"]], color=shade, linewidth=1.6)
        ax.plot([point["speed_low"], point["speed_high"]], [point["learning"]] * 2, color=shade, linewidth=1.6)
    face = "white" if schedule.dynamic else shade
    ax.plot(point["speed"], point["learning"], style.shape(schedule), markersize=9, markerfacecolor=face,
            markeredgecolor=shade, markeredgewidth=1.6, zorder=4, label=label)  # fmt: skip


def frontier_points(study: Study) -> pd.DataFrame:
    """Return one row per schedule: speed and learning with their intervals, and whether no other beats it in both."""
    rows = {}
    for schedule in study.schedules():
        speed, learning = (outcomes.estimate(study, schedule, column) for column in ("steps_per_s", "mean_score"))
        rows[schedule.label] = (*speed[:3], *learning[:3], learning.runs)
    names = [*_SPEEDS, "learning", "learning_low", "learning_high", "runs"]
    points = pd.DataFrame.from_dict(rows, orient="index", columns=names)
    values = points[["speed", "learning"]].to_numpy(float)
    beaten = [((values >= point).all(axis=1) & (values > point).any(axis=1)).any() for point in values]
    points["best"] = [not lost for lost in beaten]
    return points


def plot_time_to_score(study: Study, ax: Axes) -> Axes:
    """Draw when each run reached the reference score; runs that never did stand at the right edge."""
    score, (unit_s, unit) = reference_score(study), study.time_unit
    schedules = study.schedules()[::-1]
    times = [study.values(schedule, f"time_to_{score:g}_s").to_numpy(float) / unit_s for schedule in schedules]
    longest = max((float(t[np.isfinite(t)].max()) for t in times if np.isfinite(t).any()), default=1.0)
    never = any(np.isinf(hours).any() for hours in times)
    edge = longest * (_FOR_NEVER if never else 1.1)
    for place, (schedule, hours) in enumerate(zip(schedules, times, strict=True)):
        _draw_times(ax, place, schedule, hours, edge)
    style.rows(ax, [schedule.label for schedule in schedules])
    ax.set_xlim(0, edge)
    ax.set_xlabel(f"time ({unit})")
    ax.set_title(f"Time to a mean score of {score:g}")
    style.note(ax, "markers: runs; bar: median" + ("; right: runs that never reached it" if never else ""))
    return ax


def _draw_times(ax: Axes, place: int, schedule: Schedule, hours: np.ndarray, edge: float) -> None:
    reached = hours[np.isfinite(hours)]
    shade = style.tone(schedule)
    ax.plot(reached, np.full(len(reached), place), style.shape(schedule), color=shade, alpha=0.6, markersize=7)
    if len(reached) > len(hours) / 2:
        ax.plot([np.median(hours)] * 2, [place - 0.28, place + 0.28], color=shade, linewidth=3)
    if len(reached) < len(hours):
        text = f"never: {len(hours) - len(reached)} of {len(hours)}"
        ax.text(0.99 * edge, place, text, ha="right", va="center", fontsize=9, color=style.WARNING)


def sentence(study: Study) -> str:
    """Read the frontier and the time to a score."""
    return f"{_of_frontier(study)} {_of_time_to_score(study)}"


def _of_frontier(study: Study) -> str:
    """Name the schedules that no other beats in both, from slow to fast, with the numbers of both ends."""
    points = frontier_points(study)
    best = points[points["best"]].sort_values("speed", kind="stable")
    ends = best.iloc[[0, -1]] if len(best) > 1 else best
    said = [f"{number(end.learning)} {study.score.unit} at {number(end.speed)} steps/s" for _, end in ends.iterrows()]
    return f"No other schedule beats {listed(best.index)} in both learning and speed: {' to '.join(said)}."


def _of_time_to_score(study: Study) -> str:
    """Say how many runs reached the score, and when: the earliest first, then those that never did."""
    score = reference_score(study)
    times = {s: study.values(s, f"time_to_{score:g}_s").to_numpy(float) for s in study.schedules()}
    never = [schedule for schedule in times if not np.isfinite(times[schedule]).any()]
    reached = [(float(np.median(times[s])), _when(s, times[s])) for s in times if s not in never]
    ranked = [words for _, words in sorted(reached)]
    if len(ranked) > _MOST_RANKED:
        ranked = [f"first {ranked[0]}", f"last {ranked[-1]}"]
    parts = [listed(ranked)] if ranked else []
    parts += [f"by no run of {names(never)}"] if never else []
    return f"A mean score of {score:g} is reached {'; '.join(parts)} (median times)."


def _when(schedule: Schedule, times: np.ndarray) -> str:
    """Say how many of a schedule's runs reached the score, and when, if most did."""
    hits = int(np.isfinite(times).sum())
    after = f" after {duration(float(np.median(times)))}" if hits > len(times) / 2 else ""
    return f"by {schedule.title}{after} ({hits} of {count(len(times), 'run')})"


FIGURE = StudyFigure(
    name="frontier",
    title="Learning efficiency and speed",
    panels=(plot_frontier, plot_time_to_score),
    sentence=sentence,
    section="tradeoff",
    applies=lambda study: study.takes_time,
)
