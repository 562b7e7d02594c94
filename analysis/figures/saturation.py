"""From which number of workers on the master has no idle moment: predicted before the runs, and observed in them."""

import numpy as np
from matplotlib.axes import Axes

from analysis.data.capacity import limit_of
from analysis.data.study import Schedule, Study
from analysis.figures import sentences, style
from analysis.figures.figure import StudyFigure
from analysis.figures.panels import draw_runs
from analysis.words import duration, percent

_SATURATED = 0.98  # of its time busy: the first and the last moments of a run are always idle
_CROWDED = 1.1  # times the cost of an update: slower than this is more than noise


def plot_saturation(study: Study, ax: Axes) -> Axes:
    """Draw how busy the master is at the start against the number of workers: predicted line, observed runs."""
    draw_runs(study, ax, "utilisation_start")
    limit = limit_of(study)
    if limit:
        workers = np.geomspace(*ax.get_xlim(), 200)
        _draw_prediction(ax, workers, np.minimum(1.0, workers / limit.workers), f"predicted: N / {limit.name}")
    ax.set_ylim(0, 1.08)
    ax.set_ylabel("share of time busy")
    ax.set_title("How busy the master is at the start")
    style.note(ax, "first tenth of the run; every marker is a run")
    return ax


def plot_throughput(study: Study, ax: Axes) -> Axes:
    """Draw updates per second at the start against the number of workers: predicted line, observed runs."""
    draw_runs(study, ax, "updates_per_s_start")
    limit = limit_of(study)
    if limit:
        workers = np.geomspace(*ax.get_xlim(), 200)
        rate = np.minimum(workers / limit.workers, 1.0) / limit.service_s
        _draw_prediction(ax, workers, rate, f"predicted: min(N / {limit.name}, 1) / S")
    ax.set_ylim(0, 1.15 * ax.get_ylim()[1])
    style.plain(ax.yaxis)
    ax.set_ylabel("updates per second")
    ax.set_title("What the master gets done at the start")
    style.note(ax, "first tenth of the run; every marker is a run")
    return ax


def _draw_prediction(ax: Axes, workers: np.ndarray, predicted: np.ndarray, words: str) -> None:
    ax.plot(workers, predicted, color=style.MUTED, linewidth=1.6, zorder=2, label=words)
    style.legend_of_parts(ax)


def sentence(study: Study) -> str:
    """Compare the predicted saturation with where the master is seen to saturate."""
    limit = limit_of(study)
    busy = {s: study.estimate(s, "utilisation_start").value for s in study.schedules(dynamic=False)}
    idle = [schedule for schedule in busy if busy[schedule] < _SATURATED]
    saturated = [schedule for schedule in busy if busy[schedule] >= _SATURATED]
    if not idle and not saturated:
        return "Nothing takes any time here, so that the master is never seen to be busy."
    observed = f"the master is seen to saturate {_where(idle, saturated, busy)}"
    if limit is None:
        return sentences.sentence(observed)
    predicted = {schedule: min(1.0, schedule.end / limit.workers) for schedule in busy}
    furthest = max(busy, key=lambda schedule: abs(busy[schedule] - predicted[schedule]))
    apart = (
        f"The largest difference is with {furthest.title}: {percent(busy[furthest])} busy in the first tenth, "
        f"{percent(predicted[furthest])} predicted for an agent that never learns"
    )
    known = f"Before the runs, {limit.costs}, so {limit.words}"
    return f"{known}; {observed}. {apart}.{_crowding(study, limit.service_s)}"


def _where(idle: list[Schedule], saturated: list[Schedule], busy: dict[Schedule, float]) -> str:
    """Say between which worker counts the master became saturated."""
    if idle and saturated:
        return f"between {idle[-1].end} ({percent(busy[idle[-1]])} busy) and {saturated[0].end} workers"
    return f"at or below {saturated[0].end} workers" if saturated else f"with none of up to {idle[-1].end} workers"


def _crowding(study: Study, expected_s: float) -> str:
    """Say where more processes than cores slow the master itself."""
    service_s = {s: study.estimate(s, "service_s_start").value for s in study.schedules(dynamic=False)}
    worst = max(service_s, key=lambda s: service_s[s], default=None)
    if worst is None or not service_s[worst] > _CROWDED * expected_s:
        return ""
    slow = duration(service_s[worst])
    return f" With {worst.title} there are more processes than cores, and an update takes {slow}."


def applies(study: Study) -> bool:
    """Apply to studies of worker counts, with some that stay fixed."""
    return bool(study.schedules(dynamic=False)) and not study.schedules_are_settings


FIGURE = StudyFigure(
    name="saturation",
    title="Saturation, predicted and observed",
    panels=(plot_saturation, plot_throughput),
    sentence=sentence,
    section="why",
    applies=applies,
)
