"""Topologies over worker counts: what each learned, and how long it took to a score."""

from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from analysis.data import outcomes
from analysis.data.outcomes import reference_score
from analysis.data.stations import side_by_side, varies_topology
from analysis.data.study import Study
from analysis.figures import style
from analysis.figures.figure import StudyFigure
from analysis.figures.score_axes import plot_score_over
from analysis.words import duration, listed, number

_NEVER = 1.6  # times the longest time: where runs stand that never came so far


def plot_ends(study: Study, ax: Axes) -> Axes:
    """Draw the final score over workers, a line for each setting."""
    for place, variant in enumerate(study.done_variants):
        part = study.of_variant(variant)
        schedules = part.schedules(dynamic=False)
        counts = [schedule.end for schedule in schedules]
        shown = [outcomes.estimate(part, schedule) for schedule in schedules]
        ax.plot(counts, [each.value for each in shown], **_look(place), label=variant)
        spread = [(each.low, each.high) for each in shown]
        ax.vlines(counts, *np.array(spread).T, color=style.setting_colour(place), linewidth=1.4, alpha=0.55)
    _frame(study, ax)
    ax.set_ylim(bottom=0)
    ax.set_ylabel(f"final score ({study.score.unit})")
    ax.set_title("What was learned, by topology")
    style.note(ax, "IQM of all runs; lines: 95 % intervals")
    return ax


def plot_times(study: Study, ax: Axes) -> Axes:
    """Draw the median time to a score over workers, a line for each setting; at the top: most runs never did."""
    score, (unit_s, unit) = _mark(study), study.time_unit
    times = {variant: _medians(study.of_variant(variant), score) for variant in study.done_variants}
    finite = [time for each in times.values() for time in each.values() if np.isfinite(time)]
    never = _NEVER * max(finite, default=unit_s)
    for place, (variant, medians) in enumerate(times.items()):
        heights = [min(time, never) / unit_s for time in medians.values()]
        ax.plot(list(medians), heights, **_look(place), label=variant)
    ax.set_yscale("log")
    _frame(study, ax)
    ax.axhline(never / unit_s, color=style.WARNING, linewidth=1.2)
    ax.annotate("most runs never", (ax.get_xlim()[0], never / unit_s), (4, 4), textcoords="offset points", fontsize=8.5,
                color=style.WARNING)  # fmt: skip
    style.plain(ax.yaxis)
    ax.set_ylabel(f"time ({unit})")
    ax.set_title(f"Time to a mean score of {score:g}")
    style.note(ax, "medians over runs")
    return ax


def plot_speeds(study: Study, ax: Axes) -> Axes:
    """Draw steps per second over workers, a line for each setting."""
    _draw_medians(study, ax, "steps_per_s")
    ax.set_yscale("log")
    style.plain(ax.yaxis)
    ax.set_ylabel("environment steps per second")
    ax.set_title("Speed, by topology")
    style.note(ax, "medians over runs, whole runs")
    return ax


def plot_staleness(study: Study, ax: Axes) -> Axes:
    """Draw the mean staleness over workers, a line for each setting."""
    _draw_medians(study, ax, "staleness_mean")
    ax.set_yscale("symlog", linthresh=1.0)
    ax.set_ylim(bottom=0)
    style.plain(ax.yaxis)
    ax.set_ylabel("mean staleness (updates)")
    ax.set_title("Staleness, by topology")
    style.note(ax, "medians over runs")
    return ax


def _draw_medians(study: Study, ax: Axes, column: str) -> None:
    for place, variant in enumerate(study.done_variants):
        medians = _by_count(study.of_variant(variant), column)
        ax.plot(list(medians), list(medians.values()), **_look(place), label=variant)
    _frame(study, ax)


def _look(place: int) -> dict[str, Any]:
    colour = style.setting_colour(place)
    return {"color": colour, "marker": style.marker(place), "markersize": 6, "markeredgecolor": "white"}


def _frame(study: Study, ax: Axes) -> None:
    style.worker_axis(ax, sorted({schedule.end for schedule in study.schedules(dynamic=False)}))
    style.legend(ax, "setting")


def _mark(study: Study) -> float:
    """Return the highest score that most runs of some setting and worker count have reached."""
    return max(reference_score(study.of_variant(variant)) for variant in study.done_variants)


def _medians(part: Study, score: float) -> dict[int, float]:
    """Return the median time to a score, by worker count."""
    return _by_count(part, f"time_to_{score:g}_s")


def _by_count(part: Study, column: str) -> dict[int, float]:
    """Return the median of a column over runs, by worker count."""
    return {s.end: float(np.median(part.values(s, column))) for s in part.schedules(dynamic=False)}


def sentence(study: Study) -> str:
    """Say which setting comes to the score first, and with which numbers of workers each gets there at all."""
    score, said, ranked = _mark(study), [], []
    for variant in study.done_variants:
        medians = _medians(study.of_variant(variant), score)
        fine = {count: time for count, time in medians.items() if np.isfinite(time)}
        if not fine:
            said.append(f"{variant} with no number of workers")
            continue
        best = min(fine, key=lambda count: fine[count])
        ranked.append((fine[best], f"{variant} with {best} workers ({duration(fine[best])})"))
        said.append(f"{variant} with {listed(map(str, fine))}")
    first = f", first of all {min(ranked)[1]}" if ranked else ""
    return f"Most runs reach a mean score of {score:g}: {'; '.join(said)}{first}."


def sentence_of_speed(study: Study) -> str:
    """Say how fast each setting gets at most, and with how many workers: the fastest first."""
    fastest = []
    for variant in study.done_variants:
        speeds = _by_count(study.of_variant(variant), "steps_per_s")
        most = max(speeds, key=lambda count: speeds[count])
        fastest.append((speeds[most], f"{variant} plays {number(speeds[most])} steps/s with {most} workers"))
    return f"At most, {'; '.join(words for _, words in sorted(fastest, reverse=True))}."


def plot_beside(study: Study, ax: Axes, axis: str) -> Axes:
    """Draw the score of every setting with the same number of workers over env_steps or clock_s."""
    part = side_by_side(study)
    plot_score_over(part, ax, axis)
    counts = sorted(set(part.done["end"]))
    ax.set_title(f"{ax.get_title(loc='left')}, {listed(map(str, counts))} workers")
    return ax


def applies(study: Study) -> bool:
    """Apply to studies of topologies with several worker counts each."""
    counts = study.done[~study.done["dynamic"]].groupby("variant")["end"].nunique()
    return varies_topology(study) and not study.compares_settings and study.takes_time and bool((counts > 1).any())


def _learned(study: Study) -> bool:
    return bool((study.done["final_score"] >= study.score.learned_above).any())


FIGURE = StudyFigure(
    name="topologies",
    title="Topologies by number of workers",
    panels=(
        plot_ends,
        plot_times,
        plot_speeds,
        plot_staleness,
        partial(plot_beside, axis="clock_s"),
        partial(plot_beside, axis="env_steps"),
    ),
    sentence=sentence,
    section="settings",
    applies=lambda study: applies(study) and _learned(study),
    whole=True,
)
SPEED = StudyFigure(
    name="topology_speed",
    title="Speed by number of workers",
    panels=(plot_speeds, plot_staleness),
    sentence=sentence_of_speed,
    section="settings",
    applies=lambda study: applies(study) and not _learned(study),
    whole=True,
)


def figures(study: Study) -> list[StudyFigure]:
    """Return what there is to see of topologies: how they learn, or, if none does, how fast they are."""
    return [*FIGURE.of(study), *SPEED.of(study)]
