"""Studies of topologies: who is at work, where staleness comes from, which settings beat which, and GA3C's claim."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.claims.catalogue import judge_all
from analysis.data.domination import beats, outlook
from analysis.data.load import load_study
from analysis.data.stations import ORIGINS
from analysis.figures import domination, drawing, stations, style
from analysis.figures.catalogue import catalogue
from analysis.figures.main import main_figure
from analysis.pages.tables import all_tables
from tests.analysis_studies import joined, made_up, make

TOPOLOGIES = ["master", "synchronous", "ga3c"]
GA3C = 14  # the claim's number
LIMIT = {"limit_name": "N0", "limit_workers": 45, "n0": 45, "n_star": 46, "untrained_cycle_s": 0.4}
LIMIT |= {"untrained_service_s": 0.01}
TIMES = {f"time_to_{mark}_s": np.inf if mark > 50 else 1.0 for mark in (1, 5, 10, 20, 50, 100)}


def drawn(figure, study):
    with style.paper():
        return drawing.draw(figure.part(study), figure.panels).axes


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    axes = {"topology": TOPOLOGIES, "workers": ["2", "4"], "seed": [0, 1]}
    return load_study(
        make(tmp_path_factory.mktemp("all") / "topologies", axes, episodes=80, profile="report", exchange={})
    )


@pytest.fixture(scope="module")
def of_four(study):
    """The part with four workers: a study that compares settings."""
    return replace(study, runs=study.runs[study.runs["end"] == 4])


def test_each_kind_of_study_has_its_figures(study, of_four):
    learned = replace(study, runs=study.runs.assign(final_score=5.0, time_to_50_s=3600.0))
    for one, title, panels in (
        (study, "Speed by number of workers", 2),
        (learned, "Topologies by number of workers", 6),
    ):
        assert main_figure(one).title == title
        assert [len(ax.lines) >= 3 for ax in drawn(main_figure(one), one)] == [True] * panels
    assert "Most runs reach a mean score of 50: topology master with 2 and 4" in main_figure(learned).says(learned)
    assert "steps/s with 4 workers" in main_figure(study).says(study)
    assert main_figure(of_four).title == domination.FIGURE.title
    for one in (study, of_four):
        assert "stations" in {figure.name for figure in catalogue(one)}
    assert len(drawn(domination.FIGURE, of_four)) == len(drawn(stations.FIGURE, of_four)) == 2
    assert {"stations", "domination"} <= all_tables(of_four).keys()
    assert not stations.FIGURE.of(made_up({"10": {}}))


def test_staleness_is_the_sum_of_its_parts(study):
    for run in study.done.to_dict("records"):
        curve = study.curves[study.curves["cell"] == run["cell"]]
        mean = np.average(curve["staleness"], weights=np.diff(curve["episodes"], prepend=0))
        assert sum(run[name] for name in ORIGINS) == pytest.approx(mean, abs=1e-5)
        assert all(run[name] >= 0 for name in ORIGINS)


def test_who_waits_is_seen(study):
    table = stations.stations(study)
    assert table.index.tolist() == [f"topology {name}" for name in TOPOLOGIES]
    master, rounds, ga3c = (table.loc[name] for name in table.index)
    assert master["worker_busy"] > rounds["worker_busy"] > ga3c["worker_busy"]  # who waits for nobody, all, a predictor
    assert ga3c["predictor_busy"] > 0.5
    assert np.isnan(master["predictor_busy"])
    assert rounds[list(ORIGINS)].sum() == 0
    says = stations.FIGURE.says(study)
    assert "in topology ga3c; gradients are oldest in" in says


def settings(**variants):
    """Return a study with one worker count: {name: (time to 50, final score)}."""
    parts = [
        made_up({"40": {"time_to_50_s": time, "final_score": end}}, seeds=10, case=name)
        for name, (time, end) in variants.items()
    ]
    return joined(*parts).shown


def test_who_is_faster_and_as_good_beats_the_other():
    study = settings(
        swift=(1000.0, 60.0), slow=(3000.0, 60.0), high=(3000.0, 75.0), lost=(np.inf, 0.1), same=(1000.0, 60.0)
    )
    swift, slow, high, lost, same = study.schedules()
    assert beats(study, swift, slow, 50)
    assert beats(study, high, slow, 50)
    assert not beats(study, slow, swift, 50)
    assert not beats(study, swift, high, 50)
    assert not beats(study, high, swift, 50)
    assert not beats(study, swift, same, 50)
    assert all(beats(study, one, lost, 50) for one in (swift, slow, high))
    assert not beats(study, lost, slow, 50)
    table = outlook(study, 50)
    assert table["beaten_by"].map(len).to_dict() == {"swift": 0, "slow": 3, "high": 0, "lost": 4, "same": 0}
    assert table["time_s"]["lost"] == np.inf
    assert table["time_s"]["swift"] == pytest.approx(1000, rel=0.05)


@pytest.mark.parametrize(
    ("ratio", "verdict"), [(30.0, "supported"), (3.0, "refuted"), (10.0, "undecided")], ids=["30", "3", "10"]
)
def test_ga3c_is_compared_with_as_many_workers_as_a_master_bears(ratio, verdict):
    known = {**LIMIT, "profile": "report", "update_s": 1, **TIMES}
    a3c = {**known, "topology": "master", "time_to_50_s": 9000.0}
    slower = {**a3c, "time_to_50_s": np.inf}  # more than a master bears: not what GA3C is compared with
    study = joined(
        made_up({"10": a3c, "40": a3c, "100": slower}, noise=0.05, case="a3c"),
        made_up({"100": {**known, "topology": "ga3c", "time_to_50_s": 9000.0 / ratio}}, noise=0.05, case="ga3c"),
    )
    (judgement,) = [one for one in judge_all(study) if one.number == GA3C]
    assert judgement.verdict == verdict
    assert "100 agents of GA3C come to 50 pipes" in judgement.findings[0].text
    assert "as fast as 40 workers of A3C" in judgement.findings[0].text


def test_a_study_without_ga3c_is_not_asked_about_it():
    assert GA3C not in {judgement.number for judgement in judge_all(made_up({"10": {}}))}
    alone = made_up({"10": {"topology": "ga3c", "profile": "report", "update_s": 1, **LIMIT, **TIMES}})
    assert judge_all(alone)[GA3C - 1].verdict == "not tested here"
    real = made_up({"10": {"topology": "ga3c", "profile": "report", **TIMES}})  # by its own clock: no limit is known
    assert judge_all(real)[GA3C - 1].verdict == "not tested here"
