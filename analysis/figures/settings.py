"""Settings side by side: the final score for each, and over the episodes where the study compares settings."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from analysis.data import outcomes, statistics
from analysis.data.study import Schedule, Study
from analysis.figures import style
from analysis.figures.figure import StudyFigure
from analysis.figures.panels import legend_title
from analysis.figures.score_axes import plot_score_over
from analysis.words import apart, capital, listed, number

_ROW = 0.8  # of the distance between rows: what the schedules of a setting take
_SCHEDULE_INCHES = 0.13  # of a row's height, for each of its schedules
_MOST_NAMED = 6  # settings in a row that people still read


def plot_settings(study: Study, ax: Axes) -> Axes:
    """Draw the final score for every setting, one row each, one marker per schedule."""
    variants = [variant for variant in study.variants if len(study.of_variant(variant).done)][::-1]
    parts = [study.of_variant(variant) for variant in variants]
    most = max(len(part.schedules()) for part in parts)
    for place, part in enumerate(parts):
        schedules = part.schedules()
        for order, schedule in enumerate(schedules):
            height = place + _ROW * (0.5 - (order + 0.5) / len(schedules))
            _draw_end(part, ax, schedule, height, with_share=most == 1)
    style.rows(ax, variants, inches=_SCHEDULE_INCHES * most)
    ax.set_xlim(left=min(0.0, ax.get_xlim()[0]))
    ax.set_xlabel(f"final score ({study.score.unit})")
    ax.set_title("Final score, by setting")
    some = any(outcomes.is_mixed(part, schedule) for part in parts for schedule in part.schedules())
    pale = "; pale: not all runs learned" if most > 1 and some else ""
    style.note(ax, f"markers: IQM of all runs; dots: runs{pale}; lines: 95 % intervals")
    for schedule in {schedule.label: schedule for part in parts for schedule in part.schedules()}.values():
        ax.plot([], [], style.shape(schedule), label=schedule.label, **_look(schedule, style.tone(schedule)))
    style.legend(ax, legend_title(study))
    return ax


def _look(schedule: Schedule, colour: Any) -> dict[str, Any]:
    """Return how the marker of a schedule looks: hollow, if it is dynamic."""
    face, edge = ("white", colour) if schedule.dynamic else (colour, "white")
    return {"color": colour, "markerfacecolor": face, "markeredgecolor": edge, "markersize": 8,
            "markeredgewidth": 0.9, "linestyle": "none", "zorder": 3}  # fmt: skip


def _draw_end(study: Study, ax: Axes, schedule: Schedule, height: float, with_share: bool) -> None:
    """Draw a schedule's final score with its spread, pale if not all of its runs learned."""
    shown = outcomes.estimate(study, schedule)
    mixed = outcomes.is_mixed(study, schedule)
    colour = _pale(style.tone(schedule)) if mixed and not with_share else style.tone(schedule)
    values = study.values(schedule, "final_score")
    ax.plot(values, [height] * len(values), ".", markersize=4, alpha=0.5, color=colour, zorder=2)
    ax.plot([shown.low, shown.high], [height] * 2, linewidth=2, alpha=0.6, color=colour, zorder=3)
    ax.plot(shown.value, height, style.shape(schedule), **_look(schedule, colour))
    if mixed and with_share:
        hits = outcomes.learned(study, schedule)
        ax.annotate(f"{hits.sum()} of {len(hits)} learned", (shown.value, height), (7, 5), textcoords="offset points",
                    fontsize=8, color=style.tone(schedule))  # fmt: skip


def _pale(colour: str) -> tuple[float, ...]:
    """Return a colour half way to white; one that lets lines shine through would not be read as the same."""
    return tuple(0.5 * (part + 1.0) for part in to_rgb(colour))


def plot_settings_score(study: Study, ax: Axes) -> Axes:
    """Draw the score over episodes, one line for each setting."""
    return plot_score_over(study.shown, ax, "episodes")


def sentence(study: Study) -> str:
    """Say between which settings the final scores lie, and in which some or all runs learned nothing."""
    parts = {variant: study.of_variant(variant) for variant in study.done_variants}
    cases = [(part, schedule) for part in parts.values() for schedule in part.schedules()]
    ends = {_name(part, s): outcomes.estimate(part, s).value for part, s in cases if outcomes.learned(part, s).any()}
    said = [f"{_name(part, s)} ({outcomes.learned(part, s).sum()} of {len(outcomes.learned(part, s))})"
            for part, s in cases if not outcomes.learned(part, s).all()]  # fmt: skip
    if len(said) > _MOST_NAMED:
        said = [f"{len(said)} of {len(cases)} combinations"]
    failed = f"not all runs learned with {listed(said)}" if said else ""
    if not ends:
        return _of_the_best(cases) or f"{capital(failed)}."
    low, high = min(ends, key=lambda k: ends[k]), max(ends, key=lambda k: ends[k])
    least, most = number(ends[low]), f"{number(ends[high])} {study.score.unit}"
    span = f"Final scores lie between {least} ({low}) and {most} ({high})"
    return f"{span}; {failed}." if failed else f"{span}."


def _of_the_best(cases: list[tuple[Study, Schedule]]) -> str:
    """Say how far the best of settings that all learned too little is above the others, seed by seed; "" if unknown."""
    same = len({schedule.label for _, schedule in cases}) == 1
    names = {case: case[0].variants[0] if same else _name(*case) for case in cases}
    best, *others = sorted(cases, key=lambda case: -case[0].estimate(case[1], "final_score").value)[:_MOST_NAMED]
    said = []
    for other in others:
        ours, theirs = (part.values(schedule, "final_score") for part, schedule in (best, other))
        seeds = ours.index.intersection(theirs.index)
        if len(seeds) < 2:
            return ""
        difference = statistics.paired_difference(ours[seeds].to_numpy(), theirs[seeds].to_numpy())
        chance = ", which may be chance" if difference.low <= 0 else ""
        said.append(f"{apart(difference, best[0].score.unit)} than {names[other]}{chance}")
    return f"{names[best]} ends {listed(said)}."


def _name(part: Study, schedule: Schedule) -> str:
    return f"{part.variants[0]} with {schedule.title}"


def figures(study: Study) -> list[StudyFigure]:
    """Return the figure, if there are settings to compare; with curves, if the study is about nothing else."""
    if study.done["variant"].nunique() < 2:
        return []
    curves = (plot_settings_score,) if study.compares_settings else ()
    panels = (plot_settings, *curves)
    return [StudyFigure("settings", "Score by setting", panels, sentence, section="settings", whole=True)]
