"""The catalogue: which figures there are, in the order of the page, and which of them a study has."""

from collections import Counter
from collections.abc import Sequence

from analysis.data.study import Study, StudyError
from analysis.figures.figure import SECTIONS, Figures, StudyFigure
from analysis.figures.main import MAIN, main_figure
from analysis.references import resolve

FIGURES = (
    "analysis.figures.settings:figures",
    "analysis.figures.edge:FIGURE",
    "analysis.figures.collapse_map:FIGURE",
    "analysis.figures.factors:FIGURE",
    "analysis.figures.dose:FIGURE",
    "analysis.figures.topologies:figures",
    "analysis.figures.domination:FIGURE",
    "analysis.figures.algorithms:figures",
    "analysis.figures.table2:FIGURE",
    "analysis.figures.overlay:FIGURE",
    "analysis.figures.fixed_workers:FIGURE",
    "analysis.figures.dynamic_workers:figures",
    "analysis.figures.workers_alive:FIGURE",
    "analysis.figures.cliff:FIGURE",
    "analysis.figures.arrivals:FIGURE",
    "analysis.figures.queue:FIGURE",
    "analysis.figures.stations:FIGURE",
    "analysis.figures.hours:FIGURE",
    "analysis.figures.twins:FIGURE",
    "analysis.figures.saturation:FIGURE",
    "analysis.figures.episode_costs:FIGURE",
    "analysis.figures.score_axes:figures",
    "analysis.figures.frontier:FIGURE",
)


def load(references: Sequence[str] = FIGURES) -> tuple[Figures, ...]:
    """Return the figures that "module:NAME" refer to; raise StudyError for what is no figure."""
    found = tuple(map(resolve, references))
    for reference, figures in zip(references, found, strict=True):
        if not isinstance(figures, StudyFigure) and not callable(figures):
            raise StudyError(f"{reference} is no figure: it must be a StudyFigure or a function from a study to some")
    return found


def catalogue(study: Study, more: Sequence[Figures] = ()) -> list[StudyFigure]:
    """Return the figures that the data of a study allow, in the order of the page; `more` are not the package's."""
    if not study.shown.schedules():
        return []
    found = [figure for figures in (*load(), *more) for figure in _of(figures, study)]
    _check(found)
    main = main_figure(study)
    return [figure for figure in found if figure.panels != main.panels]  # none stands on the page twice


def by_name(study: Study, name: str) -> StudyFigure:
    """Return the figure of that name; say which there are if there is none."""
    found = {figure.name: figure for figure in [main_figure(study), *catalogue(study)]}
    if name not in found:
        raise KeyError(f"no figure {name!r} in this study; it has {', '.join(found)}")
    return found[name]


def gaps(study: Study) -> list[str]:
    """Say which of the report's figures can't be drawn yet: their runs are planned, but none is done."""
    main = study.main
    done = {schedule.label for schedule in main.schedules()}
    waiting = [schedule for schedule in main.schedules(done=False) if schedule.label not in done]
    return [f"{schedule.title}: not drawn, because none of its runs is done." for schedule in waiting]


def _of(figures: Figures, study: Study) -> Sequence[StudyFigure]:
    return figures.of(study) if isinstance(figures, StudyFigure) else figures(study)


def _check(figures: Sequence[StudyFigure]) -> None:
    """Refuse figures that would overwrite each other or stand nowhere on the page."""
    for name, times in Counter([MAIN, *(figure.name for figure in figures)]).items():
        if times > 1:
            raise StudyError(f"{times} figures are called {name}: each needs a name of its own")
    for figure in figures:
        if figure.section not in SECTIONS:
            raise StudyError(f"the figure {figure.name} has no section {figure.section}: it is {', '.join(SECTIONS)}")
