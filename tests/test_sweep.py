"""Sweeps, run as a user runs them: what they leave on disk, how they fail, and what they survive."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest
from rich.console import Console

import run_sweep
from a3c_core.command_line.arguments import duration
from a3c_core.config import RunConfig
from a3c_core.games import atari
from a3c_core.real.oversubscription import is_oversubscribed
from a3c_core.train import RESULTS_VERSION, train
from experiments.grid.cells import Cell
from experiments.grid.errors import UserError
from experiments.grid.file import read_grid
from experiments.study_folder import StudyFolder, lock_file
from experiments.sweep import request as understanding
from experiments.sweep.cell import Progress
from experiments.sweep.estimate import cell_seconds, sweep_seconds
from experiments.sweep.progress import Board
from experiments.sweep.ray_cells import groups
from experiments.sweep.runner import batches
from tests.sweeps import (
    ROOT,
    cell_processes,
    everything_in,
    metadata,
    results,
    started_sweep,
    sweep,
    wait_for,
    write_grid,
)

QUIET = "--no-tracking"
LONG = {"base": {"episodes": 5_000_000, "profile": "uniform", "checkpoint_s": 0.2}, "axes": {"workers": [2, 4]}}


def checkpoints(folder):
    return {path.parent for path in folder.glob("results/*/cells/*/checkpoints/*/manifest.json")}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with a finished sweep of two cells, and what it printed."""
    folder = tmp_path_factory.mktemp("finished")
    write_grid(folder)
    return folder, sweep(folder, "--grid", "tiny", QUIET)


def test_a_sweep_leaves_a_study_with_one_directory_per_cell(finished):
    folder, ended = finished
    assert ended.returncode == 0, ended.stderr
    study = json.loads((folder / "results/tiny/study.json").read_text())
    assert (study["name"], study["question"], study["axes"]) == ("tiny", "Does it work?", {"workers": ["2", "4"]})
    assert [cell["id"] for cell in study["cells"]] == ["workers=2,seed=0", "workers=4,seed=0"]
    assert study["cells"][0]["settings"] == {"workers": "2", "seed": 0}
    for cell in study["cells"]:
        directory = folder / "results/tiny/cells" / cell["id"]
        config = RunConfig.model_validate_json((directory / "config.json").read_bytes())
        assert config == RunConfig.model_validate(cell["config"])
        known = metadata(directory)
        assert (known["status"], known["reason"], known["results_version"]) == ("finished", None, RESULTS_VERSION)
        assert known["versions"]["python"] == sys.version.split()[0]
        assert known["started"] < known["ended"]
        assert json.loads((directory / "summary.json").read_text())["episodes"] == 300
        assert cell["id"] in ended.stdout


def test_a_cell_in_its_own_process_gives_the_same_bytes_as_train(finished, tmp_path):
    folder, _ = finished
    cell = folder / "results/tiny/cells/workers=4,seed=0"
    train(RunConfig.model_validate_json((cell / "config.json").read_bytes()), tmp_path, run=cell.name)
    assert results(tmp_path) == results(cell)


def test_finished_cells_are_skipped_until_asked_for_afresh(finished, monkeypatch, capsys):
    folder, _ = finished
    monkeypatch.chdir(folder)
    cell = folder / "results/tiny/cells/workers=2,seed=0"
    before = metadata(cell)
    assert run_sweep.main(["--grid", "tiny", QUIET]) == 0
    assert "2 cells already finished: skipped" in capsys.readouterr().out
    assert metadata(cell) == before
    assert run_sweep.main(["--grid", "tiny", QUIET, "--fresh", "--only", "workers=2"]) == 0
    aside = folder / "results/tiny/aside/1"
    assert metadata(aside / "cells/workers=2,seed=0") == before
    assert (aside / "study.json").exists()
    assert metadata(cell)["uid"] != before["uid"]
    assert results(cell) == results(aside / "cells/workers=2,seed=0")


def test_cells_of_an_older_core_run_again_and_are_kept_aside(finished, monkeypatch, capsys):
    folder, _ = finished
    monkeypatch.chdir(folder)
    path = folder / "results/tiny/cells/workers=4,seed=0/metadata.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "results_version": 0}))
    assert run_sweep.main(["--grid", "tiny", QUIET]) == 0
    assert "1 cell made by an older version" in capsys.readouterr().out
    assert metadata(path.parent)["results_version"] == RESULTS_VERSION
    assert any(metadata(cell)["results_version"] == 0 for cell in folder.glob("results/tiny/aside/*/cells/*"))


def test_other_settings_are_another_study(finished, monkeypatch, capsys):
    folder, _ = finished
    monkeypatch.chdir(folder)
    other = folder / "other"
    other.mkdir(exist_ok=True)
    write_grid(other, base={"episodes": 301, "profile": "uniform"})
    before = everything_in(folder)
    assert run_sweep.main(["--grid", "other/tiny.yaml", QUIET]) == 2
    assert "holds 2 cells with other settings, such as workers=2,seed=0 (episodes 300 there, 301 here)" in (
        capsys.readouterr().err
    )
    assert everything_in(folder) == before


def test_a_study_remembers_its_other_seeds(tmp_path):
    study = StudyFolder(tmp_path, "tiny")
    grid = read_grid(write_grid(tmp_path, seeds=3)).grid
    study.write(grid, ())
    one = read_grid(write_grid(tmp_path, seeds=[7])).grid
    assert study.with_known_seeds(one).seeds == (0, 1, 2, 7)
    other = read_grid(write_grid(tmp_path, seeds=[7], axes={"workers": [5]})).grid
    assert study.with_known_seeds(other).seeds == (7,)


def test_dry_run_says_what_would_run_and_writes_nothing(finished, monkeypatch, capsys):
    folder, _ = finished
    monkeypatch.chdir(folder)
    before = everything_in(folder)
    assert run_sweep.main(["--grid", "tiny", "--seeds", "2", "--dry-run"]) == 0
    output = capsys.readouterr().out
    assert "finished" in output
    assert "new" in output
    assert "To run: 2 cells" in output
    assert everything_in(folder) == before


def test_list_shows_the_shipped_grids(capsys):
    assert run_sweep.main(["--list"]) == 0
    output = capsys.readouterr().out
    assert all(name in output for name in ("quick", "report", "workers", "remedies"))


def test_list_says_which_grids_need_an_extra(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ale_py", None)  # as if it were not installed
    atari.import_ale.cache_clear()
    atari._actions_and_background.cache_clear()
    assert run_sweep.main(["--list"]) == 0
    (pong,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("│ pong ")]
    assert "needs make setup-atari" in pong


def test_a_failed_cell_keeps_its_reason_and_does_not_stop_the_others(tmp_path):
    write_grid(tmp_path)
    broken = tmp_path / "results/tiny/cells/workers=2,seed=0/checkpoints/000000000001"
    broken.mkdir(parents=True)
    ended = sweep(tmp_path, "--grid", "tiny", QUIET)
    assert ended.returncode == 1
    assert "failed: workers=2,seed=0: CheckpointError" in ended.stdout
    assert "Traceback" not in ended.stdout + ended.stderr
    failed, other = (metadata(tmp_path / f"results/tiny/cells/workers={count},seed=0") for count in (2, 4))
    assert failed["status"] == "failed"
    assert "CheckpointError" in failed["reason"]
    assert other["status"] == "finished"


def test_fail_fast_leaves_the_rest_for_later(tmp_path):
    write_grid(tmp_path)
    (tmp_path / "results/tiny/cells/workers=2,seed=0/checkpoints/000000000001").mkdir(parents=True)
    ended = sweep(tmp_path, "--grid", "tiny", QUIET, "--jobs", "1", "--fail-fast")
    assert ended.returncode == 1
    assert not (tmp_path / "results/tiny/cells/workers=4,seed=0").exists()


@pytest.mark.parametrize(("number", "reason"), [(signal.SIGKILL, "SIGKILL"), (signal.SIGTERM, "was told to stop")])
def test_a_killed_cell_fails_alone_and_ctrl_c_leaves_the_others_resumable(tmp_path, number, reason):
    write_grid(tmp_path, **LONG)
    killed, other = (tmp_path / f"results/tiny/cells/workers={count},seed=0" for count in (2, 4))
    with started_sweep(tmp_path, "--grid", "tiny", QUIET, "--jobs", "2") as process:
        wait_for(lambda: {path.parents[1] for path in checkpoints(tmp_path)} == {killed, other})
        os.kill(cell_processes(tmp_path)[killed.name], number)
        wait_for(lambda: metadata(killed)["status"] == "failed")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert cell_processes(tmp_path) == {}
    assert reason in metadata(killed)["reason"]
    assert metadata(other)["status"] == "interrupted"
    assert "goes on from here" in (tmp_path / "output.txt").read_text()


def test_cells_end_when_the_sweep_is_killed_and_only_then_may_another_begin(tmp_path):
    write_grid(tmp_path, **LONG)
    lock = tmp_path / "results/tiny/cells/.lock"
    with started_sweep(tmp_path, "--grid", "tiny", QUIET) as process:
        wait_for(lambda: checkpoints(tmp_path))
        with pytest.raises(UserError, match="another sweep is running"), lock_file(lock, patience_s=0.1):
            pass
        process.kill()
    with lock_file(lock, patience_s=15.0):
        assert cell_processes(tmp_path) == {}


BAD_GRIDS = {
    "empty": ("", "the file is empty"),
    "not yaml": ("a: [", "not YAML"),
    "a list": ("- a", "must be a mapping"),
    "unknown key": ("name: g\nquestion: Why?\nworker: 4\n", "unknown key"),
    "wrong type": ("name: g\nquestion: Why?\nbase: {episodes: many}\n", "must be a valid integer"),
    "negative workers": ("name: g\nquestion: Why?\nbase: {workers: -4}\n", "is not a worker count"),
    "no workers": ("name: g\nquestion: Why?\naxes: {workers: [0]}\n", "at least 1 worker"),
    "fewer workers": ("name: g\nquestion: Why?\nbase: {workers: 12->6}\n", "only adds workers"),
    "twice": ("name: g\nquestion: Why?\naxes: {workers: [4, 4]}\n", "4 appears twice"),
    "unknown engine": ("name: g\nquestion: Why?\nbase: {engine: turbo}\n", "must be compiled, tensorflow or report"),
    "wrong engine": ("name: g\nquestion: Why?\nbase: {environment: {observation: raw}}\n", "compiled can't run this"),
}
BAD_ARGUMENTS = {
    "missing file": (["--grid", "nowhere.yaml"], "no grid file nowhere.yaml"),
    "no grid": ([], "--grid is needed"),
    "jobs": (["--grid", "tiny", "--jobs", "0"], "at least 1"),
    "only": (["--grid", "tiny", "--only", "workers=5"], "no cell has it; there are 2, 4"),
    "set": (["--grid", "tiny", "--set", "episode=5"], "did you mean episodes?"),
    "seeds": (["--grid", "tiny", "--seeds", "none"], "--seeds none"),
    "silent server": (["--grid", "tiny", "--tracking-uri", "http://127.0.0.1:9"], "can't be reached"),
    "no such store": (["--grid", "tiny", "--tracking-uri", "carrier://pigeon"], "sqlite"),
    "old store": (["--grid", "tiny", "--tracking-uri", "./mlruns"], "sqlite:///mlflow.db"),
    "database nowhere": (["--grid", "tiny", "--tracking-uri", "sqlite:///none/m.db"], "can't be written"),
    "no database": (["--grid", "tiny", "--tracking-uri", "sqlite:///tiny.yaml"], "is not a SQLite database"),
    "results in a file": (["--grid", "tiny", QUIET, "--results", "tiny.yaml"], "is not a folder"),
    "unwritable results": (["--grid", "tiny", QUIET, "--results", "/proc/results"], "can't be written"),
    "nothing to sync": (["--sync"], "there are no results"),
    "tracking or not": (["--grid", "tiny", QUIET, "--tracking-uri", "sqlite:///m.db"], "does not go together"),
}


@pytest.mark.parametrize("kind", BAD_GRIDS)
def test_a_bad_grid_ends_with_one_message_and_nothing_written(kind, tmp_path, monkeypatch, capsys):
    text, expected = BAD_GRIDS[kind]
    (tmp_path / "bad.yaml").write_text(text)
    _assert_refused(["--grid", "bad.yaml"], expected, tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("kind", BAD_ARGUMENTS)
def test_a_bad_command_line_ends_with_one_message_and_nothing_written(kind, tmp_path, monkeypatch, capsys):
    arguments, expected = BAD_ARGUMENTS[kind]
    write_grid(tmp_path)
    _assert_refused(arguments, expected, tmp_path, monkeypatch, capsys)


def _assert_refused(arguments, expected, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    before = everything_in(folder)
    try:
        code = run_sweep.main(arguments)
    except SystemExit as error:  # argparse
        code = error.code
    output = capsys.readouterr()
    assert code == 2
    assert expected in output.err
    assert output.out == ""
    assert "Traceback" not in output.err
    assert everything_in(folder) == before


def test_the_systems_python_goes_on_with_the_projects(tmp_path):
    bare = [sys.executable, "-I", "-S", str(ROOT / "run_sweep.py"), "--list"]  # -S: no packages
    if (ROOT / ".venv/bin/python").exists():
        ended = subprocess.run(bare, capture_output=True, text=True, timeout=60)
        assert ended.returncode == 0, ended.stderr
    alone = tmp_path / "run_sweep.py"
    alone.write_bytes((ROOT / "run_sweep.py").read_bytes())
    ended = subprocess.run([*bare[:3], str(alone), "--list"], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (
        2,
        "error: the project's packages are missing; run `make setup` first\n",
    )


def cell_of(**settings):
    config = RunConfig(**settings)
    return Cell(f"workers={config.workers}", {}, config)


def test_real_runtimes_have_the_machine_for_themselves_unless_asked():
    virtual, real = cell_of(), cell_of(runtime="processes")
    assert [at_once for _, at_once in batches([virtual] * 64 + [real] * 3, None)][1] == 1
    assert batches([real] * 3, 2) == [([real] * 3, 2)]
    assert is_oversubscribed(cell_of(runtime="processes", workers="4000").config)
    assert not is_oversubscribed(cell_of(workers="4000").config)


def test_estimates_grow_with_the_work():
    short, long = cell_of(episodes=1000), cell_of(episodes=100_000)
    assert cell_seconds(short.config) < cell_seconds(long.config)
    assert sweep_seconds([long] * 4, 1) == pytest.approx(4 * cell_seconds(long.config))


def test_the_table_shows_running_cells_and_the_sweep():
    console = Console(width=140, record=True, force_terminal=True)
    cells = [cell_of(workers="4", episodes=1000), cell_of(workers="40", episodes=1000)]
    board = Board(cells, console)
    board.started(cells[0])
    for episodes in (100, 500):
        board.progressed(cells[0], Progress(episodes, score=1.25, staleness=7.5, workers=4, clock_s=3700.0))
    console.print(board.table())
    shown = console.export_text()
    for text in ("0 of 2 cells, 1 running", "to go", "workers=4", "500/1,000", "1.2", "7.5", "1 h 01 min"):
        assert text in shown


def test_nothing_is_to_go_while_a_run_of_env_steps_ends_its_last_episodes():
    console = Console(width=140, record=True, force_terminal=True)
    cell = cell_of(env_steps=1000)
    board = Board([cell], console)
    board.started(cell)
    for env_steps in (500, 1200):
        board.progressed(cell, Progress(1, score=0.0, staleness=1.0, workers=4, clock_s=1.0, env_steps=env_steps))
    assert board.headline().endswith(", 0.0 s to go")


def test_durations_are_readable():
    assert [duration(seconds) for seconds in (1.25, 59.4, 200, 3720, 360_000)] == [
        "1.2 s",
        "59 s",
        "3 min 20 s",
        "1 h 02 min",
        "100 h 00 min",
    ]


@pytest.mark.parametrize(
    ("asked", "base", "expected"),
    [
        ({"backend": "ray"}, {}, "--backend ray needs Ray, which is not installed: `make setup-ray`"),
        ({}, {"runtime": "ray"}, "runtime: ray needs Ray, which is not installed: `make setup-ray`"),
        ({"address": "10.0.0.1:6379"}, {}, "--address names a Ray cluster"),
    ],
)
def test_what_needs_ray_says_so_without_it(tmp_path, monkeypatch, asked, base, expected):
    monkeypatch.setattr(understanding, "ray_is_installed", lambda: False)
    grid = write_grid(tmp_path, base={"episodes": 10, **base})
    with pytest.raises(UserError, match=re.escape(expected)):
        understanding.understand(understanding.Request(str(grid), tmp_path / "results", **asked))


def test_cells_on_ray_ask_for_the_cores_they_need():
    def cells(**settings):
        return [Cell(str(seed), {}, RunConfig(seed=seed, **settings)) for seed in range(3)]

    virtual, real, far = (cells(workers="4", runtime=runtime) for runtime in ("simulate", "processes", "ray"))
    assert groups([*virtual, *real, *far], None, [8, 6]) == [(virtual, 1, 3), (real, 5, 2), (far, 0, 1)]
    assert groups(virtual, 2, [8]) == [(virtual, 1, 2)]
    assert groups(real, None, [2, 2]) == [(real, 2, 2)]  # no machine has five: all of one
