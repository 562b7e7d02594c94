"""Figures: every one draws on real runs, has a sentence that reads it, and speaks the one visual language."""

import itertools
import os
import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from analysis.data.load import load_study
from analysis.data.study import Schedule, Study
from analysis.figures import arrivals, catalogue, drawing, fixed_workers, style
from analysis.figures.main import main_figure, plot_bearing
from analysis.figures.rounding import rounded
from analysis.pages import answer
from tests.analysis_studies import joined, made_up, make, make_tiny
from tests.sweeps import ROOT


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return load_study(make_tiny(tmp_path_factory.mktemp("results")))


@pytest.fixture(scope="module")
def capacity(tmp_path_factory):
    """A study over workers and the cost of an update."""
    axes = {"update_s": [0.002, 0.06], "workers": ["2", "12"], "seed": [0, 1]}
    return load_study(make(tmp_path_factory.mktemp("results") / "capacity", axes, episodes=300))


@pytest.fixture(scope="module")
def remedies(tmp_path_factory):
    """A study that compares settings with one worker count."""
    axes = {"exchange.queue": ["unbounded", "bounded", "dropping"], "workers": ["30"], "seed": [0, 1]}
    return load_study(make(tmp_path_factory.mktemp("results") / "remedies", axes, episodes=300))


def names(study):
    return [entry.name for entry in catalogue.catalogue(study)]


def test_the_reports_figures_come_first_and_under_their_numbers(study):
    assert names(study)[:4] == ["1_fixed_workers", "2_6to12", "4_10to32", "workers_alive"]


def test_each_kind_of_study_has_its_own_main_figure(study, capacity, remedies):
    assert "plot_learning" in str(main_figure(study).panels)
    assert "plot_collapse_map" in str(main_figure(capacity).panels)
    assert "plot_settings" in str(main_figure(remedies).panels)
    assert "collapse_map" not in names(study) + names(remedies)
    assert "1_fixed_workers" not in names(remedies)


@pytest.mark.parametrize("kind", ["study", "capacity", "remedies"])
def test_every_figure_draws_and_says_something(kind, request):
    data = request.getfixturevalue(kind)
    for entry in [main_figure(data), *catalogue.catalogue(data)]:
        with style.paper():
            figure = drawing.draw(entry.part(data), entry.panels)
        assert len(figure.axes) == len(entry.panels)
        for ax in figure.axes:
            assert ax.get_title(loc="left"), entry.name
            assert ax.get_xlabel(), entry.name
            assert ax.lines or ax.collections or ax.patches, entry.name
        says = entry.says(data)
        assert says[0].isupper() or says[0].isdigit() or says.startswith(tuple(data.variants)), says
        assert says.endswith(".")
        assert "nan" not in says
        assert "unknown" not in says


COSTS = {"staleness_mean": 9.0, "limit_name": "N0", "limit_workers": 13, "n0": 13, "n_star": 14}
COSTS |= {"untrained_cycle_s": 0.4, "untrained_service_s": 0.03}


def test_the_answer_is_one_fixed_sentence_and_a_table():
    parts = [
        made_up(
            {"4": {"final_score": score, **COSTS}, "20": {"final_score": 0.1, **COSTS, "collapsed": True}},
            **{"learner.learning_rate": rate},
        )
        for rate, score in ((1e-4, 0.1), (1e-3, 36.0))
    ]
    study = joined(*parts)
    text = answer.answer(study)
    assert text.startswith("10 of 40 runs learned: their final score is at least 1 pipe (the game's threshold).")
    assert "N0 = C / S predicted that the master keeps up with 13 workers" in text
    table = answer.answer_table(study)
    assert [row[:3] for row in table.rows] == [
        ["learning rate 0.0001", "4", "0 of 10 (0 % to 28 %)"],
        ["learning rate 0.0001", "20", "0 of 10 (0 % to 28 %)"],
        ["learning rate 0.001", "4", "10 of 10 (72 % to 100 %)"],
        ["learning rate 0.001", "20", "0 of 10 (0 % to 28 %)"],
    ]
    staleness = table.columns.index("staleness (updates)")
    assert [row[staleness] == "grows" for row in table.rows] == [False, True, False, True]
    assert answer.as_markdown(table).splitlines()[2].startswith("| learning rate 0.0001 | 4 |")


def test_settings_are_told_apart_where_they_are_compared(remedies):
    shown = remedies.shown.schedules()
    assert [schedule.title for schedule in shown] == ["queue unbounded", "queue bounded", "queue dropping"]
    assert len({style.tone(schedule) for schedule in shown}) == 3


def grey(colour):
    red, green, blue = to_rgb(colour)
    return 0.299 * red + 0.587 * green + 0.114 * blue


def test_colours_keep_their_order_in_grey():
    shades = [grey(style.colour(workers)) for workers in (1, 2, 4, 6, 10, 12, 20, 32, 40)]
    assert shades == sorted(shades)
    assert min(after - before for before, after in itertools.pairwise(shades)) > 0.005
    assert grey(style.colour(40)) < 0.75  # still seen on white


def test_dynamic_schedules_are_dashed_and_markers_differ():
    fixed, dynamic = Schedule("20", 20, 20), Schedule("10→20", 10, 20)
    assert style.line(fixed)["linestyle"] == "solid"
    assert style.line(dynamic)["linestyle"] != "solid"
    assert style.line(fixed)["color"] == style.line(dynamic)["color"]
    assert len({style.marker(place) for place in range(12)}) == 12


def test_images_are_the_same_bytes_whatever_the_users_settings(study):
    entry = catalogue.by_name(study, "queue")

    def drawn():
        with style.paper():
            return drawing.image(drawing.draw(entry.part(study), entry.panels))

    first = drawn()
    with matplotlib.rc_context({"lines.linewidth": 9, "axes.facecolor": "red", "font.size": 30}):
        assert drawn() == first
    for trace in (b"matplotlib.org", b"Software"):
        assert trace not in first


def test_an_unknown_figure_is_named_with_those_there_are(study):
    with pytest.raises(KeyError, match="1_fixed_workers"):
        catalogue.by_name(study, "nonsense")


def test_a_planned_schedule_without_runs_is_a_gap(study):
    lost = study.runs["schedule"] == "6→12"
    study.runs.loc[lost, "status"], backup = "failed", study.runs["status"].copy()
    try:
        partly = Study(study.name, study.question, study.axes, study.runs.copy(), study.curves)
    finally:
        study.runs["status"] = backup
    assert "2_6to12" not in names(partly)
    assert catalogue.gaps(partly) == ["6→12: not drawn, because none of its runs is done."]


def test_panels_return_their_axes(study):
    with style.paper():
        for panel in (fixed_workers.plot_fixed_score, plot_bearing, arrivals.plot_load):
            ax = Figure().add_subplot()
            assert panel(study, ax) is ax


DRAWN = """
import hashlib
from pathlib import Path
from analysis.data.load import load_study
from analysis.figures import catalogue, drawing, style

study = load_study(Path("results/report"))
for name in ("saturation", "frontier"):
    entry = catalogue.by_name(study, name)
    with style.paper():
        picture = drawing.image(drawing.draw(entry.part(study), entry.panels))
    print(name, hashlib.sha256(picture).hexdigest(), entry.says(study))
"""


def test_figures_are_the_same_bytes_whatever_the_processor_offers():
    """Without its vector instructions NumPy's last bits differ, and the order of equal numbers when they are sorted."""
    features = " ".join(np._core._multiarray_umath.__cpu_dispatch__)
    command = [sys.executable, "-W", "ignore", "-c", DRAWN]
    drawn = [
        subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, env={**os.environ, **changed})
        for changed in ({}, {"NPY_DISABLE_CPU_FEATURES": features})
    ]
    assert drawn[0].stdout == drawn[1].stdout


def test_drawn_numbers_have_six_digits_that_matter():
    assert rounded([[0.1 + 0.2, 123456.7], [-1 / 3e9, np.inf]]).tolist() == [[0.3, 123457.0], [-3.33333e-10, np.inf]]
    assert np.isnan(rounded(np.nan))
