"""Every setting as a point: how soon it comes to a score, and how well it plays in the end; which beat which."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from analysis.data.domination import outlook
from analysis.data.outcomes import reference_score
from analysis.data.stations import varies_topology
from analysis.data.study import Schedule, Study
from analysis.figures import style
from analysis.figures.figure import StudyFigure
from analysis.words import count, duration, listed, number

_ROW_INCHES = 0.2
_NEVER = 1.5  # times the longest time: where settings stand that mostly never came so far


def plot_points(study: Study, ax: Axes) -> Axes:
    """Draw the final score against the time to a score, with intervals; large are those that none beats."""
    part = study.shown
    score, (unit_s, unit) = reference_score(part), part.time_unit
    table = outlook(part, score)
    finite = table.loc[np.isfinite(table["time_s"]), ["time_s", "time_s_high"]].max(axis=1)
    never = _NEVER * float(finite.max()) if len(finite) else unit_s
    rows = table.to_dict("index")
    for schedule in part.schedules():
        _draw(ax, rows[schedule.label], schedule, never, unit_s)
    ax.set_xscale("log")
    style.plain(ax.xaxis)
    style.from_zero(ax)
    ax.axvline(never / 1.2 / unit_s, color=style.WARNING, linewidth=1.2)
    ax.set_xlabel(f"time to {score:g} {study.score.unit} ({unit})")
    ax.set_ylabel(f"final score ({study.score.unit})")
    ax.set_title("How soon, and how well in the end")
    style.note(ax, "lines: 95 % intervals; large: beaten by none; right: mostly never")
    style.legend(ax, "setting")
    return ax


def _draw(ax: Axes, row: Mapping[Any, Any], schedule: Schedule, never: float, unit_s: float) -> None:
    shade, x = style.tone(schedule), min(row["time_s"], never) / unit_s
    lines: dict[str, Any] = {"color": shade, "linewidth": 1.4, "alpha": 0.6}
    ax.plot([x, x], [max(row["final_low"], 0.0), row["final_high"]], **lines)
    if np.isfinite(row["time_s"]):
        ax.plot([row["time_s_low"] / unit_s, row["time_s_high"] / unit_s], [row["final"]] * 2, **lines)
    size = 6 if row["beaten_by"] else 10
    ax.plot(x, row["final"], style.shape(schedule), color=shade, markersize=size, markeredgecolor="white",
            linestyle="none", label=schedule.label, zorder=4)  # fmt: skip


def plot_beaten(study: Study, ax: Axes) -> Axes:
    """Draw the time to a score of each setting, soonest first, with its interval and how many others beat it."""
    part = study.shown
    score, (unit_s, unit) = reference_score(part), part.time_unit
    table = outlook(part, score).sort_values(["time_s", "final"], ascending=[True, False], kind="stable")
    tones = {schedule.label: schedule for schedule in part.schedules()}
    for place, (label, row) in enumerate(table[::-1].iterrows()):
        schedule = tones[str(label)]
        look: dict[str, Any] = {"color": style.tone(schedule)}
        if np.isfinite(row["time_s"]):
            ax.plot([row["time_s_low"] / unit_s, row["time_s_high"] / unit_s], [place] * 2, linewidth=1.6, **look)
            ax.plot(row["time_s"] / unit_s, place, style.shape(schedule), markersize=6, **look)
        words = "beaten by none" if not row["beaten_by"] else f"beaten by {len(row['beaten_by'])}"
        never = row["runs"] - row["reached"]
        words += f"; never: {never} of {row['runs']}" if never else ""
        ax.text(1.01, place, words, transform=ax.get_yaxis_transform(), va="center", fontsize=7, color=style.MUTED)
    style.rows(ax, [str(label) for label in table.index[::-1]], _ROW_INCHES)
    ax.set_xscale("log")
    style.plain(ax.xaxis)
    ax.set_xlabel(f"time to {score:g} {study.score.unit} ({unit})")
    ax.set_title(f"Time to {score:g} {study.score.unit}")
    style.note(ax, "geometric means over runs that came so far; lines: 95 % intervals")
    return ax


def sentence(study: Study) -> str:
    """Name the settings that none beats, with both numbers, and say how many never come to the score."""
    part = study.shown
    score = reference_score(part)
    table = outlook(part, score)
    unbeaten = np.array([not beaten for beaten in table["beaten_by"]])
    best = table[unbeaten & np.isfinite(table["time_s"])].sort_values("time_s")
    said = [
        f"{label} ({duration(row['time_s'])}, {number(row['final'])} {study.score.unit})"
        for label, row in best.iterrows()
    ]
    never = [str(label) for label in table.index[~np.isfinite(table["time_s"])]]
    words = f"In time to {score:g} {study.score.unit} and final score together, none beats {listed(said)}"
    lost = f"; most runs of {listed(never)} never get there" if 0 < len(never) <= 6 else ""
    lost = f"; most runs of {count(len(never), 'setting')} never get there" if len(never) > 6 else lost
    return f"{words}{lost}."


def applies(study: Study) -> bool:
    """Apply to studies that compare settings, topologies among them."""
    return varies_topology(study) and study.compares_settings and study.takes_time


FIGURE = StudyFigure(
    name="domination",
    title="What to pick: how soon, and how well",
    panels=(plot_points, plot_beaten),
    sentence=sentence,
    section="settings",
    applies=applies,
    whole=True,
)
