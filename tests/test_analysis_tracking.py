"""A study from MLflow: the same tables as from its folder, with an MLflow that is only pretended."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from a3c_core.saved_settings import flatten
from analysis import report
from analysis.data import tracking
from analysis.data.load import load_study
from analysis.data.study import StudyError
from analysis.figures import catalogue
from tests.analysis_studies import make_tiny

FILES = ("config.json", "metadata.json", "summary.json", "episodes.parquet")


class PretendedMlflow:
    """Serves the cells of a study as the sweep's tracking would have stored them."""

    def __init__(self, study: Path):
        self._study = study
        self.runs = [self._run("sweep", number=0, tags={"mlflow.note.content": "Why?", "learned_above": "0.0"})]
        for number, cell in enumerate(json.loads((study / "study.json").read_text())["cells"]):
            self.add(cell, "finished", number + 1)

    def _run(self, name: str, number: int, tags: dict[str, str], params: dict[str, str] | None = None) -> Any:
        data = SimpleNamespace(tags={"mlflow.runName": name, **tags}, params=params or {})
        return SimpleNamespace(info=SimpleNamespace(run_id=f"{number}:{name}", start_time=number), data=data)

    def add(self, cell: dict[str, Any], status: str, number: int) -> None:
        params = {name: value if isinstance(value, str) else json.dumps(value) for name, value in flat(cell["config"])}
        tags = {"cell_status": status, "episodes_logged": "7", "reason": "because" if status == "failed" else ""}
        self.runs.append(self._run(cell["id"], number, tags, params))

    def get_experiment_by_name(self, name: str) -> Any:
        return SimpleNamespace(experiment_id="1") if name == "tiny" else None

    def search_experiments(self) -> list[Any]:
        return [SimpleNamespace(name="Default"), SimpleNamespace(name="tiny")]

    def search_runs(self, experiments: list[str], max_results: int, page_token: str | None) -> Any:
        class Result(list):
            token = None

        return Result(self.runs)

    def _cell(self, run_id: str) -> Path:
        return self._study / "cells" / run_id.partition(":")[2]

    def list_artifacts(self, run_id: str) -> list[Any]:
        run = next(run for run in self.runs if run.info.run_id == run_id)
        done = run.data.tags["cell_status"] == "finished"
        return [SimpleNamespace(path=name) for name in FILES] if done else []

    def download_artifacts(self, run_id: str, path: str, into: str) -> None:
        shutil.copy(self._cell(run_id) / path, into)


def flat(config: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    return list(flatten(config, prefix))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return make_tiny(tmp_path_factory.mktemp("results"))


@pytest.fixture
def mlflow(tiny, monkeypatch):
    pretended = PretendedMlflow(tiny)
    monkeypatch.setattr(tracking, "_connect", lambda uri: pretended)
    return pretended


def test_the_study_from_mlflow_is_the_one_from_the_folder(tiny, mlflow, tmp_path):
    tracking.fetch("tiny", None, tmp_path)
    assert not (tmp_path / "cells").exists()
    fetched, local = load_study(tmp_path), load_study(tiny)
    pd.testing.assert_frame_equal(fetched.runs, local.runs)
    pd.testing.assert_frame_equal(fetched.curves, local.curves)
    assert fetched.question == "Why?"
    tracking.fetch("tiny", None, tmp_path)  # again, over its own


def test_the_command_goes_on_to_the_page(mlflow, tmp_path, monkeypatch):
    monkeypatch.setattr(catalogue, "catalogue", lambda study, more: [])
    assert report.main(["--experiment", "tiny", "--out", str(tmp_path)]) == 0
    assert "Why?" in (tmp_path / "index.html").read_text()


def test_runs_that_have_not_ended_are_shown_as_such(tiny, mlflow, tmp_path):
    cells = json.loads((tiny / "study.json").read_text())["cells"]
    mlflow.runs = mlflow.runs[:3]
    mlflow.add(cells[4], "failed", 10)
    mlflow.add(cells[5], "running", 11)
    tracking.fetch("tiny", None, tmp_path)
    runs = load_study(tmp_path).runs.set_index("cell")
    assert runs["status"].tolist() == ["finished", "finished", "failed", "running"]
    assert runs.loc[cells[4]["id"], "reason"] == "because"
    assert runs.loc[cells[5]["id"], "played"] == 7


def test_of_several_runs_of_a_cell_the_newest_that_is_done_counts(mlflow):
    cell = {"id": "workers=4,seed=0", "config": {}}
    mlflow.add(cell, "finished", 20)
    mlflow.add(cell, "failed", 21)
    chosen = {run.data.tags["mlflow.runName"]: run.info.start_time for run in tracking.newest_cells(mlflow.runs)}
    assert chosen["workers=4,seed=0"] == 20
    assert len(chosen) == 10


def test_settings_from_a_cells_id():
    config = {"workers": "10->20", "seed": 3, "schedule": {"rule": "slides"}, "exchange": {"queue": "bounded"}}
    assert tracking.settings_of("case=fast-master,workers=10to20,rule=slides,seed=3", config) == {
        "case": "fast-master",
        "workers": "10->20",
        "schedule.rule": "slides",
        "seed": 3,
    }


def test_mistakes_get_one_line(tiny, mlflow, tmp_path, capsys):
    assert report.main(["--experiment", "other", "--out", str(tmp_path)]) == 2
    assert "no experiment other; there are tiny" in capsys.readouterr().err
    assert report.main(["--experiment", "tiny", "--out", str(tiny)]) == 2
    assert "holds a study already" in capsys.readouterr().err
    mlflow.runs = mlflow.runs[:1]
    with pytest.raises(StudyError, match="no runs of run_sweep"):
        tracking.fetch("tiny", None, tmp_path)


def test_no_database_is_not_made_by_asking_for_it(tmp_path):
    with pytest.raises(StudyError, match="no tracking database"):
        tracking.fetch("tiny", f"sqlite:///{tmp_path}/none.db", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
