"""A figure of one's own: how undecided the policy is, as it learns."""

import numpy as np
from matplotlib.axes import Axes

from analysis.data.study import Study
from analysis.figures.figure import StudyFigure
from analysis.figures.panels import draw_over
from analysis.figures.sentences import each
from analysis.words import number


def plot_entropy(study: Study, ax: Axes) -> Axes:
    """Draw the policy's entropy over the episodes: a line with its spread for each schedule."""
    draw_over(study, ax, study.schedules(), "entropy")
    ax.set_ylabel("entropy (nats)")
    ax.set_title("How undecided the policy is")
    return ax


def sentence(study: Study) -> str:
    """Say where the entropy of each schedule's runs ends."""
    ends = {}
    for schedule in study.schedules():
        ends[schedule] = float(np.median([curve["entropy"].iloc[-1] for curve in study.each_curve(schedule)]))
    return f"At the end the policy's entropy is {each(ends, number)} (medians over runs)."


def applies(study: Study) -> bool:
    """Apply where entropy was recorded."""
    return bool(study.curves["entropy"].notna().any())


FIGURE = StudyFigure("entropy", "The policy's entropy", (plot_entropy,), sentence, section="why", applies=applies)
