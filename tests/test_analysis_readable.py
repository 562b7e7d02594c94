"""Figures that can be read: no words cut or on top of each other, markers of their own, and no figure drawn twice."""

import itertools
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from analysis.data.load import load_study
from analysis.figures import catalogue, drawing, style
from analysis.figures.main import main_figure

RESULTS = Path(__file__).parents[1] / "results"
STUDIES = ("report", "map", "remedies", "workers", "sensitivity", "frames")
LOOKED_AT = ("main", "frontier", "settings", "arrivals", "workers_alive", "cliff")


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
