"""The score's unit, its marks and what counts as learned are the game's: another game is spoken of in its own words."""

import re

import pytest

from a3c_core.games.base import FLAPPY_BIRD
from analysis.data import load
from analysis.data.score import StudyScore, complete, score_of
from analysis.figures import drawing, style
from analysis.figures.catalogue import catalogue
from analysis.figures.main import main_figure
from analysis.pages import page, readme, tables
from tests.analysis_studies import make

BALANCING = StudyScore("seconds balanced", "seconds", learned_above=0.01, marks=(0.01, 0.25))


@pytest.fixture(scope="module")
def folder(tmp_path_factory, plain_pictures):
    axes = {"workers": ["4", "20", "4->8"], "seed": [0, 1]}
    return make(tmp_path_factory.mktemp("results") / "balancing", axes, episodes=300)


@pytest.fixture
def study(folder, monkeypatch):
    """The study of a game with another score."""
    monkeypatch.setattr(load, "score_of", lambda environment_id, learned_above=None: BALANCING)
    return load.load_study(folder)


def test_amounts():
    assert score_of(FLAPPY_BIRD).amount(1.0) == "1 pipe"
    assert score_of(FLAPPY_BIRD).amount(2.5) == "2.5 pipes"


OPEN = complete("return", "points", None, ())


def test_a_game_that_leaves_its_score_open_has_a_page_too(folder, monkeypatch):
    monkeypatch.setattr(load, "score_of", lambda environment_id, learned_above=None: OPEN)
    study = load.load_study(folder)
    html = page.render(study, tables.all_tables(study))
    assert "in return per episode" in html
    assert not study.runs["collapsed"].any()


def test_runs_are_measured_by_the_marks_of_their_game(study):
    assert {"time_to_0.25_s", "episodes_to_0.01"} <= set(study.runs)
    assert "time_to_50_s" not in study.runs
    assert not study.runs["collapsed"].any()  # all reach what counts as learned here


def test_nothing_that_is_written_speaks_of_another_games_score(study, folder):
    written = tables.all_tables(study)
    html = page.render(study, written)
    words = re.sub(r"base64,[^\"]+", "", html)
    for text in (words, readme.render(study, folder), *map(tables.csv, written.values())):
        assert "pipe" not in text
    assert "in seconds balanced per episode" in html


def test_axes_carry_the_games_unit(study):
    labels = []
    for figure in (main_figure(study), *catalogue(study)):
        with style.paper():
            labels += [ax.get_ylabel() for ax in drawing.draw(figure.part(study), figure.panels).axes]
    assert {"mean score (seconds)", "final score (seconds)"} <= set(labels)
    assert not any("pipe" in label for label in labels)
