"""Figures that can be read: no words cut or on top of each other, markers of their own, and no figure drawn twice."""

import itertools
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from analysis.data import outcomes
from analysis.data.load import load_study
from analysis.data.study import Study
from analysis.figures import catalogue, drawing, style
from analysis.figures.figure import StudyFigure
from analysis.figures.main import main_figure
from analysis.pages.tables import schedules as schedules_table
from experiments.agreement import figure as agreement
from experiments.agreement.comparison import Setting
from experiments.scale import figure as scale
from tests.analysis_studies import made_up
from tests.readable import flaws

RESULTS = Path(__file__).parents[1] / "results"
STUDIES: dict[str, set[str]] = {  # and the figures of each that are harder to read than those of another
    "report": {"main", "1_fixed_workers", "2_6to12", "workers_alive", "saturation", "episodes", "queue", "score_axes"},
    "map": {"main", "settings", "cliff"},
    "edge": {"main"},
    "remedies": {"main", "arrivals", "frontier"},
    "workers": {"main", "frontier"},
    "paced": {"twins"},
    "sensitivity": {"settings"},
    "frames": {"settings"},
    "published": {"overlay", "frontier"},
    "slides": {"main", "frontier"},
    "dose": {"main", "settings", "frontier"},
    "factors": {"main", "settings", "cliff"},
    "algorithms": {"main", "algorithm_axes", "settings"},
    "table2": {"main"},
    "frontier": {"main", "stations"},
    "topologies": {"main"},
    "hours": {"main"},
}


@pytest.fixture(scope="module", params=STUDIES)
def study(request):
    return loaded(request.param)


@cache
def loaded(name: str) -> Study:
    return load_study(RESULTS / name)


@cache
def looked_at(name: str) -> list[StudyFigure]:
    """Return the figures of a study that are looked at."""
    there = {entry.name: entry for entry in [main_figure(loaded(name)), *catalogue.catalogue(loaded(name))]}
    return [there[figure] for figure in sorted(STUDIES[name])]


def flaws_of(study: Study, entry: StudyFigure) -> list[str]:
    """Say what can't be read of a figure."""
    with style.paper():
        drawn = drawing.draw(entry.part(study), entry.panels)
        figures = [*drawn.panels, *([drawn.legend] if drawn.legend else [])]
        return [f"{entry.name}: {flaw}" for figure in figures for flaw in flaws(figure)]


def test_no_words_are_cut_or_on_top_of_each_other(study):
    assert [flaw for entry in looked_at(study.name) for flaw in flaws_of(study, entry)] == []


def test_every_figure_that_there_is_is_looked_at():
    panels = [panel for name in STUDIES for entry in looked_at(name) for panel in entry.panels]
    seen = {getattr(panel, "func", panel).__module__ for panel in panels}
    assert {reference.partition(":")[0] for reference in catalogue.FIGURES} <= seen


class Committed(NamedTuple):
    """A row of validation.csv, as its figure takes it."""

    row: dict[str, str]

    @property
    def setting(self) -> Setting:
        return Setting(self.row["game"], self.row["transport"], int(self.row["workers"]))

    def values(self, quantity: str) -> tuple[float, float]:
        return float(self.row[f"{quantity}_predicted"]), float(self.row[f"{quantity}_measured"])


def test_the_figures_of_validation_and_scale_can_be_read():
    measured = pd.read_csv(RESULTS / "validation/tables/validation.csv", dtype=str).to_dict("records")
    scaled = pd.read_csv(RESULTS / "scale/tables/scale.csv").to_dict("records")
    with style.paper():
        assert flaws(agreement.figure([Committed(row) for row in measured])) == []
        assert flaws(scale.figure(scaled)) == []


def test_words_that_are_cut_or_on_top_of_each_other_are_found():
    figure = Figure()
    figure.text(0.5, 0.5, "one")
    figure.text(0.5, 0.5, "another")
    figure.text(0.99, 0.2, "beyond the edge")
    figure.subplots().set_xticks([0.5, 0.6], ["860", "860"])
    assert flaws(figure)[:2] == ["cut: beyond the edge", "twice: 860"]
    assert "one on another" in flaws(figure)


def test_every_schedule_of_a_study_has_a_marker_of_its_own(study):
    schedules = [s for variant in study.done_variants for s in study.of_variant(variant).schedules()]
    markers = {schedule.label: style.shape(schedule) for schedule in schedules}
    assert len(set(markers.values())) == min(len(markers), len(style._MARKERS))
    shown = study.shown.schedules()
    looks = {(style.shape(schedule), style.tone(schedule)) for schedule in shown}
    assert len(looks) == len(shown)
    assert len({shape for shape, _ in looks}) == min(len(shown), len(style._MARKERS))


def test_no_figure_stands_on_the_page_twice(study):
    panels = [entry.panels for entry in [main_figure(study), *catalogue.catalogue(study)]]
    assert len(set(panels)) == len(panels)


def test_panels_share_one_legend_if_they_say_the_same():
    study = loaded("report")
    entry = catalogue.by_name(study, "score_axes")
    with style.paper():
        drawn = drawing.draw(entry.part(study), entry.panels)
    assert drawn.legend is not None
    assert not any(ax.get_legend() for ax in drawn.axes)


def test_no_interval_of_a_score_goes_below_the_lowest_there_is():
    study = made_up({"4": {"final_score": 5.0}, "10": {"final_score": -5.0}}, seeds=10, noise=3.0)
    few, many = study.schedules()
    assert study.estimate(study.schedules()[0], "final_score").low <= outcomes.estimate(study, few).low
    assert outcomes.estimate(study, few).low >= 0.0
    assert outcomes.estimate(study, many) == study.estimate(many, "final_score")  # a game may have scores below 0


def test_tables_have_no_scores_below_the_lowest_there_is():
    table = schedules_table(loaded("workers"))
    assert (table[["final_score_low", "mean_score_low"]].dropna() >= 0).all(axis=None)


DEUTERANOPIA = np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]])  # Machado et al. 2009
JUST_SEEN = 6.0  # as a CIE 1976 difference, on lines and dots


def lab(colour: str) -> np.ndarray:
    """Return a colour's place in CIELAB as somebody without green cones sees it."""
    linear = np.array([c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)])
    seen = np.clip(DEUTERANOPIA @ linear, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ seen
    x, y, z = (np.cbrt(v) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def difference(one: str, other: str) -> float:
    return float(np.linalg.norm(lab(one) - lab(other)))


def test_the_differences_are_those_of_people_without_green_cones():
    assert difference("#ff0000", "#808000") < difference("#0072b2", "#d55e00") / 2  # red and olive are nearly one
    assert difference("#000000", "#ffffff") == pytest.approx(100, abs=1)


def test_colours_with_their_markers_survive_deuteranopia(study):
    """Two schedules of a figure have two markers, and two colours or two kinds of line."""
    shown = study.shown.schedules()[: len(style._SETTINGS)]  # of more settings than that, markers alone are unique
    for one, other in itertools.combinations(shown, 2):
        apart = difference(style.tone(one), style.tone(other))
        dashes = {str(style.line(schedule)["linestyle"]) for schedule in (one, other)}
        assert style.shape(one) != style.shape(other)
        assert apart > JUST_SEEN or len(dashes) == 2, (one.label, other.label, apart)


def test_settings_are_told_apart_by_colour_alone():
    for one, other in itertools.combinations(style._SETTINGS, 2):
        assert difference(one, other) > 2 * JUST_SEEN


def test_worker_counts_get_brighter_for_everybody():
    brightness = [lab(style.colour(workers))[0] for workers in (1, 4, 10, 20, 40, 80)]
    assert brightness == sorted(brightness)
    assert min(np.diff(brightness)) > 5
