"""What an episode costs its worker and the master, and how long it takes as the agent learns."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.data import statistics
from analysis.data.study import Study
from analysis.figures import style
from analysis.figures.figure import StudyFigure
from analysis.figures.panels import draw_over
from analysis.words import percent

_SHADES = {"playing": "#3b4f8f", "gradient": "#8fa3d9", "the rest": "#d5dbee"}
_GAP = 3.0  # percent between the worker's bar and the master's


def plot_worker_time(study: Study, ax: Axes) -> Axes:
    """Draw what a worker's cycle is made of, and what its gradient costs the master, at the start and at the end."""
    rows = 100.0 * worker_time(study)
    right = _draw_workers_part(ax, rows)
    _draw_masters_part(ax, rows, right + _GAP)
    ax.set_xlim(0, 1.16 * float((right + _GAP + rows["master"]).max()))
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.grid(visible=False, axis="y")
    ax.set_xlabel("share of a worker's cycle (%)")
    ax.set_title("What an episode costs")
    virtual = (study.done["runtime"] == "simulate").all()
    style.note(ax, "by the profile of costs, for the episodes played" if virtual else "as measured, over the whole run")
    style.legend_of_parts(ax)
    return ax


def _draw_workers_part(ax: Axes, rows: pd.DataFrame) -> np.ndarray:
    """Draw the parts of a worker's cycle end to end; return [rows] where they end."""
    left = np.zeros(len(rows))
    for name, shade in _SHADES.items():
        widths = rows[name].to_numpy(float)
        ax.barh(rows.index, widths, left=left, color=shade, label=name, height=0.5)
        for place, (start, width) in enumerate(zip(left, widths, strict=True)):
            if width > 6:  # else the number does not fit into its bar
                ax.text(start + width / 2, place, f"{width:.0f} %", ha="center", va="center", fontsize=9,
                        color="white" if name == "playing" else style.INK)  # fmt: skip
        left = left + widths
    return left


def _draw_masters_part(ax: Axes, rows: pd.DataFrame, left: np.ndarray) -> None:
    """Draw the master's share beside the worker's cycle, of which it is no part."""
    widths = rows["master"].to_numpy(float)
    ax.barh(rows.index, widths, left=left, color=style.WARNING, height=0.5, label="master")
    for place, width in enumerate(widths):
        ax.text(left[place] + width + 1.0, place, f"{width:.1f} %", va="center", fontsize=9, color=style.WARNING)


def plot_episode_time(study: Study, ax: Axes) -> Axes:
    """Draw how long an episode takes its worker: the better it plays, the less often it bothers the master."""
    draw_over(study, ax, study.schedules(), "episode_s")
    style.make_logarithmic(ax)
    style.plain(ax.yaxis)
    ax.set_ylabel("time per episode (s)")
    ax.set_title("How long an episode takes")
    return ax


def worker_time(study: Study) -> pd.DataFrame:
    """Return shares of a worker's cycle by phase: playing, gradient, the rest, and the master's service beside them."""
    learned = study.done[study.done["final_score"] >= study.score.learned_above]
    runs = learned if len(learned) else study.done
    rows = {}
    for when, words in (("end", "at the end"), ("start", "at the start")):
        columns = (f"play_share_{when}", f"gradient_share_{when}", f"service_share_{when}", f"steps_{when}")
        play, gradient, service, steps = (float(statistics.iqm(runs[name].to_numpy(float))) for name in columns)
        rows[f"{words}\n({steps:,.0f} steps)"] = (play, gradient, 1.0 - play - gradient, service)
    return pd.DataFrame.from_dict(rows, orient="index", columns=["playing", "gradient", "the rest", "master"])


def sentence(study: Study) -> str:
    """Say what an episode's time goes to."""
    rows = worker_time(study)
    end, start = rows.iloc[0], rows.iloc[1]
    return (
        f"Playing takes {percent(start['playing'])} of a worker's cycle at the start; one update costs the master "
        f"{percent(start['master'])} of it then, and {percent(end['master'])} at the end."
    )


def applies(study: Study) -> bool:
    """Apply where some run knows what its worker's time went to."""
    return "play_share_start" in study.done and bool(study.done["play_share_start"].notna().any())


FIGURE = StudyFigure(
    name="episodes",
    title="What an episode costs",
    panels=(plot_worker_time, plot_episode_time),
    sentence=sentence,
    section="why",
    applies=applies,
)
