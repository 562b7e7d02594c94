"""The report's figures 2 to 4: each dynamic schedule, its rules together, against all fixed ones."""

from collections.abc import Sequence
from functools import partial

from matplotlib.axes import Axes

from analysis.data import statistics
from analysis.data.outcomes import control_of, mostly_collapsed
from analysis.data.study import Schedule, Study
from analysis.figures.figure import StudyFigure
from analysis.figures.panels import plot_score, plot_time
from analysis.figures.sentences import grouped, names, of_scores, sentence
from analysis.words import apart, duration, with_interval

REPORT_FIGURES = {(6, 12): 2, (10, 20): 3, (10, 32): 4}  # (start, end) of a dynamic schedule -> the report's figure


def plot_dynamic_score(study: Study, ax: Axes, dynamic: Sequence[Schedule]) -> Axes:
    """Draw the score of a dynamic schedule against all fixed ones."""
    plot_score(study, ax, [*study.schedules(dynamic=False), *dynamic])
    ax.set_title(f"{dynamic[0].span} against fixed workers: score")
    return ax


def plot_dynamic_time(study: Study, ax: Axes, dynamic: Sequence[Schedule]) -> Axes:
    """Draw the time spent by a dynamic schedule against all fixed ones."""
    plot_time(study, ax, [*study.schedules(dynamic=False), *dynamic])
    ax.set_title(f"{dynamic[0].span} against fixed workers: time")
    return ax


def of_dynamic(study: Study, dynamic: Sequence[Schedule]) -> str:
    """Compare a dynamic schedule with its control, the fixed schedule nearest to its start."""
    said: dict[str, list[str]] = {}
    for schedule in dynamic:
        control = control_of(study, schedule)
        if control is None:
            return of_scores(study, dynamic)
        said.setdefault(_compared(study, schedule, control), []).append(schedule.title)
    return grouped(said) + _beware(study)


def _compared(study: Study, schedule: Schedule, control: Schedule) -> str:
    """Say how long a schedule took, and how it ended, beside its control."""
    time = duration(study.estimate(schedule, "clock_s").value)
    faster = with_interval(statistics.paired_ratio(*study.paired(control, schedule, "clock_s")))
    better = statistics.paired_difference(*study.paired(schedule, control, "final_score"))
    return (
        f"took {time} for {study.planned_episodes:,} episodes, {faster} times as fast as {control.title}, "
        f"and ended {apart(better, study.score.unit)}"
    )


def _beware(study: Study) -> str:
    """Warn of fixed schedules that collapsed: who dies early has soon played as many episodes."""
    collapsed = [schedule for schedule in study.schedules(dynamic=False) if mostly_collapsed(study, schedule)]
    return f" {sentence(names(collapsed) + ' look fast only because their birds die early')}" if collapsed else ""


def figures(study: Study) -> list[StudyFigure]:
    """Return a figure for each dynamic schedule of a study of worker counts, numbered as in the report."""
    shown = study.shown
    if shown.schedules_are_settings:
        return []
    spans: dict[str, list[Schedule]] = {}
    for schedule in shown.schedules(dynamic=True):
        spans.setdefault(schedule.span, []).append(schedule)
    return sorted((_figure(span, rules) for span, rules in spans.items()), key=lambda figure: figure.name)


def _figure(span: str, rules: list[Schedule]) -> StudyFigure:
    """Return the figure of a worker count with all its rules."""
    number = None if rules[0].adaptive else REPORT_FIGURES.get((rules[0].start, rules[0].end))
    name, title = span.replace("→", "to"), f"{span} against fixed workers"
    return StudyFigure(
        name=f"{number}_{name}" if number else f"dynamic_{name}",
        title=f"Figure {number}: {title}" if number else title,
        panels=tuple(partial(panel, dynamic=rules) for panel in (plot_dynamic_score, plot_dynamic_time)),
        sentence=partial(of_dynamic, dynamic=rules),
        section="report",
    )
