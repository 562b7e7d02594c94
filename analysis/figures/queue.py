"""Why it collapses: the gradients that wait for the master, and how old they are when their turn comes."""

from collections.abc import Callable

from matplotlib.axes import Axes

from analysis.data.study import Schedule, Study
from analysis.figures import style
from analysis.figures.figure import StudyFigure
from analysis.figures.panels import draw_over
from analysis.figures.sentences import each
from analysis.words import number


def plot_queue(study: Study, ax: Axes) -> Axes:
    """Draw the gradients that wait for the master."""
    _draw_counts(study, ax, "queue")
    ax.set_ylabel("gradients waiting")
    ax.set_title("Gradients in the queue")
    return ax


def plot_staleness(study: Study, ax: Axes) -> Axes:
    """Draw the updates that were applied between a gradient's pull and its turn."""
    _draw_counts(study, ax, "staleness")
    ax.set_ylabel("staleness (updates)")
    ax.set_title("Staleness of the gradients applied")
    return ax


def _draw_counts(study: Study, ax: Axes, column: str) -> None:
    """Draw counts from 0 to tens of thousands: linear up to 1, logarithmic above."""
    draw_over(study, ax, study.schedules(), column)
    ax.set_yscale("symlog", linthresh=1.0)
    style.plain(ax.yaxis)
    ax.set_ylim(-0.06, 1.3 * ax.get_ylim()[1])  # so that lines at 0 and at the top are seen


def sentence(study: Study) -> str:
    """Say how long the queue got, and how old gradients are when they are applied."""
    return f"{_of_queue(study)} {_of_staleness(study)}"


def _of_queue(study: Study) -> str:
    peaks = {schedule: float(study.values(schedule, "queue_peak").median()) for schedule in study.schedules()}
    said = _fixed_and_dynamic(peaks, lambda peak: f"{peak:,.0f}")
    return f"At its longest the queue holds {said} (medians over runs)."


def _of_staleness(study: Study) -> str:
    ages = {schedule: study.estimate(schedule, "staleness_mean").value for schedule in study.schedules()}
    said = _fixed_and_dynamic(ages, number)
    return f"Between a gradient's pull and its turn the master applies other updates: on average {said}."


def _fixed_and_dynamic(values: dict[Schedule, float], show: Callable[[float], str]) -> str:
    """Return the values of fixed schedules, then the most of the dynamic ones."""
    fixed = {schedule: value for schedule, value in values.items() if not schedule.dynamic}
    dynamic = {schedule: value for schedule, value in values.items() if schedule.dynamic}
    if len(dynamic) <= 1 or not fixed:
        return each(values, show)
    most = max(dynamic, key=lambda s: dynamic[s])
    return f"{each(fixed, show)}; of the dynamic schedules, at most {show(dynamic[most])} with {most.title}"


FIGURE = StudyFigure(
    name="queue",
    title="The queue and staleness",
    panels=(plot_queue, plot_staleness),
    sentence=sentence,
    section="why",
)
