"""The report's figure 1: score and time over the episodes, by number of fixed workers."""

from matplotlib.axes import Axes

from analysis.data.study import Study
from analysis.figures.figure import StudyFigure
from analysis.figures.panels import plot_score, plot_time
from analysis.figures.sentences import of_scores


def plot_fixed_score(study: Study, ax: Axes) -> Axes:
    """Draw the mean score over the episodes, by number of fixed workers."""
    plot_score(study, ax, study.schedules(dynamic=False))
    ax.set_title(f"Mean score over {study.length}")
    return ax


def plot_fixed_time(study: Study, ax: Axes) -> Axes:
    """Draw the time spent over the episodes, by number of fixed workers."""
    plot_time(study, ax, study.schedules(dynamic=False))
    ax.set_title(f"Time spent over {study.length}")
    return ax


def sentence(study: Study) -> str:
    """Say where each number of fixed workers ends."""
    return of_scores(study, study.schedules(dynamic=False))


def applies(study: Study) -> bool:
    """Apply to studies of worker counts; one of settings has a figure for those."""
    return bool(study.schedules(dynamic=False)) and not study.schedules_are_settings


FIGURE = StudyFigure(
    name="1_fixed_workers",
    title="Figure 1: fixed numbers of workers",
    panels=(plot_fixed_score, plot_fixed_time),
    sentence=sentence,
    section="report",
    applies=applies,
)
