"""Figures that can be read: no words cut or on top of each other, markers of their own, and no figure drawn twice."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from analysis.data import outcomes
from analysis.data.load import load_study
from analysis.figures import catalogue, drawing, style
from analysis.figures.main import main_figure
from analysis.figures.sentences import end_of
from analysis.pages.tables import schedules as schedules_table
from tests.analysis_studies import made_up

RESULTS = Path(__file__).parents[1] / "results"
STUDIES = ("report", "map", "remedies", "workers", "sensitivity", "frames")
LOOKED_AT = ("main", "frontier", "settings", "arrivals", "workers_alive", "cliff", "saturation")


@pytest.fixture(scope="module", params=STUDIES)
def study(request):
    return load_study(RESULTS / request.param)


def hidden_ticks(figure: Figure) -> set[int]:
    """Return the ids of labels of ticks beyond their axes' limits, which matplotlib keeps but does not draw."""
    names = set()
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            room = 1e-9 * (high - low)
            ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
            names |= {id(t.label1) for t in ticks if not low - room <= t.get_loc() <= high + room}
    return names


def seen(figure: Figure) -> list[tuple[str, Bbox]]:
    """Return all words that a figure shows, and where."""
    figure.canvas.draw()
    hidden = hidden_ticks(figure)
    texts = [text for text in figure.findobj(Text) if id(text) not in hidden]
    shown = [text for text in texts if text.get_visible() and text.get_text().strip()]
    return [(text.get_text(), text.get_window_extent()) for text in shown]


def flaws(figure: Figure) -> list[str]:
    """Say which words of a figure are cut by its edge, and which lie on each other."""
    places = seen(figure)
    page = figure.bbox
    cut = [
        f"cut: {words}"
        for words, box in places
        if box.x0 < page.x0 - 1 or box.y0 < page.y0 - 1 or box.x1 > page.x1 + 1 or box.y1 > page.y1 + 1
    ]
    return cut + [
        f"{one} on {other}"
        for (one, a), (other, b) in itertools.combinations(places, 2)
        if overlap(a, b) and one != other
    ]


def overlap(one: Bbox, other: Bbox) -> bool:
    """Return whether two boxes share more than the pixel at which they touch."""
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    height = min(one.y1, other.y1) - max(one.y0, other.y0)
    return width > 1 and height > 2  # boxes of words reach a little beyond their ink


def test_no_words_are_cut_or_on_top_of_each_other(study):
    entries = [main_figure(study), *catalogue.catalogue(study)]
    found = []
    for entry in entries:
        if entry.name in LOOKED_AT:
            with style.paper():
                drawn = drawing.draw(entry.part(study), entry.panels)
                figures = [*drawn.panels, *([drawn.legend] if drawn.legend else [])]
                found += [f"{entry.name}: {flaw}" for figure in figures for flaw in flaws(figure)]
    assert found == []


def test_every_schedule_of_a_study_has_a_marker_of_its_own(study):
    schedules = [s for variant in study.done_variants for s in study.of_variant(variant).schedules()]
    markers = {schedule.label: style.shape(schedule) for schedule in schedules}
    assert len(set(markers.values())) == len(markers)
    shown = study.shown.schedules()
    assert len({style.shape(schedule) for schedule in shown}) == len(shown)


def test_no_figure_stands_on_the_page_twice(study):
    panels = [entry.panels for entry in [main_figure(study), *catalogue.catalogue(study)]]
    assert len(set(panels)) == len(panels)


def test_panels_share_one_legend_if_they_say_the_same():
    study = load_study(RESULTS / "report")
    entry = catalogue.by_name(study, "score_axes")
    with style.paper():
        drawn = drawing.draw(entry.part(study), entry.panels)
    assert drawn.legend is not None
    assert not any(ax.get_legend() for ax in drawn.axes)


def test_no_interval_of_a_score_goes_below_the_lowest_there_is():
    study = made_up({"4": {"final_score": 5.0}, "10": {"final_score": -5.0}}, seeds=3, noise=0.8)
    few, many = study.schedules()
    assert outcomes.estimate(study, few).low < 0  # Student's t of three runs that differ much
    assert outcomes.shown_estimate(study, few).low == 0.0
    assert "[0, " in end_of(study, few)
    assert outcomes.shown_estimate(study, many) == outcomes.estimate(study, many)  # a game may have scores below 0


def test_tables_have_no_scores_below_the_lowest_there_is():
    table = schedules_table(load_study(RESULTS / "workers"))
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
