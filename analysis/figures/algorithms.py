"""Algorithms compared: how many workers each bears, and what it makes of steps, episodes, updates and time."""

from functools import lru_cache, partial

import pandas as pd
from matplotlib.axes import Axes

from analysis.data import algorithms, curves
from analysis.data.algorithms import compares_algorithms
from analysis.data.study import Study
from analysis.figures import style
from analysis.figures.figure import StudyFigure
from analysis.figures.panels import axis_of
from analysis.figures.sentences import sentence as as_sentence
from analysis.words import listed, number

_QUEUES = {"unbounded": "the report's exchange", "bounded": "a bounded queue", "dropping": "a dropping queue"}
_TITLES = {"env_steps": "steps", "episodes": "episodes", "updates": "updates", "clock_s": "time"}


def plot_bearing(study: Study, ax: Axes, place: int) -> Axes:
    """Draw the final score over workers, a line for each algorithm, and the limit of its master."""
    queue = algorithms.queues(study)[place]
    table = algorithms.comparison(study)
    table = table[table["queue"] == queue]
    for order, (algorithm, rows) in enumerate(table.groupby("algorithm", sort=False)):
        _draw(ax, str(algorithm), rows, style.setting_colour(order), style.marker(order))
    style.worker_axis(ax, sorted(set(table["workers"])))
    style.from_zero(ax)
    ax.set_ylabel(f"final score ({study.score.unit})")
    ax.set_title(f"What was learned, with {_QUEUES.get(queue, queue)}")
    style.note(ax, "IQM of all runs; lines: 95 % interval; dashed: limit known before the runs")
    style.legend(ax, "algorithm")
    return ax


def _draw(ax: Axes, algorithm: str, rows: pd.DataFrame, colour: str, marker: str) -> None:
    ax.plot(rows["workers"], rows["final_score"], f"{marker}-", color=colour, label=algorithm, markersize=6)
    low = rows["final_score_low"].clip(lower=0.0)
    ax.vlines(rows["workers"], low, rows["final_score_high"], color=colour, linewidth=1.4, alpha=0.45)
    if "limit" in rows and rows["limit"].notna().all():
        ax.axvline(float(rows["limit"].iloc[0]), color=colour, linestyle="dashed", linewidth=1.1, alpha=0.8)


def plot_axis(study: Study, ax: Axes, axis: str) -> Axes:
    """Draw the score of every algorithm over env steps, episodes, updates or time, at one number of workers."""
    scale, label = axis_of(study, axis)
    queue = algorithms.queues(study)[-1]
    workers = ""
    for order, (algorithm, part) in enumerate(algorithms.parts(study, queue)):
        schedule = algorithms.usual(part)
        if schedule is not None:
            workers = schedule.title
            band = curves.over(part, schedule, "score", axis)
            style.draw_band(ax, band, schedule._replace(tint=order, label=algorithm), order, scale)
    ax.set_xlabel(label)
    ax.set_xlim(left=0)
    style.from_zero(ax)
    ax.set_ylabel(f"mean score ({study.score.unit})")
    ax.set_title(f"Score against {_TITLES[axis]}")
    style.note(ax, f"{workers}, {_QUEUES.get(queue, queue)}; IQM of all runs, shaded: their range or 95 % interval")
    style.legend(ax, "algorithm")
    return ax


def sentence(study: Study) -> str:
    """Say how many workers each algorithm's master was to bear, and up to how many most runs learn."""
    table = algorithms.comparison(study)
    said = []
    for algorithm, rows in table[table["queue"] == algorithms.queues(study)[0]].groupby("algorithm", sort=False):
        fine = rows[rows["learned"] > 0.5 * rows["runs"]]["workers"]
        upto = f"learns with {listed(map(str, fine))} workers" if len(fine) else "learns with none of the counts"
        known = f" ({number(float(rows['limit'].iloc[0]))} were known to be the limit)" if "limit" in rows else ""
        said.append(f"{algorithm} {upto}{known}")
    return as_sentence(f"with {_QUEUES.get(algorithms.queues(study)[0], 'the first queue')} {'; '.join(said)}")


def sentence_of_axes(study: Study) -> str:
    """Say which algorithm needs the least of everything to a score."""
    table, workers = algorithms.comparison(study), 0
    for _, part in algorithms.parts(study, algorithms.queues(study)[-1]):
        schedule = algorithms.usual(part)
        workers = schedule.end if schedule is not None else workers
    rows = table[(table["queue"] == algorithms.queues(study)[-1]) & (table["workers"] == workers)]
    mark = f"{study.score.amount(float(table['reference_score'].iloc[0]))} an episode with {workers} workers"
    names = {"to_env_steps": "env steps", "to_episodes": "episodes", "to_s": "seconds"}
    order = {name: rows.sort_values(column)["algorithm"].tolist() for column, name in names.items()}
    told = [f"{first} in {name}" for name, (first, *_) in order.items()]
    return as_sentence(f"to {mark} the fewest are needed by {listed(told)}")


@lru_cache(maxsize=16)  # the same panels for whoever asks, so that none is drawn twice
def figures(study: Study) -> list[StudyFigure]:
    """Return the two figures, where algorithms are compared."""
    if not compares_algorithms(study):
        return []
    bearing = tuple(partial(plot_bearing, place=place) for place in range(len(algorithms.queues(study))))
    axes = tuple(partial(plot_axis, axis=axis) for axis in _TITLES if study.takes_time or axis != "clock_s")
    figure = StudyFigure(
        "algorithms", "How many workers each algorithm bears", bearing, sentence, "settings", whole=True
    )
    title = "What each algorithm makes of what"
    return [figure, figure._replace(name="algorithm_axes", title=title, panels=axes, sentence=sentence_of_axes)]
