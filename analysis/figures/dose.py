"""What is learned from gradients that come late by a known number of updates, by optimizer."""

import pandas as pd
from matplotlib.axes import Axes

from analysis.data import statistics
from analysis.data.study import Study
from analysis.figures import style
from analysis.figures.figure import StudyFigure
from analysis.words import listed, number

_APART = 1.06  # times the staleness, from an optimizer's marker to the next one's
_FEWEST = 3  # delays, the least that make a curve


def doses(study: Study) -> pd.DataFrame:
    """Return a row for each optimizer and delay: staleness, the share that learned, and the score of all runs."""
    rows = []
    for (optimizer, hold), runs in study.done.groupby(["optimizer", "hold"]):
        fine = runs[runs["final_score"] >= study.score.learned_above]
        share = statistics.share(len(fine), len(runs))
        score = statistics.estimate(runs["final_score"].to_numpy(float))[:3]
        stale = float(runs["staleness_mean"].median())
        rows.append((optimizer, hold, stale, len(runs), *share[:3], *score))
    names = ["optimizer", "hold", "staleness", "runs", "share", "share_low", "share_high"]
    return pd.DataFrame(rows, columns=[*names, "score", "score_low", "score_high"])


def plot_score(study: Study, ax: Axes) -> Axes:
    """Draw the score of all runs over the staleness of their gradients."""
    _draw(study, ax, "score")
    style.from_zero(ax)
    ax.set_ylabel(f"final score ({study.score.unit})")
    ax.set_title("What late gradients teach")
    style.note(ax, "IQM of all runs; lines: 95 % intervals")
    return ax


def plot_share(study: Study, ax: Axes) -> Axes:
    """Draw the share of runs that learned over the staleness of their gradients."""
    _draw(study, ax, "share")
    ax.set_ylim(-0.03, 1.03)
    ax.set_ylabel("share of runs that learned")
    ax.set_title("Who learns from late gradients")
    style.note(ax, "lines: 95 % intervals (Wilson)")
    return ax


def _draw(study: Study, ax: Axes, name: str) -> None:
    """Draw a line for each optimizer over staleness: linear up to 1, so that none is shown too, logarithmic above."""
    for place, (optimizer, rows) in enumerate(doses(study).groupby("optimizer")):
        rows = rows.sort_values("staleness")
        look = style.setting_line(place)
        x = rows["staleness"] * _APART ** (place - 1)  # intervals beside each other
        ax.plot(x, rows[name], label=str(optimizer), **look)
        ax.vlines(x, rows[f"{name}_low"], rows[f"{name}_high"], linewidth=1.4, alpha=0.55, color=look["color"])
    ax.set_xscale("symlog", linthresh=1.0)
    style.plain(ax.xaxis)
    ax.set_xlim(left=0)
    ax.set_xlabel("mean staleness of the gradients applied (updates)")
    style.legend(ax, "optimizer")


def sentence(study: Study) -> str:
    """Say for each optimizer up to which staleness most runs learn."""
    said = [_of(str(optimizer), rows) for optimizer, rows in doses(study).groupby("optimizer")]
    return f"Most runs learn {listed(said)}."


def _of(optimizer: str, rows: pd.DataFrame) -> str:
    fine, lost = rows[rows["share"] > 0.5], rows[rows["share"] <= 0.5]
    if not len(fine):
        return f"at none of the delays tried with {optimizer}"
    most = f"up to a mean staleness of {number(fine['staleness'].max())} with {optimizer}"
    return f"{most} (not at {number(lost['staleness'].min())})" if len(lost) else most


def applies(study: Study) -> bool:
    """Apply where gradients were held back by several numbers of updates."""
    return "hold" in study.done and study.done["hold"].nunique() >= _FEWEST


FIGURE = StudyFigure(
    name="dose",
    title="Late gradients: dose and response",
    panels=(plot_score, plot_share),
    sentence=sentence,
    section="settings",
    applies=applies,
    whole=True,
)
