"""Real processes beside their twins in virtual time: how the queue and staleness go over time on either clock."""

from functools import partial
from typing import Any

from matplotlib.axes import Axes

from analysis.data import curves
from analysis.data.study import Schedule, Study
from analysis.figures import style
from analysis.figures.figure import StudyFigure
from analysis.words import number, percent

_LABELS = {"queue": "gradients waiting", "staleness": "staleness (updates)"}
_TITLES = {"queue": "The queue over time, real and virtual", "staleness": "Staleness over time, real and virtual"}
_VIRTUAL: dict[str, Any] = {"linestyle": (0, (1.0, 1.4)), "linewidth": 1.8, "marker": "", "label": None}


def halves(study: Study) -> tuple[Study, Study] | None:
    """Return the (real, virtual) parts of a study with settings of both kinds, or None."""
    done = study.done
    virtual = done.loc[done["runtime"] == "simulate", "variant"]
    real = done.loc[done["runtime"] != "simulate", "variant"]
    if not len(virtual) or not len(real) or virtual.iloc[0] == real.iloc[0]:
        return None
    return study.of_variant(real.iloc[0]), study.of_variant(virtual.iloc[0])


def twins(study: Study) -> list[Schedule]:
    """Return the schedules that were run on both clocks."""
    if (parts := halves(study)) is None:
        return []
    real, virtual = parts
    labels = {schedule.label for schedule in virtual.schedules()}
    return [schedule for schedule in real.schedules() if schedule.label in labels]


def plot_twins(study: Study, ax: Axes, column: str) -> Axes:
    """Draw a column over time: real runs as lines with markers, their virtual twins dotted in the same colour."""
    parts = halves(study)
    assert parts is not None
    for order, schedule in enumerate(twins(study)):
        real, virtual = (curves.over(part, schedule, column, "clock_s") for part in parts)
        ax.plot(real.x, real.middle, **{**style.line(schedule, order), "linestyle": "solid", "linewidth": 1.2})
        ax.plot(virtual.x, virtual.middle, color=style.tone(schedule), **_VIRTUAL)
    ax.set_xscale("log")  # few workers take many times as long as many
    style.plain(ax.xaxis)
    ax.set_yscale("symlog", linthresh=1.0)
    style.plain(ax.yaxis)
    ax.set_ylim(bottom=-0.06)  # so that a line at 0 is seen
    ax.set(xlabel="time (seconds)", ylabel=_LABELS[column], title=_TITLES[column])
    style.note(ax, "with markers: real processes; dotted: virtual time")
    style.legend(ax)
    return ax


def sentence(study: Study) -> str:
    """Say how far mean staleness and the longest queue of real runs are from those of their twins."""
    return f"{_of(study, 'staleness_mean', 'Mean staleness')} {_of(study, 'queue_peak', 'The longest queue')}"


def _of(study: Study, column: str, name: str) -> str:
    parts = halves(study)
    assert parts is not None
    schedules = twins(study)
    pairs = {s: tuple(part.estimate(s, column).value for part in parts) for s in schedules}
    off = {s: abs(real - virtual) / max(virtual, 1.0) for s, (real, virtual) in pairs.items()}
    worst = max(off, key=lambda s: off[s])
    real, virtual = map(number, pairs[worst])
    all_of = f"all {len(schedules)} schedules" if len(schedules) > 1 else "the one schedule"
    most = f"most with {worst.title}, {real} against {virtual}"
    return f"{name} with real processes is within {percent(off[worst])} of that in virtual time in {all_of} ({most})."


def applies(study: Study) -> bool:
    """Apply where the same schedules were run by real processes and in virtual time."""
    return study.takes_time and bool(twins(study))


FIGURE = StudyFigure(
    name="twins",
    title="Real processes and their twins in virtual time",
    panels=tuple(partial(plot_twins, column=column) for column in ("queue", "staleness")),
    sentence=sentence,
    section="why",
    applies=applies,
    whole=True,
)
