"""A study's data for people, and two studies beside each other: flat columns, full records, and one page of both."""

import json
import shutil
from dataclasses import replace

import pytest

from analysis import report
from analysis.data.beside import beside, differing_settings
from analysis.data.load import load_study
from analysis.data.study import StudyError
from analysis.figures import catalogue
from analysis.pages.comparison import differences
from tests.analysis_studies import TINY_AXES, made_up, make_tiny
from tests.sweeps import forget_digests


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return make_tiny(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def slower(tiny):
    """The same study under another name, as if its runs had had another setting."""
    folder = shutil.copytree(tiny, tiny.with_name("slower"))
    for path in [folder / "study.json", *folder.glob("cells/*/config.json")]:
        content = json.loads(path.read_text())
        for config in [cell["config"] for cell in content.get("cells", [])] or [content]:
            config["slowdown"] = 2.0
        path.write_text(json.dumps(content | ({"name": "slower"} if "cells" in content else {})))
    for cell in folder.glob("cells/*"):
        forget_digests(cell)
    return folder


def test_runs_have_every_setting_and_every_number_of_the_summary_as_a_column(tiny):
    runs = load_study(tiny).runs
    assert set(runs["workers"]) == set(TINY_AXES["workers"])
    assert set(runs["exchange.queue"]) == {"unbounded"}
    assert set(runs["learner.learning_rate"]) == {1e-4}
    row = runs.set_index("cell").loc["workers=10,seed=1"]
    summary = json.loads((tiny / "cells/workers=10,seed=1/summary.json").read_text())
    numbers = {name: value for name, value in summary.items() if type(value) in (int, float)}
    assert {name: row[name] for name in numbers if name != "clock_s"} == pytest.approx(
        {name: value for name, value in numbers.items() if name != "clock_s"}, nan_ok=True
    )
    assert row["clock_s"] == pytest.approx(summary["clock_s"], rel=1e-6)  # a curve's, in single precision


def test_a_cells_episodes_are_all_there_where_it_was_run(tiny, tmp_path):
    study = load_study(tiny)
    episodes = study.episodes("workers=4,seed=0")
    assert len(episodes) == study.planned_episodes == 300
    assert {"score", "steps", "staleness"} <= set(episodes)
    with pytest.raises(StudyError, match="has no cell 'workers=5'"):
        study.episodes("workers=5")
    shutil.rmtree(shutil.copytree(tiny, tmp_path / "tiny") / "cells/workers=4,seed=0")
    with pytest.raises(StudyError, match="not kept in git"):
        load_study(tmp_path / "tiny").episodes("workers=4,seed=0")


def test_settings_that_differ_are_named(tiny, slower):
    table = differing_settings(beside([load_study(tiny), load_study(slower)])).set_index("setting")
    assert table.loc["slowdown"].to_dict() == {"tiny": "none", "slower": "2.0"}
    assert not {"learner.learning_rate", "env_steps"} & set(table.index)


def made_up_pair():
    ours, theirs = made_up({"10": {"final_score": 60.0}, "40": {}}), made_up({"10": {}, "20": {}})
    return [replace(study, name=name) for study, name in ((ours, "ours"), (theirs, "theirs"))]


def test_differences_are_of_the_schedules_that_both_have():
    (row,) = differences(beside(made_up_pair())).to_dict("records")
    assert (row["ours"], row["theirs"], row["schedule"]) == ("ours", "theirs", "10")
    assert row["score_difference_low"] < 10 < row["score_difference_high"]
    assert row["score_difference_low"] > 8  # 60 and 50, with luck that seeds share
    assert (row["ours_learned"], row["learned_share_difference"]) == ("10 of 10", 0.0)


def test_studies_that_can_not_be_compared(tiny):
    study = load_study(tiny)
    with pytest.raises(StudyError, match="names of their own"):
        beside([study, study])
    other = replace(study, name="other", score=study.score._replace(name="points"))
    with pytest.raises(StudyError, match="different scores"):
        beside([study, other])


def test_one_page_shows_both(tiny, slower, monkeypatch, capsys):
    everything = catalogue.catalogue
    monkeypatch.setattr(catalogue, "catalogue", lambda study, more: everything(study, more)[:1])
    assert report.main([str(tiny), str(slower)]) == 0
    folder = tiny.with_name("tiny+slower")
    assert capsys.readouterr().out.startswith(f"{folder}/index.html: 20 runs, ")
    page = (folder / "index.html").read_text()
    assert "How do tiny and slower differ?" in page
    assert "Settings that differ" in page
    assert f"python -m analysis.report {tiny} {slower}" in page
    assert "run_sweep.py" not in page  # each study's own page says how to repeat it
    assert not (folder / "README.md").exists()


def test_out_needs_something_to_write_elsewhere(tiny, capsys):
    with pytest.raises(SystemExit) as ended:
        report.main([str(tiny), "--out", "x"])
    assert ended.value.code == 2
    assert "several folders" in capsys.readouterr().err
