"""MLflow holds what the disk holds: every episode once, whatever was killed or away in between."""

import contextlib
import os
import shutil
import sqlite3
import subprocess

import numpy as np
import pyarrow as pa
import pytest

from a3c_core.command_line.learning_curve import rolling_mean
from a3c_core.records import checkpoints
from a3c_core.records.tables import read_records
from a3c_core.train import train
from experiments.grid.cells import expand
from experiments.grid.file import read_grid
from experiments.study_folder import StudyFolder, read_json
from experiments.sweep.cell import run_cell
from experiments.sweep.closing import where_to_look
from experiments.tracking import uri
from experiments.tracking.cell_run import LOGGED, milliseconds
from experiments.tracking.episode_metrics import MOST_POINTS, batches
from experiments.tracking.mirror import Tracker
from experiments.tracking.store import Deleted, connect
from tests.mlflow_server import free_port, kill_server, mlflow_server, new_database
from tests.sweeps import (
    PATIENCE_S,
    ROOT,
    cell_processes,
    metadata,
    results,
    started_sweep,
    sweep,
    wait_for,
    way_on,
    write_grid,
)


class Stop(Exception):
    """Ends a run in the middle."""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A client and the address of a new SQLite store."""
    uri = f"sqlite:///{new_database(tmp_path_factory.mktemp('store'))}"
    return connect(uri), uri


@pytest.fixture
def study(tmp_path, request):
    """A finished study of two cells, named after the test."""
    return make_study(tmp_path, request.node.name)


def make_study(folder, name, **content):
    grid = read_grid(write_grid(folder, name, **content)).grid
    made = StudyFolder(folder / "results", name)
    cells = expand(grid)
    made.write(grid, cells)
    for cell in cells:
        made.prepare(cell, sweep=name, oversubscribed=False)
        assert run_cell(made.cell(cell.id), cell.id, lambda message: None) == 0
        made.conclude(cell, "finished")
    return made


def runs_of(client, name):
    """Return {cell, or name of a sweep's own: run} of an experiment."""
    experiment = client.get_experiment_by_name(name)
    runs = client.search_runs([experiment.experiment_id])
    return {run.data.tags.get("cell", run.info.run_name): run for run in runs}


def assert_every_episode_once(client, run, directory):
    """The run's curves must hold each episode of the directory's records once, with its score and its clock."""
    records = read_records(directory)
    started_ms = milliseconds(metadata(directory)["started"])
    clock = records["applied_s"].to_pylist()
    for key, values in (("episode/score", records["score"].to_pylist()), ("episode/clock_s", clock)):
        history = sorted(client.get_metric_history(run.info.run_id, key), key=lambda metric: metric.step)
        assert [metric.step for metric in history] == list(range(len(records)))
        assert [metric.value for metric in history] == values
        assert [metric.timestamp for metric in history] == [started_ms + round(1000 * seconds) for seconds in clock]


def assert_wall_times(client, run, directory):
    """Each episode has its real time once; time does not go back, also where a run was interrupted."""
    history = sorted(client.get_metric_history(run.info.run_id, "episode/wall_time_s"), key=lambda metric: metric.step)
    assert [metric.step for metric in history] == list(range(len(read_records(directory))))
    wall_s = [metric.value for metric in history]
    assert wall_s[0] > 0
    assert wall_s == sorted(wall_s)


def make_records(episodes):
    """Return records as a run would have them."""
    random = np.random.default_rng(episodes)
    columns = {
        name: random.integers(0, 50, episodes) for name in ("score", "staleness", "queue_length", "workers_alive")
    }
    times = {name: random.exponential(1.0, episodes).cumsum() for name in ("applied_s", "wall_s")}
    return pa.table({**columns, **times})


def test_points_are_the_same_wherever_the_records_are_cut():
    records = make_records(2000)
    whole = [point for batch in batches(records, 0, started_ms=5000) for point in batch.points]
    for cut in (1, 137, 1999):
        first = [point for batch in batches(records.slice(0, cut), 0, 5000) for point in batch.points]
        rest = [point for batch in batches(records, cut, 5000) for point in batch.points]
        assert sorted(first + rest) == sorted(whole)
    scores = [point for point in whole if point.key == "episode/score"]
    assert [point.episode for point in scores] == list(range(2000))
    assert scores[-1].timestamp_ms == 5000 + round(1000 * records["applied_s"][-1].as_py())


@pytest.mark.parametrize("every", [1, 7, 20, 100])
def test_thinned_points_fit_mlflows_batches(every):
    found = list(batches(make_records(50_000), 0, 0, every))
    assert all(len(batch.points) <= MOST_POINTS for batch in found)
    assert found[-1].end == 50_000
    episodes = [point.episode for batch in found for point in batch.points if point.key == "episode/score"]
    assert episodes == list(range(0, 50_000, every))


def test_rolling_means_are_those_of_the_last_hundred():
    values = np.random.default_rng(0).integers(0, 50, 250)
    expected = [values[max(0, end - 100) : end].mean() for end in range(1, 251)]
    np.testing.assert_allclose(rolling_mean(values), expected)


def test_a_finished_cell_is_a_nested_run_with_everything(store, study):
    client, uri = store
    result = Tracker(client, uri, study.path).sync()
    assert (result.complete, result.behind, result.reason) == (2, [], None)
    runs = runs_of(client, study.name)
    assert set(runs) == {f"sweep {study.name}", "workers=2,seed=0", "workers=4,seed=0"}
    directory, run = study.cell("workers=4,seed=0"), runs["workers=4,seed=0"]
    assert_every_episode_once(client, run, directory)
    assert_wall_times(client, run, directory)
    assert (run.info.status, run.info.run_name) == ("FINISHED", "4 workers, seed 0")
    assert run.data.tags["mlflow.parentRunId"] == runs[f"sweep {study.name}"].info.run_id
    assert run.data.params["workers"] == "4"
    assert run.data.params["learner.learning_rate"] == "0.0001"
    expected = {"runtime": "simulate", "engine": "compiled", "transport": "virtual", "oversubscribed": "false"}
    assert expected.items() <= run.data.tags.items()
    assert {"commit", "dirty", "cores", "version.numpy"} <= set(run.data.tags)
    summary = read_json(directory / "summary.json")
    assert run.data.metrics["summary/score_last_tenth"] == summary["score_last_tenth"]
    means = {"mean_100/score", "mean_100/staleness", "mean_100/queue_length", "workers/alive"}
    assert means <= set(run.data.metrics)
    assert {name.partition("/")[0] for name in run.data.metrics} == {"episode", "mean_100", "workers", "summary"}
    experiment = client.get_experiment_by_name(study.name)
    assert experiment.tags["mlflow.note.content"].startswith("Does it work?")
    artifacts = {item.path for item in client.list_artifacts(run.info.run_id)}
    files = {"config.json", "metadata.json", "summary.json", "episodes.parquet", "updates.parquet", "checkpoint"}
    assert artifacts == files | {"learning_curve.png", "policy.gif"}
    assert run.data.tags.get("artifacts_missing") is None


@pytest.fixture
def no_artifacts(monkeypatch):
    """Pictures take a second each."""
    monkeypatch.setattr("experiments.tracking.cell_run.collect", lambda cell, into: [])


@pytest.mark.usefixtures("no_artifacts")
def test_a_second_pass_changes_nothing(store, study):
    client, uri = store
    Tracker(client, uri, study.path).sync()
    before = {name: run.to_dictionary() for name, run in runs_of(client, study.name).items()}
    tracker = Tracker(client, uri, study.path)
    assert tracker.sync().complete == 2
    assert {name: run.to_dictionary() for name, run in runs_of(client, study.name).items()} == before
    tracker.end_sweeps()
    parent = runs_of(client, study.name)[f"sweep {study.name}"]
    assert parent.info.status == "FINISHED"
    assert "#/metric?runs=" in parent.data.tags["mlflow.note.content"]


@pytest.mark.usefixtures("no_artifacts")
def test_a_batch_whose_mark_was_lost_is_not_doubled(store, study):
    client, uri = store
    Tracker(client, uri, study.path).sync()
    run = runs_of(client, study.name)["workers=2,seed=0"]
    client.set_tag(run.info.run_id, LOGGED, "100")  # as if killed before the last marks were set
    client.set_tag(run.info.run_id, "complete", "false")
    assert Tracker(client, uri, study.path).sync().behind == []
    assert_every_episode_once(client, run, study.cell("workers=2,seed=0"))


class Flaky:
    """A client whose server goes away after some calls."""

    def __init__(self, client, calls):
        self._client, self._calls = client, calls

    def __getattr__(self, name):
        self._calls -= 1
        if self._calls < 0:
            raise ConnectionError("the server is away")
        return getattr(self._client, name)


@pytest.mark.usefixtures("no_artifacts")
@pytest.mark.parametrize("calls", [4, 6, 8, 10, 12, 14])
def test_a_server_that_goes_away_loses_and_doubles_nothing(store, tmp_path, calls):
    client, uri = store
    made = make_study(tmp_path, f"away{calls}", base={"episodes": 1200, "profile": "uniform"}, axes={"workers": [3]})
    cell = made.cell("workers=3,seed=0")
    result = Tracker(Flaky(client, calls), uri, made.path).sync()
    assert result.behind == ["workers=3,seed=0"]
    assert "the server is away" in result.reason
    assert Tracker(client, uri, made.path).sync().complete == 1
    runs = runs_of(client, made.name)
    assert len(runs) == 2
    assert_every_episode_once(client, runs["workers=3,seed=0"], cell)


@pytest.mark.usefixtures("no_artifacts")
def test_of_a_running_cell_only_what_will_not_be_played_again_is_logged(store, tmp_path):
    client, uri = store
    base = {"episodes": 3000, "profile": "uniform", "checkpoint_s": 0.001}
    grid = read_grid(write_grid(tmp_path, "running", base=base, axes={"workers": [3]})).grid
    made, (cell,) = StudyFolder(tmp_path / "results", "running"), expand(grid)
    made.write(grid, [cell])
    made.prepare(cell, "running", oversubscribed=False)
    directory = made.cell(cell.id)

    def stop(record):
        if record.episode == 2000:
            raise Stop

    with pytest.raises(Stop):
        train(cell.config, directory, on_episode=stop, run=cell.id)
    safe = read_json(checkpoints.found(directory)[0] / "manifest.json")["info"]["records"][1]
    tracker = Tracker(client, uri, made.path)
    assert tracker.sync().behind == []
    run = runs_of(client, "running")[cell.id]
    assert run.info.status == "RUNNING"
    assert 0 < int(run.data.tags[LOGGED]) == safe <= 2000
    for status, theirs in (("interrupted", "KILLED"), ("failed", "FAILED")):
        made.conclude(cell, status, "a reason")
        tracker.sync()
        run = runs_of(client, "running")[cell.id]
        assert (run.info.status, run.data.tags["reason"]) == (theirs, "a reason")
    made.prepare(cell, "running", oversubscribed=False)
    train(cell.config, directory, run=cell.id)
    made.conclude(cell, "finished")
    assert tracker.sync().complete == 1
    assert_every_episode_once(client, run, directory)
    assert runs_of(client, "running")[cell.id].info.status == "FINISHED"


@pytest.mark.usefixtures("no_artifacts")
def test_a_cell_that_began_anew_has_one_run(store, study):
    client, address = store
    Tracker(client, address, study.path).sync()
    cell = expand(read_grid(study.path.parents[1] / f"{study.name}.yaml").grid)[0]
    before = runs_of(client, study.name)
    shutil.rmtree(study.cell(cell.id))
    study.prepare(cell, sweep=study.name, oversubscribed=False)
    assert run_cell(study.cell(cell.id), cell.id, lambda message: None) == 0
    study.conclude(cell, "finished")
    Tracker(client, address, study.path).sync()
    experiment = client.get_experiment_by_name(study.name)
    runs = client.search_runs([experiment.experiment_id], f"tags.cell = '{cell.id}'")
    assert [run.data.tags["uid"] for run in runs] == [metadata(study.cell(cell.id))["uid"]]
    assert client.get_run(before[cell.id].info.run_id).info.lifecycle_stage == "deleted"  # it can be restored


@pytest.mark.usefixtures("no_artifacts")
def test_thinning_is_on_request(store, tmp_path):
    client, uri = store
    made = make_study(tmp_path, "thinned", tracking={"every": 50}, axes={"workers": [2]})
    Tracker(client, uri, made.path).sync()
    run = runs_of(client, "thinned")["workers=2,seed=0"]
    assert [metric.step for metric in client.get_metric_history(run.info.run_id, "episode/score")] == list(
        range(0, 300, 50)
    )


def test_a_deleted_experiment_is_not_filled_in_silence(store, study):
    client, uri = store
    Tracker(client, uri, study.path)
    client.delete_experiment(client.get_experiment_by_name(study.name).experiment_id)
    with pytest.raises(Deleted, match="restore it"):
        Tracker(client, uri, study.path)


def test_addresses_are_shown_without_passwords(monkeypatch):
    assert uri.shown("http://me:secret@host:5000/x") == "http://host:5000/x"
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert uri.tracking_uri(None) == "sqlite:///mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://elsewhere")
    assert uri.tracking_uri(None) == "http://elsewhere"
    assert uri.tracking_uri("http://given") == "http://given"


def test_no_server_that_we_start_or_recommend_sends_telemetry(tmp_path):
    words = ["make", "-n", "-C", str(ROOT), "ui", f"VENV={tmp_path}"]
    started = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    (recommended,) = [
        line for line in where_to_look(StudyFolder(tmp_path, "x"), "sqlite:///else.db") if "mlflow" in line
    ]
    for command in (*(line for line in started if "mlflow server" in line), recommended):
        assert "MLFLOW_DISABLE_TELEMETRY=true" in command
    assert any("mlflow server" in line for line in started)


def test_two_sweeps_at_the_same_moment_on_a_new_database(tmp_path):
    for name in ("left", "right"):
        write_grid(tmp_path, name, axes={"workers": [2]})
    with started_sweep(tmp_path, "--grid", "left") as left, started_sweep(tmp_path, "--grid", "right") as right:
        assert (left.wait(PATIENCE_S), right.wait(PATIENCE_S)) == (0, 0)
    assert "not up to date" not in (tmp_path / "output.txt").read_text()
    client = connect(f"sqlite:///{tmp_path}/mlflow.db")
    for name in ("left", "right"):
        cell = tmp_path / f"results/{name}/cells/workers=2,seed=0"
        assert_every_episode_once(client, runs_of(client, name)["workers=2,seed=0"], cell)


KILLS = int(os.environ.get("SWEEP_KILLS", "2"))


@pytest.mark.slow
def test_a_sweep_killed_again_and_again_ends_as_if_nothing_had_happened(store, tmp_path):
    client, uri = store
    base = {"episodes": 3000, "checkpoint_s": 0.1, "exchange": {"channel": "mailbox", "queue": "unbounded"}}
    grid = read_grid(write_grid(tmp_path, "killed", base=base, axes={"workers": [4, 40]})).grid
    command = ("--grid", "killed", "--tracking-uri", uri)
    written = {}
    for updates in np.random.default_rng(0).integers(0, 2000, KILLS):
        kill_after(updates, tmp_path, command)
        for cell in tmp_path.glob("results/killed/cells/*seed=*"):
            if metadata(cell)["status"] == "finished":
                written.setdefault(cell, (cell / "episodes.parquet").stat().st_mtime_ns)
    ended = sweep(tmp_path, *command)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert cell_processes(tmp_path) == {}
    runs = runs_of(client, "killed")
    assert len(runs) == 3
    for cell in expand(grid):
        directory, undisturbed = tmp_path / "results/killed/cells" / cell.id, tmp_path / cell.id
        train(cell.config, undisturbed, run=cell.id)
        assert results(directory) == results(undisturbed)
        assert_every_episode_once(client, runs[cell.id], directory)
        assert_wall_times(client, runs[cell.id], directory)
    assert all((cell / "episodes.parquet").stat().st_mtime_ns == then for cell, then in written.items())


def kill_after(updates, folder, command):
    """Start the sweep, and kill it when its cells' checkpoints are so many updates further."""

    def updates_saved():
        newest = {path.parent: int(path.name) for path in sorted(folder.glob("results/*/cells/*/checkpoints/[0-9]*"))}
        return sum(newest.values())

    before = updates_saved()
    with started_sweep(folder, *command) as process:
        wait_for(lambda: process.poll() is not None or updates_saved() > before + updates)
        process.kill()


@pytest.mark.slow
def test_a_server_killed_in_the_middle_of_a_sweep_is_made_up_for_by_sync(tmp_path):
    base = {"episodes": 1500, "checkpoint_s": 0.1}
    write_grid(tmp_path, "served", base=base, axes={"workers": [2, 4]})
    port = free_port()
    uri = f"http://127.0.0.1:{port}"
    database = new_database(tmp_path)
    with mlflow_server(database, port) as server:
        client = connect(uri)
        with started_sweep(tmp_path, "--grid", "served", "--jobs", "1", "--tracking-uri", uri) as process:
            wait_for(lambda: logged(database) > 0)
            kill_server(server)
            assert process.wait(PATIENCE_S) == 0
    output = (tmp_path / "output.txt").read_text()
    assert f"run_sweep.py --sync --grid served --tracking-uri {uri}" in way_on(output)
    cells = sorted(tmp_path.glob("results/served/cells/*seed=*"))
    assert [metadata(cell)["status"] for cell in cells] == ["finished"] * 2
    with mlflow_server(database, port):
        subprocess.run(way_on(output), shell=True, cwd=tmp_path, check=True, timeout=PATIENCE_S)
        runs = runs_of(client, "served")
        assert len(runs) == 3
        for cell in cells:
            assert_every_episode_once(client, runs[cell.name], cell)
            assert "policy.gif" in {item.path for item in client.list_artifacts(runs[cell.name].info.run_id)}


def logged(database):
    """Return how many episodes an SQLite store has: to ask the server for it would keep it, and both cores, busy."""
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        (found,) = connection.execute("SELECT SUM(value) FROM tags WHERE key = ?", [LOGGED]).fetchone()
    return found or 0


def test_a_store_that_was_left_half_made_is_made_anew(tmp_path):
    (tmp_path / ".mlflow.db.new").write_text("no database")
    (tmp_path / ".mlflow.db.new-journal").write_text("left behind")
    client = connect(f"sqlite:///{tmp_path / 'mlflow.db'}")
    assert client.search_experiments()
    assert not list(tmp_path.glob(".mlflow.db.new*"))
