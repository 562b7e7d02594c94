"""The trade-off: score against episodes, steps, updates and time; speed against learning; settings side by side."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from analysis import metrics, statistics, style
from analysis.figures_report import legend_title, plot_score
from analysis.study import Schedule, Study

_FATE = LinearSegmentedColormap.from_list("fate", ["#dbe7f3", style.WARNING])
_LINE = 12  # points from one label's row to the next
_LETTER = 0.03  # a letter's width, as a share of the largest speed


def plot_score_over(study: Study, ax: Axes, axis: str) -> Axes:
    """Draw the score of every schedule over episodes, env_steps, updates or clock_s."""
    plot_score(study, ax, study.schedules(), axis)
    title = {"episodes": "episodes", "env_steps": "steps", "updates": "updates", "clock_s": "time"}[axis]
    ax.set_title(f"Score against {title}")
    return ax


def plot_frontier(study: Study, ax: Axes) -> Axes:
    """Draw learning per episode against speed, and the schedules that no other beats in both."""
    points = frontier_points(study)
    best = points[points["best"]].sort_values("speed", kind="stable")
    ax.plot(best["speed"], best["learning"], color=style.GRID, linewidth=7, zorder=1, solid_capstyle="round")
    rows = _label_rows(points.loc[[schedule.label for schedule in study.schedules(dynamic=True)], "speed"])
    for schedule in study.schedules():
        point = points.loc[schedule.label]
        shade = style.tone(schedule)
        if np.isfinite(point["learning_low"]) and point["runs"] >= statistics.FEWEST_TO_RESAMPLE:
            ax.plot([point["speed"]] * 2, [point["learning_low"], point["learning_high"]], color=shade, linewidth=1.6)
            ax.plot([point["speed_low"], point["speed_high"]], [point["learning"]] * 2, color=shade, linewidth=1.6)
        face = "white" if schedule.dynamic else shade
        ax.plot(point["speed"], point["learning"], style.shape(schedule), markersize=9, markerfacecolor=face,
                markeredgecolor=shade, markeredgewidth=1.6, zorder=4)  # fmt: skip
        below = (8, -14 - _LINE * rows.get(schedule.label, 0))
        side = {"xytext": below} if schedule.dynamic else {"xytext": (-7, 7), "ha": "right"}
        ax.annotate(schedule.label, (point["speed"], point["learning"]), textcoords="offset points", fontsize=9.5,
                    color=shade, **side)  # fmt: skip
    ax.set_xlim(0, 1.18 * points["speed"].max())
    ax.set_ylim(-0.08 * ax.get_ylim()[1], 1.1 * ax.get_ylim()[1])
    ax.set_xlabel("speed (environment steps per second)")
    ax.set_ylabel("learning (mean score, all episodes)")
    style.plain(ax.xaxis)
    ax.set_title("Learning efficiency against speed")
    style.note(ax, "grey: schedules that no other beats in both; hollow: dynamic")
    return ax


def _label_rows(speeds: pd.Series) -> dict[str, int]:
    """Return the row, counted from the top, in which each label below its point runs into no other."""
    ends: list[float] = []  # of the last label in each row
    rows = {}
    for label, speed in speeds.sort_values(kind="stable").items():
        free = next((row for row, end in enumerate(ends) if end < speed), len(ends))
        ends[free : free + 1] = [speed + _LETTER * len(str(label)) * speeds.max()]
        rows[str(label)] = free
    return rows


def frontier_points(study: Study) -> pd.DataFrame:
    """Return one row per schedule: speed and learning with their intervals, and whether no other beats it in both."""
    rows = {}
    for schedule in study.schedules():
        speed, learning = (study.estimate(schedule, column) for column in ("steps_per_s", "mean_score"))
        rows[schedule.label] = (*speed[:3], *learning[:3], learning.runs)
    names = ["speed", "speed_low", "speed_high", "learning", "learning_low", "learning_high", "runs"]
    points = pd.DataFrame.from_dict(rows, orient="index", columns=names)
    values = points[["speed", "learning"]].to_numpy(float)
    beaten = [((values >= point).all(axis=1) & (values > point).any(axis=1)).any() for point in values]
    points["best"] = [not lost for lost in beaten]
    return points


def reference_score(study: Study) -> float:
    """Return the score for the time to a score: the highest of SCORES that most runs of some schedule have reached."""
    reached = [
        score
        for score in metrics.SCORES
        if any(np.isfinite(study.values(s, f"time_to_{score:g}_s")).mean() > 0.5 for s in study.schedules())
    ]
    return max(reached, default=metrics.SCORES[0])


def plot_time_to_score(study: Study, ax: Axes) -> Axes:
    """Draw when each run reached the reference score; runs that never did stand at the right edge."""
    score, (unit_s, unit) = reference_score(study), study.time_unit
    schedules = study.schedules()[::-1]
    times = [study.values(schedule, f"time_to_{score:g}_s").to_numpy(float) / unit_s for schedule in schedules]
    longest = max((float(t[np.isfinite(t)].max()) for t in times if np.isfinite(t).any()), default=1.0)
    for place, (schedule, hours) in enumerate(zip(schedules, times, strict=True)):
        _draw_times(ax, place, schedule, hours, longest)
    ax.set_yticks(range(len(schedules)), [schedule.label for schedule in schedules])
    ax.set_xlim(0, 1.32 * longest)
    ax.set_ylim(-0.6, len(schedules) - 0.4)
    ax.set_xlabel(f"time ({unit})")
    ax.set_title(f"Time to a mean score of {score:g}")
    style.note(ax, "dots: runs; bar: their median; right: runs that never reached it")
    return ax


def _draw_times(ax: Axes, place: int, schedule: Schedule, hours: np.ndarray, longest: float) -> None:
    reached = hours[np.isfinite(hours)]
    shade = style.tone(schedule)
    ax.plot(reached, np.full(len(reached), place), style.shape(schedule), color=shade, alpha=0.6, markersize=7)
    if len(reached) > len(hours) / 2:
        ax.plot([np.median(hours)] * 2, [place - 0.28, place + 0.28], color=shade, linewidth=3)
    if len(reached) < len(hours):
        text = f"never: {len(hours) - len(reached)} of {len(hours)}"
        ax.text(1.31 * longest, place, text, ha="right", va="center", fontsize=9, color=style.WARNING)


def plot_settings(study: Study, ax: Axes) -> Axes:
    """Draw the score at the end for every setting, one row each, one marker per schedule."""
    variants = [variant for variant in study.variants if len(study.of_variant(variant).done)][::-1]
    for place, variant in enumerate(variants):
        part = study.of_variant(variant)
        schedules = part.schedules()
        for order, schedule in enumerate(schedules):
            shown = part.estimate(schedule, "final_score")
            height = place + 0.5 * ((order + 0.5) / len(schedules) - 0.5)
            look: dict[str, Any] = {"color": style.tone(schedule), "zorder": 3}
            low, high = (
                (shown.low, shown.high) if shown.runs >= statistics.FEWEST_TO_RESAMPLE else _range(part, schedule)
            )
            ax.plot([low, high], [height] * 2, linewidth=2, alpha=0.6, **look)
            label = schedule.label if schedule.label not in ax.get_legend_handles_labels()[1] else None
            ax.plot(shown.value, height, style.shape(schedule), linestyle="none", markersize=8, label=label,
                    markeredgecolor="white", markeredgewidth=0.7, **look)  # fmt: skip
    ax.set_yticks(range(len(variants)), variants)
    ax.set_ylim(-0.6, len(variants) - 0.4)
    ax.set_xlim(left=min(0.0, ax.get_xlim()[0]))
    ax.set_xlabel("score at the end (pipes)")
    ax.set_title("Score at the end, by setting")
    style.note(ax, "markers: IQM of runs; lines: 95 % interval or range")
    style.legend(ax, legend_title(study))
    return ax


def plot_settings_score(study: Study, ax: Axes) -> Axes:
    """Draw the score over episodes, one line for each setting."""
    return plot_score_over(study.shown, ax, "episodes")


def _range(study: Study, schedule: Schedule) -> tuple[float, float]:
    values = study.values(schedule, "final_score")
    return float(values.min()), float(values.max())


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
    points = ax.scatter(table["end"], 1e3 * table["update_s"], c=table["collapsed"], cmap=_FATE, vmin=0.0, vmax=1.0,
                        s=150, marker="s", edgecolors=style.INK, linewidths=0.8, zorder=3)  # fmt: skip
    points.set_gid("collapse")
    lost = table[table["collapsed"] > 0.5]
    ax.plot(lost["end"], 1e3 * lost["update_s"], "x", color="white", markersize=7, markeredgewidth=2, zorder=4)
    style.worker_axis(ax, sorted(set(table["end"])))
    update_s = np.geomspace(table["update_s"].min() / 1.6, table["update_s"].max() * 1.6, 200)
    rest_s = float((table["service_s"] - table["update_s"]).median())  # receiving, reading, publishing
    limit = (float(table["cycle_s"].median()) + update_s + rest_s) / (update_s + rest_s)
    inside = (limit > ax.get_xlim()[0]) & (limit < ax.get_xlim()[1])
    ax.plot(
        limit[inside], 1e3 * update_s[inside], color=style.WARNING, linewidth=2, label="predicted: N* = (C + S) / S"
    )
    ax.set_ylim(1e3 * update_s[0], 1e3 * update_s[-1])
    costs_ms = sorted(set(1e3 * table["update_s"]))
    ax.set_yticks(costs_ms, [f"{cost:.3g}" for cost in costs_ms])
    ax.yaxis.set_minor_locator(ticker.NullLocator())
    ax.set_ylabel("cost of an update (ms)")
    ax.set_title("Where learning collapses")
    style.note(ax, "squares: fixed workers; dark with a cross: most runs collapsed")
    style.legend_of_parts(ax)
    return ax


def plot_relative_workers(study: Study, ax: Axes) -> Axes:
    """Draw the score at the end of every run with fixed workers against its workers as a multiple of N*."""
    fixed = study.done[~study.done["dynamic"]]
    for workers in sorted(set(fixed["end"])):
        runs = fixed[fixed["end"] == workers]
        look: dict[str, Any] = {
            "color": style.colour(workers),
            "markeredgecolor": "white",
            "markeredgewidth": 0.6,
            "markersize": 7,
        }
        share = workers / runs["saturation_start"]
        ax.plot(share, runs["final_score"], style.marker(workers), label=str(workers), alpha=0.8, **look)
    ax.axvline(1.0, color=style.WARNING, linewidth=1.2)
    ax.set_xscale("log")
    style.plain(ax.xaxis)
    style.from_zero(ax)
    ax.set_xlabel("workers / N*")
    ax.set_ylabel("score at the end (pipes)")
    ax.set_title("What was learned, by workers / N*")
    style.note(ax, "every marker is a run")
    style.legend(ax)
    return ax
