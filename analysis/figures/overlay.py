"""The documents' published run over ours with the same settings: reward and loss as that run shows them."""

import numpy as np
from matplotlib.axes import Axes

from analysis.data.published import DEATH, RESTARTS, SAVED_EVERY, SETTLED, Averages, averages_of, published, spikes
from analysis.data.study import Study
from analysis.figures import style
from analysis.figures.figure import StudyFigure
from analysis.words import count, listed, number

GRID = "published"  # the grid whose settings are those of the published run


def plot_reward(study: Study, ax: Axes) -> Axes:
    """Draw the moving average of reward: a thin line for each seed, their median, and the published run."""
    _draw(study, ax, "reward")
    ax.set_yscale("symlog", linthresh=10.0)
    ax.set_ylabel("reward (moving average)")
    ax.set_title("The published run and ours: reward")
    style.note(ax, f"thin: seeds; reward: pipes - {DEATH:g}; the same moving average")
    return ax


def plot_loss(study: Study, ax: Axes) -> Axes:
    """Draw the moving average of the loss, with a mark at every 5,000th episode up to 40,000."""
    _draw(study, ax, "loss")
    for episode in range(SAVED_EVERY, SETTLED + 1, SAVED_EVERY):
        ax.axvline(episode, color=style.GRID, linewidth=1.0, zorder=0)
    ax.set_yscale("symlog", linthresh=1.0)
    ax.set_ylabel("loss (moving average)")
    ax.set_title("The published run and ours: loss")
    style.note(ax, f"marks: every {SAVED_EVERY:,}th episode, at which the published script saves")
    return ax


def _draw(study: Study, ax: Axes, name: str) -> None:
    theirs = published()
    for schedule in study.schedules():
        runs, ours = averages_of(study, schedule), style.tone(schedule)
        for run in runs:
            ax.plot(run.episodes, getattr(run, name), color=ours, linewidth=0.6, alpha=0.35)
        length = min(len(run.episodes) for run in runs)
        middle = np.median([getattr(run, name)[:length] for run in runs], axis=0)
        label = f"{schedule.title}, median of {count(len(runs), 'run')}"
        ax.plot(runs[0].episodes[:length], middle, color=ours, linewidth=2.2, label=label)
    known = np.isfinite(getattr(theirs, name))
    there = getattr(theirs, name)[known]
    ax.plot(theirs.episodes[known], there, color=style.WARNING, linewidth=1.4, label="published run")
    for place, episode in enumerate(RESTARTS):
        label = "its restarts" if place == 0 else "_"  # one entry in the legend
        ax.axvline(episode, color=style.WARNING, linewidth=1.0, linestyle="dotted", label=label)
    ax.set_xlim(0, theirs.episodes[-1])
    style.plain(ax.xaxis)
    ax.set_xlabel("episodes")
    style.legend(ax, "moving average (coefficient 0.04)")


def sentence(study: Study) -> str:
    """Say when learning begins and how high it gets, there and here, and whether the loss spikes where they saved."""
    return f"{_of_learning(study)} {_of_loss(study)}"


def _of_learning(study: Study) -> str:
    theirs = published()
    said = [_of_runs(averages_of(study, schedule), schedule.title) for schedule in study.schedules()]
    restarts = listed(f"{episode:,}" for episode in RESTARTS)
    return (
        f"The published run's average passes 5 pipes at episode {number(theirs.begins)} and gets to "
        f"{number(theirs.highest)} pipes by episode {theirs.episodes[-1]:,.0f}; it was restarted at {restarts}. "
        f"{' '.join(said)}"
    )


def _of_runs(runs: list[Averages], title: str) -> str:
    """Say how many runs of a worker count begin to learn, when, and how high they get."""
    begins, tops = sorted(run.begins for run in runs), sorted(run.highest for run in runs)
    begun = int(np.isfinite(begins).sum())
    when = f" (median episode {number(float(np.median(begins)))})" if 2 * begun > len(runs) else ""
    highest = f"{number(float(np.median(tops)))} pipes in the median ({number(tops[0])} to {number(tops[-1])})"
    return (
        f"With {title}, {begun} of {count(len(runs), 'run')} pass 5 pipes{when}; the highest average is {highest} "
        f"by episode {runs[0].episodes[-1]:,}."
    )


def _of_loss(study: Study) -> str:
    said = []
    for whose, runs in (("the published run", [published()]), ("ours", averages_of(study))):
        ratio, chance = spikes(runs)
        said.append(f"{number(ratio)} times in {whose} (p = {number(chance)})")
    when = f"Just after every {SAVED_EVERY:,}th of the first {SETTLED:,} episodes"
    return f"{when} the loss is {' and '.join(said)} what it was at it."


def applies(study: Study) -> bool:
    """Apply to studies of the published settings, whose runs kept their averages."""
    return study.name.partition("+")[0] == GRID and bool(averages_of(study))


FIGURE = StudyFigure(
    name="overlay",
    title="The published run over ours",
    panels=(plot_reward, plot_loss),
    sentence=sentence,
    section="report",
    applies=applies,
)
