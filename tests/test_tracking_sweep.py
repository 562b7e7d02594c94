"""A sweep's own run in MLflow, and its cells' names: what its schedules came to, its page, and links to compare."""

import os
import time

import numpy as np
import pytest

from a3c_core.records.tables import read_records
from experiments.tracking.mirror import Tracker, run_name
from experiments.tracking.store import connect
from experiments.wall_times import FILE, WallTimes, with_wall_times
from tests.mlflow_server import new_database
from tests.test_tracking import make_study, runs_of

TABLE = """\
variant,schedule,runs,learned,learned_share,final_score,final_score_low,final_score_high,clock_s
,4,10,10,1,125.387,122.539,127.367,505260
bounded,6→12 report,10,0,0,0.5,,,inf
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    uri = f"sqlite:///{new_database(tmp_path_factory.mktemp('store'))}"
    return connect(uri), uri


def add_page(study):
    """Put what the analysis leaves into the study's folder."""
    contents = {"index.html": "<html>", "main.png": "PNG", "tables/schedules.csv": TABLE}
    for name, text in contents.items():
        (study.path / name).parent.mkdir(exist_ok=True)
        (study.path / name).write_text(text)


def parent_of(store, study, monkeypatch):
    client, uri = store
    monkeypatch.setattr("experiments.tracking.cell_run.collect", lambda cell, into: [])
    tracker = Tracker(client, uri, study.path)
    tracker.sync()
    tracker.end_sweeps()
    tracker.end_sweeps()  # as --sync would: nothing is doubled
    return runs_of(client, study.name)[f"sweep {study.name}"]


def test_it_has_aggregates_page_and_figure(store, tmp_path, monkeypatch):
    study = make_study(tmp_path, "aggregated", axes={"workers": [2]})
    add_page(study)
    parent = parent_of(store, study, monkeypatch)
    client = store[0]
    expected = {"score_iqm/4": 125.387, "score_low/4": 122.539, "score_high/4": 127.367, "learned_share/4": 1.0}
    expected |= {
        "clock_s/4": 505260.0,
        "score_iqm/bounded 6to12 report": 0.5,
        "learned_share/bounded 6to12 report": 0.0,
    }
    assert parent.data.metrics == expected
    assert len(client.get_metric_history(parent.info.run_id, "score_iqm/4")) == 1
    assert {item.path for item in client.list_artifacts(parent.info.run_id)} == {"index.html", "main.png"}
    note = parent.data.tags["mlflow.note.content"]
    assert note.startswith("Does it work?")
    assert "| 4 | 10 | 10 | 125.4 [122.5, 127.4] | 505,260 s |" in note
    assert f"get-artifact?path=main.png&run_uuid={parent.info.run_id}" in note
    assert "#/metric?runs=" in note


def test_a_page_that_is_older_than_the_cells_is_not_theirs(store, tmp_path, monkeypatch):
    study = make_study(tmp_path, "older", axes={"workers": [2]})
    add_page(study)
    os.utime(study.path / "index.html", (1.0, 1.0))
    parent = parent_of(store, study, monkeypatch)
    assert (parent.data.metrics, store[0].list_artifacts(parent.info.run_id)) == ({}, [])
    assert "#/metric?runs=" in parent.data.tags["mlflow.note.content"]


def test_names_say_the_difference_first():
    axes = {
        "case": ["fast", "slow"],
        "workers": [10, "10->20"],
        "exchange.queue": ["bounded"],
        "network.units": [8, 64],
    }
    settings = {"case": "slow", "workers": "10->20", "exchange.queue": "bounded", "network.units": 64, "seed": 3}
    assert run_name(settings, axes) == "slow, 10to20 workers, 64 units, seed 3"
    assert run_name({"workers": 4, "seed": 0}, {"workers": [4]}) == "seed 0"


def test_wall_times_go_on_after_an_interruption_without_its_pause(tmp_path, monkeypatch):
    now_s = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    first = WallTimes(tmp_path)
    for episode in range(5):
        now_s[0] += 1.0
        first.note(episode)
    now_s[0] += 1000.0
    resumed = WallTimes(tmp_path)  # from a checkpoint after three episodes
    now_s[0] += 0.5
    resumed.note(3)
    assert np.fromfile(tmp_path / FILE).tolist() == [1.0, 2.0, 3.0, 3.5]


def test_runs_without_wall_times_have_none(tmp_path):
    study = make_study(tmp_path, "untimed", axes={"workers": [2]})
    directory = study.cell("workers=2,seed=0")
    records = read_records(directory)
    assert np.isnan(records["wall_s"].to_numpy()).all()
    assert not np.isnan(with_wall_times(records, directory)["wall_s"].to_numpy()).any()
    (directory / FILE).unlink()
    assert np.isnan(with_wall_times(records, directory)["wall_s"].to_numpy()).all()
