"""Who is at work and who waits in each topology, and where its staleness comes from."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.data.stations import ORIGINS, ROLES, side_by_side, varies_topology
from analysis.data.study import Study
from analysis.figures import style
from analysis.figures.figure import StudyFigure
from analysis.words import listed, number, percent

_ROW_INCHES = 0.25  # for up to four bars


def stations(study: Study) -> pd.DataFrame:
    """Return a row for each setting: shares of time at work (ROLES), parts of staleness (ORIGINS); medians of runs."""
    part = side_by_side(study)
    columns = [name for name in (*ROLES, *ORIGINS) if name in part.done]
    table = part.done.groupby("schedule", sort=False)[columns].median()
    return table.reindex([schedule.label for schedule in part.schedules()])


def plot_at_work(study: Study, ax: Axes) -> Axes:
    """Draw the share of their time that workers, predictors, learners and master are at work, by setting."""
    table = stations(study)
    shown = [name for name in ROLES if name in table and table[name].notna().any()]
    rows = np.arange(len(table))[::-1]
    for place, name in enumerate(shown):
        look: Any = {"color": style.setting_colour(place), "height": 0.8 / len(shown), "label": _role(name)}
        ax.barh(rows + 0.4 - (place + 0.5) * 0.8 / len(shown), table[name].fillna(0.0), **look)
    style.rows(ax, [str(label) for label in table.index[::-1]], _ROW_INCHES)
    ax.set_xlim(0, 1.02)
    ax.set_xlabel("share of their time")
    ax.set_title("Who is at work")
    style.note(ax, f"whole runs, {_workers(study)} workers; the rest is waiting")
    style.legend_of_parts(ax)
    return ax


def _role(name: str) -> str:
    return "master, servers, trainers" if name == "server_busy" else ROLES[name]


def plot_origins(study: Study, ax: Axes) -> Axes:
    """Draw which part of the mean staleness came of what, by setting, and how large it is."""
    table = stations(study)
    rows, total = np.arange(len(table))[::-1], table[list(ORIGINS)].sum(axis=1)
    left = np.zeros(len(table))
    for place, (name, words) in enumerate(ORIGINS.items()):
        share = (table[name] / total.where(total > 0)).fillna(0.0).to_numpy(float)
        ax.barh(rows, share, left=left, height=0.7, color=style.setting_colour(place), label=words)
        left += share
    for row, stale in zip(rows, total, strict=True):
        ax.text(1.02, row, number(round(stale, 1)), va="center", fontsize=8)
    style.rows(ax, [str(label) for label in table.index[::-1]], _ROW_INCHES)
    ax.set_xlim(0, 1.15)
    ax.set_xlabel("share of the mean staleness")
    ax.set_title("Where staleness comes from")
    style.note(ax, "updates by others while …; right: mean staleness in updates")
    style.legend_of_parts(ax)
    return ax


def _workers(study: Study) -> str:
    return listed(str(count) for count in sorted(set(side_by_side(study).done["end"])))


def sentence(study: Study) -> str:
    """Say whose workers wait most and least, and where gradients are oldest, and why."""
    table = stations(study)
    work_of = {str(name): float(share) for name, share in table["worker_busy"].items()}
    busiest, idlest = max(work_of, key=lambda name: work_of[name]), min(work_of, key=lambda name: work_of[name])
    parts: dict[str, dict[str, float]] = table[list(ORIGINS)].to_dict("index")  # type: ignore[assignment]
    total = {name: sum(each.values()) for name, each in parts.items()}
    oldest = max(total, key=lambda name: total[name])
    cause = max(parts[oldest], key=lambda name: parts[oldest][name])
    work = f"Workers are at work {percent(work_of[busiest])} of their time in {busiest}"
    work += f" and {percent(work_of[idlest])} in {idlest}"
    return f"{work}; gradients are oldest in {oldest} ({number(total[oldest])} updates), mostly while {ORIGINS[cause]}."


FIGURE = StudyFigure(
    name="stations",
    title="Who is at work, who waits, and where staleness comes from",
    panels=(plot_at_work, plot_origins),
    sentence=sentence,
    section="why",
    applies=lambda study: varies_topology(study) and study.takes_time,
    whole=True,
)
