"""Which combinations of workers and update cost collapse, against the line that was known before the runs."""

from typing import Any

import pandas as pd
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from analysis.data.study import Study
from analysis.figures import style
from analysis.figures.figure import StudyFigure

_FATE = LinearSegmentedColormap.from_list("fate", ["#dbe7f3", style.WARNING])


def collapse_map(study: Study) -> pd.DataFrame:
    """Return one row per fixed worker count and cost of an update: the share of runs that learned, and the limit."""
    rows = study.done[~study.done["dynamic"]]
    rows = rows.assign(learned=rows["final_score"] >= study.score.learned_above)
    groups = rows.groupby(["end", "update_s"])
    table = groups.agg(learned=("learned", "mean"), runs=("learned", "size"), limit=("limit_workers", "median"))
    return table.reset_index()


def sorted_rightly(study: Study) -> tuple[int, int]:
    """Return how many combinations the limit sorts rightly by whether most runs learned, and of how many."""
    table = collapse_map(study)
    return int(((table["end"] < table["limit"]) == (table["learned"] > 0.5)).sum()), len(table)


def plot_collapse_map(study: Study, ax: Axes) -> Axes:
    """Draw which combinations of workers and update cost learn, against the limit known before."""
    table = collapse_map(study)
    ax.set_yscale("log")
    _draw_combinations(ax, table)
    style.worker_axis(ax, sorted(set(table["end"])))
    _draw_limit(ax, table, study.done["limit_name"].iloc[0])
    costs_ms = sorted(set(1e3 * table["update_s"]))
    ax.set_yticks(costs_ms, [f"{cost:.3g}" for cost in costs_ms])
    ax.yaxis.set_minor_locator(ticker.NullLocator())
    ax.set_ylabel("cost of an update (ms)")
    ax.set_title("Where learning collapses")
    style.note(ax, "squares: fixed workers; darker: fewer runs learned; cross: at most half")
    style.legend_of_parts(ax)
    return ax


def _draw_combinations(ax: Axes, table: pd.DataFrame) -> None:
    """Draw a square for each combination, darker the fewer of its runs learned."""
    points = ax.scatter(table["end"], 1e3 * table["update_s"], c=1.0 - table["learned"], cmap=_FATE, vmin=0.0, vmax=1.0,
                        s=150, marker="s", edgecolors=style.INK, linewidths=0.8, zorder=3)  # fmt: skip
    points.set_gid("collapse")
    lost = table[table["learned"] <= 0.5]
    ax.plot(lost["end"], 1e3 * lost["update_s"], "x", color="white", markersize=7, markeredgewidth=2, zorder=4)


def _draw_limit(ax: Axes, table: pd.DataFrame, name: str) -> None:
    """Draw the limit over the cost of an update, and let the axis end a little beyond the costs that were tried."""
    line = table.groupby("update_s")["limit"].median()
    costs_s = line.index.to_numpy(float)
    ax.plot(line, 1e3 * costs_s, color=style.WARNING, linewidth=2, label=f"predicted: {name}")
    ax.set_ylim(1e3 * costs_s.min() / 1.6, 1e3 * costs_s.max() * 1.6)


def plot_relative_workers(study: Study, ax: Axes) -> Axes:
    """Draw the final score of every run with fixed workers against its workers as a multiple of the limit."""
    fixed, name = study.done[~study.done["dynamic"]], study.done["limit_name"].iloc[0]
    look: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.6, "markersize": 7, "alpha": 0.8}
    for place, workers in enumerate(sorted(set(fixed["end"]))):
        runs = fixed[fixed["end"] == workers]
        share, end = workers / runs["limit_workers"], runs["final_score"]
        ax.plot(share, end, style.marker(place), label=str(workers), color=style.colour(workers), **look)
    ax.axvline(1.0, color=style.WARNING, linewidth=1.2)
    ax.set_xscale("log")
    style.plain(ax.xaxis)
    style.from_zero(ax)
    ax.set_xlabel(f"workers / {name}")
    ax.set_ylabel(f"final score ({study.score.unit})")
    ax.set_title(f"What was learned, by workers / {name}")
    style.note(ax, "every marker is a run")
    style.legend(ax)
    return ax


def sentence(study: Study) -> str:
    """Count the combinations that the predicted line sorts rightly."""
    right, of = sorted_rightly(study)
    name = study.done["limit_name"].iloc[0]
    line = f"The line {name} of an untrained agent, known before the runs,"
    return f"{line} sorts {right} of {of} combinations of workers and update cost rightly by whether most runs learn."


def applies(study: Study) -> bool:
    """Apply where worker counts and the cost of an update vary, and nothing else."""
    varied = [name for name in study.axes if name != "seed" and not name.startswith("schedule.")]
    if "update_s" not in varied or not set(varied) <= {"workers", "update_s"}:
        return False
    fixed = study.done[~study.done["dynamic"]]
    known = "limit_name" in fixed and fixed["limit_name"].nunique() == 1 and fixed["limit_workers"].notna().all()
    return bool(known and fixed["update_s"].nunique() > 1 and fixed["end"].nunique() > 1)


FIGURE = StudyFigure(
    name="collapse_map",
    title="Collapse by workers and cost of an update",
    panels=(plot_collapse_map, plot_relative_workers),
    sentence=sentence,
    section="settings",
    applies=applies,
    whole=True,
)
