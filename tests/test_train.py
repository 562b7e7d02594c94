"""Whole runs in virtual time with the real learner: the same bytes always, and the phenomenon."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from a3c_core import train as train_module
from a3c_core.config import ExchangeConfig, LearnerConfig, RunConfig
from a3c_core.records.tables import EpisodeRecord, RecordWriter, read_records
from a3c_core.train import Run, RunMismatch, train

REPORT = ExchangeConfig(channel="mailbox", pull="at_once", queue="unbounded")
IN_PIECES = LearnerConfig(t_max=20, update_every="t_max", standardise=False)
DYNAMIC = {"first_s": 0.3, "further_s": 0.05, "window": 20, "spacing": 50}
SETTINGS = {
    "mailbox": RunConfig(workers="6", episodes=600, exchange=REPORT),
    "overloaded": RunConfig(workers="30", episodes=1500, exchange=REPORT),
    "bounded": RunConfig(workers="30", episodes=600),
    "waiting": RunConfig(workers="5", episodes=600, exchange=ExchangeConfig(pull="after_apply")),
    "in_pieces": RunConfig(workers="4", episodes=300, learner=IN_PIECES),
    "dynamic": RunConfig(workers="4->9", episodes=1000, schedule=DYNAMIC),
    "hogwild": RunConfig(workers="5", episodes=800, topology="hogwild"),
    "ple_stream": RunConfig(workers="3", episodes=300, environment={"seeding": "ple"}),
}


def started(config: RunConfig, directory: Path) -> Run:
    run = Run(config, directory)
    run.runtime.start(lambda: False)
    return run


def records_of(directory: Path) -> bytes:
    return (directory / "episodes.parquet").read_bytes()


@pytest.mark.parametrize("name", SETTINGS)
def test_an_interrupted_run_ends_in_the_same_bytes(name, tmp_path):
    _interrupt(SETTINGS[name], tmp_path)


def _interrupt(config, tmp_path):
    whole = train(config, tmp_path / "whole")
    for events in (500, 900):
        run = started(config, tmp_path / "resumed")
        run.advance(events)
        run.checkpoint()
        run.advance(77)  # lost: it comes after the checkpoint
    resumed = train(config, tmp_path / "resumed")
    assert records_of(tmp_path / "resumed") == records_of(tmp_path / "whole")
    assert resumed._replace(wall_s=0) == whole._replace(wall_s=0)
    newest = [max((tmp_path / side / "checkpoints").iterdir()) for side in ("whole", "resumed")]
    parameters = [np.load(path / "learner.npz")["parameters"] for path in newest]
    np.testing.assert_array_equal(*parameters)


def test_the_same_seed_gives_the_same_bytes_in_another_process(tmp_path):
    config = SETTINGS["dynamic"]
    train(config, tmp_path / "here")
    program = (
        "import sys; from pathlib import Path; from a3c_core.config import RunConfig; from a3c_core.train import train;"
        "train(RunConfig.model_validate_json(sys.argv[1]), Path(sys.argv[2]))"
    )
    subprocess.run([sys.executable, "-c", program, config.model_dump_json(), str(tmp_path / "there")], check=True)
    assert records_of(tmp_path / "here") == records_of(tmp_path / "there")
    train(config.model_copy(update={"seed": 1}), tmp_path / "other")
    assert records_of(tmp_path / "here") != records_of(tmp_path / "other")


def test_a_compiled_run_imports_nothing_that_it_does_not_need(tmp_path):
    program = (
        "import sys; from pathlib import Path; from a3c_core.config import RunConfig; from a3c_core.train import train;"
        "train(RunConfig(workers='2', episodes=20), Path(sys.argv[1]));"
        "print({'tensorflow', 'keras', 'pandas', 'gymnasium', 'matplotlib', 'mlflow'} & set(sys.modules))"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert ended.stdout == "set()\n"


def test_worker_0_meets_the_same_pipes_among_4_and_among_40():
    """With parameters that never change (a learning rate of almost 0) all of its episodes are the same."""
    frozen = LearnerConfig(optimizer="sgd", learning_rate=1e-30)
    episodes = {}
    for workers in (4, 40):
        writer = RecordWriter()
        config = RunConfig(workers=str(workers), episodes=10 * workers, learner=frozen)
        train(config, on_episode=writer.append)
        writer.finish()
        names = "worker", "worker_episode", "score", "steps", "entropy"
        table = pd.DataFrame({name: writer.column(name) for name in names})
        own = table[(table["worker"] == 0) & (table["worker_episode"] < 5)].sort_values("worker_episode")
        episodes[workers] = own[["worker_episode", "score", "steps", "entropy"]].to_numpy().tolist()
    assert len(episodes[4]) == 5
    assert episodes[4] == episodes[40]


def test_every_episode_is_played_and_recorded_once(tmp_path):
    summary = train(SETTINGS["mailbox"], tmp_path)
    records = read_records(tmp_path).to_pandas()
    assert len(records) == 600 == summary.episodes
    assert not records.duplicated(["worker", "worker_episode"]).any()
    assert records["episode"].tolist() == list(range(600))
    assert (records["finished_s"] >= records["started_s"]).all()
    assert (records["applied_s"] >= records["finished_s"]).all()
    assert summary.gradients_sent == summary.gradients_applied + summary.gradients_dropped + summary.gradients_rejected
    assert json.loads((tmp_path / "summary.json").read_text())["staleness_mean"] == summary.staleness_mean
    assert summary.staleness_max == records["staleness"].max()


def test_a_killed_run_keeps_what_it_had(tmp_path):
    run = started(RunConfig(workers="4", episodes=20_000), tmp_path)
    run.advance(20_000)
    del run  # no checkpoint, no end
    assert len(read_records(tmp_path)) == 2 * 4096  # whole parts


def test_a_directory_with_another_run_is_refused(tmp_path):
    train(SETTINGS["mailbox"], tmp_path)
    with pytest.raises(RunMismatch, match="other settings"):
        train(SETTINGS["mailbox"].model_copy(update={"seed": 5}), tmp_path)


def test_a_run_of_an_older_version_is_refused(tmp_path, monkeypatch):
    """Even if its settings are the same: it would go on at other costs than it began with."""
    monkeypatch.setattr(train_module, "RESULTS_VERSION", train_module.RESULTS_VERSION - 1)
    train(SETTINGS["mailbox"], tmp_path)
    monkeypatch.undo()
    with pytest.raises(RunMismatch, match="results version"):
        train(SETTINGS["mailbox"], tmp_path)


def test_records_survive_the_round_trip(tmp_path):
    record = EpisodeRecord(
        "a",
        0,
        3,
        7,
        10,
        2,
        -3.5,
        140,
        False,
        1.25,
        2.5,
        2.75,
        float("nan"),
        5,
        9,
        3,
        2,
        0.25,
        1.5,
        0.5,
        0.25,
        4.0,
        "applied",
    )
    writer = RecordWriter(tmp_path)
    writer.append(record)
    writer.finish()
    row = read_records(tmp_path).to_pylist()[0]
    assert list(row) == [name.rstrip("_") for name in EpisodeRecord._fields]
    assert np.isnan(row.pop("wall_s"))
    assert list(row.values()) == [value for value in record if value == value]  # all but the NaN


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "exchange"), [(4, REPORT), (40, REPORT), (100, ExchangeConfig())])
def test_learns_while_the_master_keeps_up(workers, exchange):
    """At the report's costs a master bears about 45 workers; a bounded queue rescues even 100."""
    summary = train(RunConfig(workers=str(workers), episodes=30_000, exchange=exchange))
    assert summary.score_last_tenth >= 12
    assert summary.staleness_max < 1000


@pytest.mark.slow
@pytest.mark.parametrize("workers", [60, 100])
def test_collapses_where_it_does_not(workers):
    summary = train(RunConfig(workers=str(workers), episodes=30_000, exchange=REPORT))
    assert summary.score_last_tenth <= 1
    assert summary.queue_peak > 30_000 * (1 - summary.n0 / workers) * 0.8
    assert 40 < summary.n0 < 55
