"""Where learning ends: who learns against workers / limit, with the fitted edge."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy.special import expit

from analysis.data import statistics
from analysis.data.edge import edges, has_edge, shares, update_words
from analysis.data.study import Study
from analysis.figures import style
from analysis.figures.figure import StudyFigure
from analysis.words import number

_APART = 1.004  # times the ratio, from one cost's marker to the next one's
_TENTHS = np.log(9.0)  # of the logistic function: from a half to nine tenths


def plot_edge(study: Study, ax: Axes) -> Axes:
    """Draw the share of runs that learned against workers / limit: a marker for each worker count, and the fit."""
    table, fits = shares(study), edges(study)
    limit = study.done["limit_name"].iloc[0]
    costs = sorted(table["update_s"].unique())
    for place, cost in enumerate(costs):
        rows = table[table["update_s"] == cost]
        look = {**style.setting_line(place), "linestyle": "none"}
        x = rows["ratio"] * _APART ** (place - (len(costs) - 1) / 2)  # intervals beside each other
        estimates = [
            statistics.share(int(hits), int(runs)) for hits, runs in zip(rows["learned"], rows["runs"], strict=True)
        ]
        ax.vlines(x, [e.low for e in estimates], [e.high for e in estimates], color=look["color"], alpha=0.35)
        ax.plot(x, [e.value for e in estimates], label=update_words(cost), **look)
    joint = fits.iloc[0]
    grid = np.linspace(table["ratio"].min(), table["ratio"].max(), 300)
    ax.plot(grid, expit(-joint["slope"] * np.log(grid / joint["midpoint"])), color=style.INK, linewidth=1.8, zorder=2)
    ax.axvspan(joint["low"], joint["high"], color=style.INK, alpha=0.12, linewidth=0)
    ax.axvline(1.0, color=style.WARNING, linestyle="dotted", linewidth=1.4)
    ax.annotate(
        f"{limit}", (1.0, 0.5), (-4, 0), textcoords="offset points", ha="right", color=style.WARNING, fontsize=9
    )
    ax.set_ylim(-0.03, 1.03)
    ax.set_xlabel(f"workers / {limit}")
    ax.set_ylabel("share of runs that learned")
    ax.set_title(f"Half of the runs learn at {joint['midpoint']:.2f} × {limit}")
    style.note(ax, "lines: 95 % intervals (Wilson); curve: logistic fit; grey: interval of its midpoint")
    style.legend(ax, "cost of an update")
    return ax


def plot_scores(study: Study, ax: Axes) -> Axes:
    """Draw the final score of every run against workers / its own limit."""
    done = study.done
    for place, cost in enumerate(sorted(map(float, done["update_s"].unique()))):
        rows = done[done["update_s"] == cost]
        look = {**style.setting_line(place), "linestyle": "none", "markersize": 4.5, "alpha": 0.6}
        ax.plot(rows["end"] / rows["limit_workers"], rows["final_score"], label=update_words(cost), **look)
    limit = done["limit_name"].iloc[0]
    ax.axhline(study.score.learned_above, color=style.MUTED, linewidth=1.0)
    ax.axvline(1.0, color=style.WARNING, linestyle="dotted", linewidth=1.4)
    style.from_zero(ax)
    ax.set_xlabel(f"workers / {limit} of the run's seed")
    ax.set_ylabel(f"final score ({study.score.unit})")
    ax.set_title("Final score of every run")
    style.note(ax, f"grey line: {study.score.amount(study.score.learned_above)}, which counts as learned")
    style.legend(ax, "cost of an update")
    return ax


def sentence(study: Study) -> str:
    """Give the midpoint and the width of the edge, for all runs and by the cost of an update."""
    fits = edges(study)
    limit, joint, others = study.done["limit_name"].iloc[0], fits.iloc[0], fits.iloc[1:]
    tenths = (joint["midpoint"] * np.exp(sign * _TENTHS / joint["slope"]) for sign in (-1, 1))
    first, last = (number(float(each)) for each in tenths)
    text = f"Half of the runs learn at {_midpoint(joint)} × {limit}, nine in ten at {first} and one in ten at {last}."
    if len(others):
        said = "; ".join(f"{row['runs_of']}: {_midpoint(row)}" for _, row in others.iterrows())
        text += f" By the cost of an update: {said}."
    return text


def _midpoint(row: pd.Series) -> str:
    return f"{row['midpoint']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"


FIGURE = StudyFigure(
    name="edge",
    title="Where learning ends",
    panels=(plot_edge, plot_scores),
    sentence=sentence,
    section="settings",
    applies=has_edge,
    whole=True,
)
