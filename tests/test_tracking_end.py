"""After the last cell: what MLflow still lacks is brought to it at full priority, aloud, and may be left for later."""

import os
import signal
import subprocess
from contextlib import suppress

from experiments.study_folder import lock_file
from experiments.tracking.store import connect
from tests.mlflow_server import new_database
from tests.sweeps import PATIENCE_S, started_sweep, tracker_processes, wait_for, way_on, write_grid
from tests.test_tracking import assert_every_episode_once, runs_of


def test_a_tracker_that_gets_no_time_is_followed_by_one_of_full_priority(tmp_path):
    write_grid(tmp_path)
    new_database(tmp_path)
    priorities = {}
    with started_sweep(tmp_path, "--grid", "tiny") as process:
        wait_for(lambda: tracker_processes(tmp_path))
        starved = tracker_processes(tmp_path)[0]
        os.kill(starved, signal.SIGSTOP)  # the machine is so busy that it never has a turn

        def ended():
            with suppress(ProcessLookupError):
                priorities.update((pid, os.getpriority(os.PRIO_PROCESS, pid)) for pid in tracker_processes(tmp_path))
            return process.poll() is not None

        try:
            wait_for(ended)
        finally:
            with suppress(ProcessLookupError):
                os.kill(starved, signal.SIGCONT)  # else it would outlive a test that fails
        assert process.returncode == 0
    priorities.pop(starved)
    assert set(priorities.values()) == {os.getpriority(os.PRIO_PROCESS, 0)}
    output = (tmp_path / "output.txt").read_text()
    assert "MLflow: 0 of 2 finished cells are there" in output
    assert "not up to date" not in output
    client = connect(f"sqlite:///{tmp_path}/mlflow.db")
    for cell in tmp_path.glob("results/tiny/cells/*seed=*"):
        assert_every_episode_once(client, runs_of(client, "tiny")[cell.name], cell)


def test_ctrl_c_while_mlflow_is_waited_for_loses_nothing_and_says_how_to_go_on(tmp_path):
    write_grid(tmp_path)
    new_database(tmp_path)
    output = tmp_path / "output.txt"
    with lock_file(tmp_path / "results/tiny/cells/.tracking.lock", 0.0):  # so it can only wait
        with started_sweep(tmp_path, "--grid", "tiny") as process:
            wait_for(lambda: "MLflow: 0 of 2 finished cells" in output.read_text())
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 0
        assert tracker_processes(tmp_path) == []
    assert "MLflow is not up to date (interrupted)" in output.read_text()
    subprocess.run(way_on(output.read_text()), shell=True, cwd=tmp_path, check=True, timeout=PATIENCE_S)
    client = connect(f"sqlite:///{tmp_path}/mlflow.db")
    for cell in tmp_path.glob("results/tiny/cells/*seed=*"):
        assert_every_episode_once(client, runs_of(client, "tiny")[cell.name], cell)
