"""Why it collapses: arrivals against the master's capacity, the queue, staleness, and saturation as predicted."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis import curves, metrics, statistics, style
from analysis.figures_report import legend_title, spread_note
from analysis.study import Schedule, Study


def plot_load(study: Study, ax: Axes) -> Axes:
    """Draw the work that arrives at the master, as a share of what it can do."""
    _draw_all(study, ax, _smooth_load)
    _make_logarithmic(ax)
    ax.axhline(1.0, color=style.WARNING, linewidth=1.2)
    style.plain(ax.yaxis)
    ax.text(0.99, 0.93, "all that the master can do", transform=ax.get_yaxis_transform(), ha="right", va="top",
            fontsize=8.5, color=style.WARNING)  # fmt: skip
    ax.set_ylabel("arriving work / capacity")
    ax.set_title("Arrivals against the master's capacity")
    return ax


def plot_queue(study: Study, ax: Axes) -> Axes:
    """Draw the gradients that wait for the master."""
    _draw_all(study, ax, "queue")
    ax.set_yscale("symlog", linthresh=1.0)
    style.plain(ax.yaxis)
    ax.set_ylim(bottom=0)
    ax.set_ylabel("gradients waiting")
    ax.set_title("Gradients in the queue")
    return ax


def plot_staleness(study: Study, ax: Axes) -> Axes:
    """Draw the updates that were applied between a gradient's pull and its turn."""
    _draw_all(study, ax, "staleness")
    ax.set_yscale("symlog", linthresh=1.0)
    style.plain(ax.yaxis)
    ax.set_ylim(bottom=0)
    ax.set_ylabel("staleness (updates)")
    ax.set_title("Staleness of the gradients applied")
    return ax


def plot_saturation(study: Study, ax: Axes) -> Axes:
    """Draw how busy the master is at the start against the number of workers: predicted line, observed runs."""
    _draw_runs(study, ax, "utilisation_start")
    limit = saturating_workers(study)
    workers = np.geomspace(*ax.get_xlim(), 200)
    if 0 < limit < np.inf:
        ax.plot(
            workers, np.minimum(1.0, workers / limit), color=style.MUTED, linewidth=1.6, zorder=2, label="predicted"
        )
        ax.annotate("predicted", (limit * 0.62, 0.62), (-6, 4), textcoords="offset points", ha="right", fontsize=9,
                    color=style.MUTED)  # fmt: skip
    ax.set_ylim(0, 1.08)
    ax.set_ylabel("share of time busy")
    ax.set_title("How busy the master is at the start")
    style.note(ax, "first tenth of the run; every marker is a run")
    return ax


def plot_throughput(study: Study, ax: Axes) -> Axes:
    """Draw updates per second at the start against the number of workers: predicted line, observed runs."""
    _draw_runs(study, ax, "updates_per_s_start")
    done = study.done
    limit = saturating_workers(study)
    if 0 < limit < np.inf:
        service_s = float(done["service_s"].median())
        workers = np.geomspace(*ax.get_xlim(), 200)
        ax.plot(workers, np.minimum(workers / limit, 1.0) / service_s, color=style.MUTED, linewidth=1.6, zorder=2)
        ax.annotate("predicted: min(N / C, 1 / S)", (ax.get_xlim()[1], 1.0 / service_s), (-2, 5),
                    textcoords="offset points", ha="right", fontsize=9, color=style.MUTED)  # fmt: skip
    ax.set_ylim(0, 1.15 * ax.get_ylim()[1])
    ax.set_ylabel("updates per second")
    ax.set_title("What the master gets done at the start")
    style.note(ax, "first tenth of the run; every marker is a run")
    return ax


def plot_backlog(study: Study, ax: Axes) -> Axes:
    """Draw gradients sent and applied over time, for one run of each fixed count that overloads the master."""
    unit_s, unit = study.time_unit
    for schedule in backlogged(study):
        curve = next(study.each_curve(schedule))
        done = np.concatenate([[0.0], curve["updates"].to_numpy(float)]) / 1e3
        sent, applied = (
            np.concatenate([[0.0], curve[name].to_numpy(float)]) / unit_s for name in ("arrived_s", "clock_s")
        )
        look = style.line(schedule)
        ax.fill_betweenx(done, sent, applied, color=look["color"], alpha=0.16, linewidth=0)
        ax.plot(sent, done, linewidth=1.4, linestyle="dotted", color=look["color"])
        ax.plot(applied, done, **{**look, "linestyle": "solid"})
    ax.set_xlim(left=0)
    style.from_zero(ax)
    ax.set_xlabel(f"time ({unit})")
    ax.set_ylabel("gradients (thousands)")
    ax.set_title("Sent (dotted) and applied (solid)")
    style.note(ax, "one run each; shaded: gradients that wait")
    style.legend(ax, legend_title(study))
    return ax


def plot_worker_time(study: Study, ax: Axes) -> Axes:
    """Draw what a worker's cycle is made of, and what its gradient costs the master, at the start and at the end."""
    rows = worker_time(study)
    left = np.zeros(len(rows))
    shades = {"playing": "#3b4f8f", "gradient": "#8fa3d9", "the rest": "#d5dbee"}
    for name, shade in shades.items():
        values = 100.0 * rows[name].to_numpy(float)
        ax.barh(rows.index, values, left=left, color=shade, label=name, height=0.5)
        for place, (start, width) in enumerate(zip(left, values, strict=True)):
            if width > 6:
                ax.text(start + width / 2, place, f"{width:.0f} %", ha="center", va="center", fontsize=9,
                        color="white" if name == "playing" else style.INK)  # fmt: skip
        left = left + values
    ax.barh(rows.index, 100.0 * rows["master"].to_numpy(float), left=left + 3.0, color=style.WARNING, height=0.5,
            label="master")  # fmt: skip
    for place, value in enumerate(100.0 * rows["master"].to_numpy(float)):
        ax.text(left[place] + value + 4.0, place, f"{value:.1f} %", va="center", fontsize=9, color=style.WARNING)
    ax.set_xlim(0, 1.16 * float((left + 3.0 + 100.0 * rows["master"]).max()))
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.grid(visible=False, axis="y")
    ax.set_xlabel("share of a worker's cycle (%)")
    ax.set_title("What an episode costs")
    virtual = (study.done["runtime"] == "simulate").all()
    style.note(ax, "by the profile of costs, for the episodes played" if virtual else "as measured, over the whole run")
    style.legend_of_parts(ax)
    return ax


def plot_episode_time(study: Study, ax: Axes) -> Axes:
    """Draw how long an episode takes its worker: the better it plays, the less often it bothers the master."""
    _draw_all(study, ax, "episode_s")
    _make_logarithmic(ax)
    style.plain(ax.yaxis)
    ax.set_ylabel("time per episode (s)")
    ax.set_title("How long an episode takes")
    return ax


def worker_time(study: Study) -> pd.DataFrame:
    """Return shares of a worker's cycle by phase: playing, gradient, the rest, and the master's service beside them."""
    learned = study.done[study.done["final_score"] >= metrics.COLLAPSE_SCORE]
    runs = learned if len(learned) else study.done
    rows = {}
    for when, words in (("end", "at the end"), ("start", "at the start")):
        play, gradient, service = (
            float(statistics.iqm(runs[f"{name}_{when}"].to_numpy(float)))
            for name in ("play_share", "gradient_share", "service_share")
        )
        steps = float(statistics.iqm(runs[f"steps_{when}"].to_numpy(float)))
        rows[f"{words}\n({steps:,.0f} steps)"] = (play, gradient, 1.0 - play - gradient, service)
    return pd.DataFrame.from_dict(rows, orient="index", columns=["playing", "gradient", "the rest", "master"])


def saturating_workers(study: Study) -> float:
    """Return the predicted number of workers at which the master has no idle moment at the start of a run.

    Workers that do not wait for their gradient's turn saturate it at C / S, one less than N* = (C + S) / S.
    """
    done = study.done
    if "saturation_start" not in done or done["saturation_start"].isna().all():
        return float("nan")
    waits = bool((done["pull"] == "after_apply").all())
    return float(done["saturation_start"].median()) - (0.0 if waits else 1.0)


def backlogged(study: Study) -> list[Schedule]:
    """Return the fixed schedules whose queue outgrew the master, or the largest if none did."""
    fixed = study.schedules(dynamic=False)
    behind = [s for s in fixed if study.values(s, "queue_peak").median() > metrics.BACKLOG * s.end]
    return behind or fixed[-1:]


def _smooth_load(curve: pd.DataFrame) -> np.ndarray:
    load = pd.Series(metrics.offered_load(curve))
    return load.rolling(3, min_periods=1, center=True).mean().to_numpy()


def _make_logarithmic(ax: Axes) -> None:
    """Make y logarithmic, unless all that is drawn is 0: by a profile without costs nothing takes any time."""
    if any((np.asarray(line.get_ydata(), float) > 0).any() for line in ax.lines):
        ax.set_yscale("log")


def _draw_all(study: Study, ax: Axes, column: curves.Column) -> None:
    schedules = study.schedules()
    for order, schedule in enumerate(schedules):
        style.draw_band(ax, curves.over_episodes(study, schedule, column), schedule, order)
    ax.set_xlim(0, study.episodes)
    ax.set_xlabel("episodes")
    style.plain(ax.xaxis)
    style.note(ax, spread_note(study, schedules))
    style.legend(ax, legend_title(study))


def _draw_runs(study: Study, ax: Axes, column: str) -> None:
    """Draw `column` of every run against its workers at the start."""
    schedules = study.schedules()
    for schedule in schedules:
        values = study.values(schedule, column)
        face = "none" if schedule.dynamic else style.tone(schedule)
        ax.plot([schedule.start] * len(values), values, style.shape(schedule), markersize=7, alpha=0.8,
                markerfacecolor=face, markeredgecolor=style.tone(schedule))  # fmt: skip
    style.worker_axis(ax, sorted({schedule.start for schedule in schedules}))
