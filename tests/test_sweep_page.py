"""A sweep ends in its page, before MLflow has everything; whoever does not wait for it is told how to go on."""

import os
import signal
import subprocess
import threading

from rich.console import Console

from experiments import processes
from experiments.study_folder import lock_file
from experiments.sweep import page
from tests.mlflow_server import new_database
from tests.sweeps import PATIENCE_S, WITH_PAGE, page_processes, started_sweep, wait_for, way_on, write_grid

ONE_CELL = {"axes": {"workers": [2]}}
PAGE = "results/tiny/index.html"


def test_the_page_is_there_before_mlflow_is_waited_for_and_is_not_drawn_again_for_nothing(tmp_path):
    write_grid(tmp_path, **ONE_CELL)
    new_database(tmp_path)
    output = tmp_path / "output.txt"
    stays_behind = lock_file(tmp_path / "results/tiny/cells/.tracking.lock", 0.0)
    with stays_behind, started_sweep(tmp_path, "--grid", "tiny", command=WITH_PAGE) as process:
        wait_for(lambda: "MLflow: 0 of 1 finished cells" in output.read_text())
        drawn = (tmp_path / PAGE).stat().st_mtime_ns
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
    said = output.read_text()
    assert said.index("Page: ") < said.index("MLflow: 0 of 1")
    assert f"Report page: {PAGE}" in said
    with started_sweep(tmp_path, "--grid", "tiny", "--no-tracking", command=WITH_PAGE) as process:
        assert process.wait(PATIENCE_S) == 0
    assert (tmp_path / PAGE).stat().st_mtime_ns == drawn


def test_ctrl_c_while_the_page_is_made_loses_nothing_and_says_how_to_go_on(tmp_path):
    write_grid(tmp_path, **ONE_CELL)
    with started_sweep(tmp_path, "--grid", "tiny", "--no-tracking", command=WITH_PAGE) as process:
        wait_for(lambda: page_processes(tmp_path))
        os.kill(page_processes(tmp_path)[0], signal.SIGSTOP)  # so that it can't be faster than we are
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
    assert page_processes(tmp_path) == []
    said = (tmp_path / "output.txt").read_text()
    assert "The page is not up to date (interrupted)" in said
    subprocess.run(way_on(said), shell=True, cwd=tmp_path, check=True, timeout=PATIENCE_S)
    assert (tmp_path / PAGE).exists()


def test_ctrl_c_while_the_page_begins_ends_what_makes_it(tmp_path, monkeypatch):
    started, start = [], processes.start

    def interrupted(*arguments):
        started.append(start(*arguments))
        os.kill(os.getpid(), signal.SIGINT)
        return started[0]

    ended = threading.Event()
    threading.Thread(target=ended.wait, daemon=True).start()  # a second one, which hears what the first does not
    monkeypatch.setattr("experiments.processes.start", interrupted)
    assert page.build(tmp_path, Console(quiet=True)).interrupted
    ended.set()
    assert started[0].returncode is not None  # it was waited for, whether it was killed or faster


def test_what_makes_the_page_ends_with_a_sweep_that_is_killed(tmp_path):
    write_grid(tmp_path, **ONE_CELL)
    with started_sweep(tmp_path, "--grid", "tiny", "--no-tracking", command=WITH_PAGE) as process:
        wait_for(lambda: page_processes(tmp_path))
        page = page_processes(tmp_path)[0]
        os.kill(page, signal.SIGSTOP)
        process.kill()
        process.wait()
        os.kill(page, signal.SIGCONT)
        wait_for(lambda: not page_processes(tmp_path))
    assert not (tmp_path / PAGE).exists()


def test_a_page_that_cant_be_made_is_said_and_the_cells_are_kept(tmp_path):
    write_grid(tmp_path, **ONE_CELL)
    (tmp_path / PAGE).mkdir(parents=True)  # in the page's place
    with started_sweep(tmp_path, "--grid", "tiny", "--no-tracking", "--fresh", command=WITH_PAGE) as process:
        assert process.wait(PATIENCE_S) == 0
    said = (tmp_path / "output.txt").read_text()
    assert "The page is not up to date (results/tiny can't be written" in said
    assert "finished" in said
