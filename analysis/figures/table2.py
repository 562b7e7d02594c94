"""Speed-ups by lock-free workers, beside those of the A3C paper's table 2."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.data import speedups
from analysis.data.study import Study
from analysis.figures import style
from analysis.figures.figure import StudyFigure
from analysis.figures.sentences import sentence as as_sentence
from analysis.words import number

_BESIDE = 1.04  # times further right than the setting before: bars that lie on each other can't be read


def plot_time(study: Study, ax: Axes) -> Axes:
    """Draw how many times sooner workers reach a score than one does, and what the paper has."""
    table = _draw(study, ax, "time")
    for order, (_, rows) in enumerate(table.groupby("setting", sort=False)):
        known = rows[rows["paper"].notna()]
        ax.plot(known["workers"], known["paper"], ":", color=style.setting_colour(order), linewidth=1.6)
    ax.set_ylabel("times sooner than one worker")
    ax.set_title("Speed-up in time")
    style.note(ax, "dotted: the A3C paper; grey: as many times as workers; bars: 95 % intervals")
    return ax


def plot_env_steps(study: Study, ax: Axes) -> Axes:
    """Draw how many times fewer env steps workers need than one does."""
    _draw(study, ax, "env_steps")
    ax.set_ylabel("times fewer than one worker")
    ax.set_title("Speed-up in env steps")
    style.note(ax, "grey: as much learned from a step as by one; bars: 95 % intervals")
    return ax


def _draw(study: Study, ax: Axes, name: str) -> pd.DataFrame:
    table = speedups.speedups(study)
    for order, (setting, rows) in enumerate(table.groupby("setting", sort=False)):
        known = rows[rows[name].notna()]
        colour, places = style.setting_colour(order), known["workers"] * _BESIDE**order
        ax.plot(places, known[name], f"{style.marker(order)}-", color=colour, label=str(setting))
        ax.vlines(places, known[f"{name}_low"], known[f"{name}_high"], color=colour, alpha=0.45)
    counts = sorted(set(table["workers"]))
    ax.plot(counts, counts if name == "time" else np.ones(len(counts)), color=style.MUTED, linewidth=1.0, zorder=1)
    style.worker_axis(ax, counts)
    ax.set_yscale("log")
    style.plain(ax.yaxis)
    ax.set_ylim(_range(table, name))
    style.legend(ax, "setting")
    return table


def _range(table: pd.DataFrame, name: str) -> tuple[float, float]:
    """Return the range of all that is drawn, but for intervals that few runs have made wide beyond reason."""
    values = table[name if name == "env_steps" else [name, "paper", "workers"]].to_numpy(float)
    return 0.4 * np.nanmin(values, initial=1.0), 2.5 * np.nanmax(values, initial=1.0)


def sentence(study: Study) -> str:
    """Say for each setting how many times sooner the most workers reach the score, and what the paper has."""
    table = speedups.speedups(study)
    most, mark = int(table["workers"].max()), float(table["reference_score"].iloc[0])
    said = []
    for row in table[table["workers"] == most].to_dict("records"):
        paper = f", in the paper {number(row['paper'])}" if np.isfinite(row["paper"]) else ""
        sooner = f"{number(row['time'])} times as soon" if np.isfinite(row["time"]) else "in too few runs to tell"
        fewer = f" and with {number(1 / row['env_steps'])} times the env steps" if np.isfinite(row["env_steps"]) else ""
        said.append(f"{row['setting']} {sooner}{fewer}{paper}")
    return as_sentence(f"{most} workers reach {study.score.amount(mark)} an episode: {'; '.join(said)}")


FIGURE = StudyFigure(
    name="table2",
    title="Speed-up by lock-free workers",
    panels=(plot_time, plot_env_steps),
    sentence=sentence,
    section="settings",
    applies=speedups.compares_speedups,
    whole=True,
)
