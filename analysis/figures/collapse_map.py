"""Which combinations of workers and update cost collapse, against the line N* = (C + S) / S."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from analysis.data.study import Study
from analysis.figures import style
from analysis.figures.figure import StudyFigure

_FATE = LinearSegmentedColormap.from_list("fate", ["#dbe7f3", style.WARNING])


def collapse_map(study: Study) -> pd.DataFrame:
    """Return one row per fixed worker count and cost of an update: the share of runs that collapsed, C and S."""
    rows = study.done[~study.done["dynamic"]]
    groups = rows.groupby(["end", "update_s"])
    table = groups.agg(
        collapsed=("collapsed", "mean"), runs=("collapsed", "size"), final_score=("final_score", "median")
    )
    return table.assign(service_s=groups["service_s"].median(), cycle_s=groups["cycle_s_start"].median()).reset_index()


def plot_collapse_map(study: Study, ax: Axes) -> Axes:
    """Draw which combinations of workers and update cost collapse, against the line N* = (C + S) / S."""
    table = collapse_map(study)
    ax.set_yscale("log")
    _draw_combinations(ax, table)
    style.worker_axis(ax, sorted(set(table["end"])))
    _draw_limit(ax, table)
    costs_ms = sorted(set(1e3 * table["update_s"]))
    ax.set_yticks(costs_ms, [f"{cost:.3g}" for cost in costs_ms])
    ax.yaxis.set_minor_locator(ticker.NullLocator())
    ax.set_ylabel("cost of an update (ms)")
    ax.set_title("Where learning collapses")
    style.note(ax, "squares: fixed workers; dark with a cross: most runs collapsed")
    style.legend_of_parts(ax)
    return ax


def _draw_combinations(ax: Axes, table: pd.DataFrame) -> None:
    """Draw a square for each combination, darker the more of its runs collapsed."""
    points = ax.scatter(table["end"], 1e3 * table["update_s"], c=table["collapsed"], cmap=_FATE, vmin=0.0, vmax=1.0,
                        s=150, marker="s", edgecolors=style.INK, linewidths=0.8, zorder=3)  # fmt: skip
    points.set_gid("collapse")
    lost = table[table["collapsed"] > 0.5]
    ax.plot(lost["end"], 1e3 * lost["update_s"], "x", color="white", markersize=7, markeredgewidth=2, zorder=4)


def _draw_limit(ax: Axes, table: pd.DataFrame) -> None:
    """Draw N* over the cost of an update, and let the axis end a little beyond the costs that were tried."""
    update_s = np.geomspace(table["update_s"].min() / 1.6, table["update_s"].max() * 1.6, 200)
    rest_s = float((table["service_s"] - table["update_s"]).median())  # receiving, reading, publishing
    limit = (float(table["cycle_s"].median()) + update_s + rest_s) / (update_s + rest_s)
    inside = (limit > ax.get_xlim()[0]) & (limit < ax.get_xlim()[1])
    label = "predicted: N* = (C + S) / S"
    ax.plot(limit[inside], 1e3 * update_s[inside], color=style.WARNING, linewidth=2, label=label)
    ax.set_ylim(1e3 * update_s[0], 1e3 * update_s[-1])


def plot_relative_workers(study: Study, ax: Axes) -> Axes:
    """Draw the score at the end of every run with fixed workers against its workers as a multiple of N*."""
    fixed = study.done[~study.done["dynamic"]]
    look: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.6, "markersize": 7, "alpha": 0.8}
    for workers in sorted(set(fixed["end"])):
        runs = fixed[fixed["end"] == workers]
        share, end = workers / runs["saturation_start"], runs["final_score"]
        ax.plot(share, end, style.marker(workers), label=str(workers), color=style.colour(workers), **look)
    ax.axvline(1.0, color=style.WARNING, linewidth=1.2)
    ax.set_xscale("log")
    style.plain(ax.xaxis)
    style.from_zero(ax)
    ax.set_xlabel("workers / N*")
    ax.set_ylabel(f"score at the end ({study.score.unit})")
    ax.set_title("What was learned, by workers / N*")
    style.note(ax, "every marker is a run")
    style.legend(ax)
    return ax


def sentence(study: Study) -> str:
    """Count the combinations that the predicted line sorts rightly."""
    table = collapse_map(study)
    predicted = table["end"] >= (table["cycle_s"] + table["service_s"]) / table["service_s"]
    right = int((predicted == (table["collapsed"] > 0.5)).sum())
    return f"The line N* = (C + S) / S sorts {right} of {len(table)} combinations of workers and update cost rightly."


def applies(study: Study) -> bool:
    """Apply where worker counts and the cost of an update vary, and nothing else."""
    varied = [name for name in study.axes if name != "seed" and not name.startswith("schedule.")]
    if "update_s" not in varied or not set(varied) <= {"workers", "update_s"}:
        return False
    fixed = study.done[~study.done["dynamic"]]
    return fixed["update_s"].nunique() > 1 and fixed["end"].nunique() > 1


FIGURE = StudyFigure(
    name="collapse_map",
    title="Collapse by workers and cost of an update",
    panels=(plot_collapse_map, plot_relative_workers),
    sentence=sentence,
    section="settings",
    applies=applies,
    whole=True,
)
