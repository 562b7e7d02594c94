"""Workers and cells on Ray: a cluster of two nodes, both on this machine. Skipped without the extra `ray`."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest

from a3c.benchmark import runtime
from a3c_core.config import ExchangeConfig, LearnerConfig, RunConfig
from a3c_core.games.base import EnvironmentConfig
from a3c_core.models.dense import DenseModel
from a3c_core.real.worker_manager import RunFailed
from a3c_core.records.tables import read_records
from a3c_core.schedules import ScheduleConfig
from a3c_core.system.ray_cluster import ADDRESS, LOOPBACK, NoCluster, connected, import_ray, ray_is_installed
from a3c_core.train import train
from tests.sweeps import PATIENCE_S, ROOT, metadata, results, started_sweep, sweep, wait_for, write_grid
from tests.test_processes import PROGRAM, assert_each_once, collect

if not ray_is_installed():
    pytest.skip("the extra `ray` is not installed: make test-ray adds it", allow_module_level=True)
ray = import_ray()

import psutil  # noqa: E402  comes with Ray
from ray.cluster_utils import Cluster  # noqa: E402

HEAD = {"num_cpus": 3, "node_ip_address": LOOPBACK, "include_dashboard": False}
NODE = {"num_cpus": 2, "node_ip_address": LOOPBACK}
IN_PIECES = LearnerConfig(t_max=20, update_every="t_max", standardise=False)
SWIFT = LearnerConfig(learning_rate=1e-3)  # passes pipes after some thousand episodes

SHORT = EnvironmentConfig(max_episode_steps=500)


@pytest.fixture(scope="module")
def cluster():
    """Two nodes, to which this process is connected."""
    made = Cluster(initialize_head=True, head_node_args=HEAD)
    made.add_node(**NODE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ADDRESS, made.address)
        with connected(local_cpus=0):
            made.wait_for_nodes()
            yield made
    made.shutdown()


@pytest.fixture
def other_node(cluster):
    """A node with two CPUs that a test may remove."""
    for node in list(cluster.worker_nodes)[1:]:
        cluster.remove_node(node)
    yield next(iter(cluster.worker_nodes), None) or cluster.add_node(**NODE)
    if not cluster.worker_nodes:
        cluster.add_node(**NODE)
        cluster.wait_for_nodes()


def on(cluster) -> list[str]:
    """Return what makes run_sweep.py use the cluster."""
    return ["--backend", "ray", "--address", cluster.address]


def test_a_run_learns_and_survives_the_loss_of_a_node(cluster, other_node):
    lost = []

    def remove(run, record):
        if record.episode == 1000:
            cluster.remove_node(other_node, allow_graceful=False)
            lost.append(record.episode)

    config = RunConfig(workers="4", episodes=3000, runtime="ray", learner=SWIFT, environment=SHORT)
    summary, records = collect(config, None, remove)
    assert lost
    assert_each_once(summary, records, 3000)
    assert 1 <= summary.crashes <= 2  # those two of the four that were there
    assert summary.score_last_tenth > 2
    assert np.mean([record.score for record in records[:300]]) < 0.2


def test_a_killed_actor_is_replaced_and_its_episodes_are_played(cluster):
    def kill(run, record):
        if record.episode in (50, 150):
            slot = next(slot for slot, member in run.runtime.pool.members.items() if member.called is not None)
            ray.kill(run.runtime.pool.members[slot].actor)

    config = RunConfig(workers="3", episodes=300, runtime="ray", learner=IN_PIECES, agents_per_worker=2)
    summary, records = collect(config, None, kill)
    assert_each_once(summary, records, 300)
    assert summary.crashes == 2


VALUES = {"target_every": 1_000, "epsilon_steps": 5_000}
BATCHES = {"batch_steps": 300, "horizon": 32}
OF_ALGORITHMS = {**dict.fromkeys(("q", "sarsa", "n_step_q"), VALUES), "ppo": BATCHES, "vtrace": BATCHES}
OF_ALGORITHMS["dppo"] = {"horizon": 32}


@pytest.mark.parametrize("algorithm", OF_ALGORITHMS)
def test_every_algorithm_has_actors(cluster, algorithm):
    """Target networks reach them, and their trajectories become batches."""
    learner = OF_ALGORITHMS[algorithm]
    config = RunConfig.model_validate(
        {"workers": "3", "episodes": 120, "runtime": "ray", "algorithm": algorithm, "learner": learner}
    )
    summary, records = collect(config)
    assert_each_once(summary, records, 120)
    assert summary.updates > 10


def test_too_many_lost_actors_end_the_run(cluster):
    def kill(run, record):
        for member in run.runtime.pool.members.values():
            ray.kill(member.actor)

    with pytest.raises(RunFailed, match="0 allowed"):
        collect(RunConfig(workers="2", episodes=10**6, runtime="ray", restarts=0), None, kill)


def test_schedules_add_and_remove_actors(cluster):
    growing = ScheduleConfig(first_s=0.001, further_s=0.001, window=10, spacing=20)
    config = RunConfig(workers="2->4", episodes=400, runtime="ray", schedule=growing)
    summary, records = collect(config)
    assert_each_once(summary, records, 400)
    assert summary.workers_max == 4

    def shrink(run, record):
        if record.episode == 100:
            run.runtime.worker_manager.change(1)

    summary, records = collect(RunConfig(workers="3", episodes=300, runtime="ray"), None, shrink)
    assert_each_once(summary, records, 300)
    assert summary.crashes == 0
    assert len({record.worker for record in records[-50:]}) == 1


EXCHANGES = [
    {"pull": "after_apply"},
    {"queue": "unbounded"},
    {"queue": "dropping", "queue_size": 1},
    {"queue": "unbounded", "hold": 4, "batch": 2},
    {"rate": "gap", "compensation": 0.1},
    {"bound": 1, "beyond": "wait"},
]


@pytest.mark.parametrize("exchange", EXCHANGES, ids=str)
def test_every_exchange_counts_every_episode(cluster, exchange):
    config = RunConfig(workers="3", episodes=200, runtime="ray", exchange=ExchangeConfig(**exchange))
    summary, records = collect(config)
    assert_each_once(summary, records, 200)
    if exchange.get("pull") == "after_apply":  # so each has pulled a version that holds its gradients so far
        latest: dict[int, int] = {}
        for record in records:
            assert record.version_pulled >= latest.get(record.worker, 0)
            latest[record.worker] = record.version_applied


@pytest.mark.parametrize("backups", [0, 1])
def test_rounds_have_no_staleness(cluster, backups):
    exchange = {"backups": backups}
    config = RunConfig(workers="3", episodes=200, runtime="ray", topology="synchronous", exchange=exchange)
    summary, records = collect(config)
    assert_each_once(summary, records, 200)
    assert {record.staleness for record in records} == {0}


def test_bundles_of_actor_memory_and_learner_are_actors(cluster, tmp_path):
    """Gorila: what a replay worker hands over before it has enough to draw from is rejected, then it learns."""
    learner = {"learn_from": 200, "memory_steps": 1_000, "target_every": 1_000, "t_max": 10}
    parts = {"algorithm": "dqn", "topology": "gorila", "exchange": {"pace": "in_step", "shards": 1, "bound": 2}}
    config = RunConfig.model_validate({"workers": "3", "episodes": 150, "runtime": "ray", "learner": learner, **parts})
    summary, records = collect(config, tmp_path)
    assert_each_once(summary, records, 150)
    assert summary.staleness_max <= 2
    assert summary.gradients_applied > summary.gradients_rejected > 0


def test_parameters_are_stored_once_per_version(cluster, monkeypatch):
    stored = []
    put = ray.put
    monkeypatch.setattr(ray, "put", lambda value: stored.append(value.copy()) or put(value))
    _, records = collect(RunConfig(workers="4", episodes=300, runtime="ray"))
    pulled = {record.version_pulled for record in records}
    assert len(pulled) <= len(stored) <= len(pulled) + 4  # of those under way at the end nothing is recorded
    assert len({parameters.tobytes() for parameters in stored}) == len(stored)


def test_an_interrupted_run_resumes_and_counts_no_episode_twice(cluster, tmp_path):
    config = RunConfig(workers="2", episodes=600, runtime="ray")

    def interrupt(run, record):
        if record.episode == 200:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        collect(config, tmp_path, interrupt)
    summary = train(config, tmp_path)
    records = read_records(tmp_path).to_pandas()
    assert summary.episodes == len(records) == 600
    assert not records.duplicated(["worker", "worker_episode"]).any()


def test_more_workers_than_cpus_are_refused(cluster):
    with pytest.raises(NoCluster, match="40 workers need as many CPUs, and the Ray cluster has 5"):
        train(RunConfig(workers="40", episodes=10, runtime="ray"))


def test_a_sweep_on_two_nodes_gives_the_same_bytes(cluster, tmp_path):
    write_grid(tmp_path, axes={"workers": [2, 4, "6->12"]}, seeds=2)
    local = sweep(tmp_path, "--grid", "tiny.yaml", "--no-tracking", "--results", "here")
    there = sweep(tmp_path, "--grid", "tiny.yaml", "--no-tracking", "--results", "there", *on(cluster))
    assert local.returncode == there.returncode == 0, there.stderr
    cells = sorted(path.name for path in (tmp_path / "here/tiny/cells").iterdir() if path.is_dir())
    assert len(cells) == 6
    for cell in cells:
        assert results(tmp_path / "here/tiny/cells" / cell) == results(tmp_path / "there/tiny/cells" / cell)
        assert metadata(tmp_path / "there/tiny/cells" / cell)["status"] == "finished"
    again = sweep(tmp_path, "--grid", "tiny.yaml", "--no-tracking", "--results", "there", *on(cluster))
    assert "6 cells already finished: skipped" in again.stdout


def test_cells_with_workers_of_their_own_run_on_ray_too(cluster, tmp_path):
    write_grid(tmp_path, base={"episodes": 100}, axes={"runtime": ["processes", "ray"]})
    done = sweep(tmp_path, "--grid", "tiny.yaml", "--no-tracking", "--set", "workers=2", *on(cluster))
    assert done.returncode == 0, done.stdout + done.stderr
    for cell in (tmp_path / "results").glob("*/cells/runtime=*"):
        assert len(read_records(cell)) == 100


def test_a_sweep_is_interrupted_and_leaves_what_had_not_begun(cluster, tmp_path):
    write_grid(tmp_path, base={"episodes": 200_000, "profile": "uniform"}, seeds=8, axes={"workers": [2]})
    cells = tmp_path / "results/tiny/cells"
    with started_sweep(tmp_path, "--grid", "tiny.yaml", "--no-tracking", *on(cluster), "--jobs", "2") as process:
        wait_for(lambda: len(list(cells.glob("*/episodes.parts/*"))) >= 2)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
    assert [metadata(cell)["status"] for cell in cells.glob("workers*")] == ["interrupted"] * 2
    assert len(list(cells.glob("*/checkpoints"))) == 2


def test_a_failed_cell_stops_the_others_if_that_is_wished(cluster, tmp_path):
    write_grid(tmp_path, base={"episodes": 10_000_000, "profile": "uniform"}, seeds=4, axes={"workers": [2]})
    cells = tmp_path / "results/tiny/cells"
    arguments = ["--grid", "tiny.yaml", "--no-tracking", *on(cluster), "--jobs", "2", "--fail-fast"]
    with started_sweep(tmp_path, *arguments) as process:
        wait_for(lambda: len(list(cells.glob("*/episodes.parts/*"))) >= 2)
        os.kill(next(iter(cell_pids(tmp_path).values())), signal.SIGKILL)
        assert process.wait(PATIENCE_S) == 1
    assert sorted(metadata(cell)["status"] for cell in cells.glob("workers*")) == ["failed", "interrupted"]


def cell_pids(folder) -> dict[str, int]:
    """Return {cell: process id} of the cells whose results are in the folder, wherever they were started."""
    commands = {process.pid: process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])}
    return {
        words[-1]: pid
        for pid, words in commands.items()
        if "experiments.sweep.cell" in words and str(folder) in words[-2]
    }


def stop_once_begun(folder, count: int) -> list[int]:
    """Stop each cell as soon as it has records, so that none ends before the last has begun; return their processes."""
    stopped: dict[str, int] = {}

    def all_are_stopped() -> bool:
        for cell, pid in cell_pids(folder).items():
            if cell not in stopped and (folder / "results/tiny/cells" / cell / "episodes.parts").exists():
                os.kill(pid, signal.SIGSTOP)
                stopped[cell] = pid
        return len(stopped) == count

    wait_for(all_are_stopped)
    return list(stopped.values())


def test_a_cell_whose_node_is_lost_goes_on_elsewhere(cluster, other_node, tmp_path):
    base = {"episodes": 200_000, "profile": "uniform", "environment": {"max_episode_steps": 60}}
    write_grid(tmp_path, base=base, seeds=5, axes={"workers": [2]})
    cells = tmp_path / "results/tiny/cells"
    with started_sweep(tmp_path, "--grid", "tiny.yaml", "--no-tracking", *on(cluster)) as process:
        begun = stop_once_begun(tmp_path, 5)  # one on each CPU
        cluster.remove_node(other_node, allow_graceful=False)
        for pid in begun:
            with suppress(ProcessLookupError):  # those of the lost node
                os.kill(pid, signal.SIGCONT)
        assert process.wait(PATIENCE_S) == 0, (tmp_path / "output.txt").read_text()
    assert len(list(cells.glob("*/episodes.parquet"))) == 5
    assert sum(bool(metadata(cell)["resumed"]) for cell in cells.glob("workers*")) >= 2


def test_a_cluster_of_our_own_listens_on_loopback_only_and_dies_with_a_killed_master(tmp_path):
    settings = RunConfig(workers="2", episodes=10**6, runtime="ray", checkpoint_s=1).model_dump_json()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), ADDRESS: "local"}
    with subprocess.Popen([sys.executable, "-c", PROGRAM, settings, str(tmp_path)], env=environment) as master:
        try:
            wait_for(lambda: list(tmp_path.glob("episodes.parts/*")))
            family = psutil.Process(master.pid).children(recursive=True)
            assert {"raylet", "gcs_server"} <= {process.name() for process in family}
            agents = {process.pid for process in family if process.name().endswith("Agent")}
            listening = [
                connection.laddr.ip
                for process in (psutil.Process(master.pid), *family)
                for connection in process.net_connections("tcp")
                if connection.status == psutil.CONN_LISTEN
            ]
            assert listening
            assert {address.removeprefix("::ffff:") for address in listening} == {LOOPBACK}
        finally:
            master.kill()
    # Two agents of Ray's own try to reach the dead head for a minute before they give up.
    _, alive = psutil.wait_procs([process for process in family if process.pid not in agents], timeout=10)
    assert not alive


def test_the_benchmark_has_rows_of_ray(monkeypatch):
    monkeypatch.setattr(runtime, "ON_RAY", runtime.ON_RAY[-2:])  # one worker here, one on Ray
    rows, (overhead,) = runtime._on_ray({"short": DenseModel().initial_parameters(0)}, 1.0)
    assert [row.name for row in rows] == ["short, processes, shared, 1", "short, ray, 1"]
    assert rows[0].per_second > rows[1].per_second > 0
    assert overhead.value > 0


def test_without_a_cluster_the_error_says_so(tmp_path):
    write_grid(tmp_path)
    with socket.socket() as nobody:
        nobody.bind((LOOPBACK, 0))
        address = f"{LOOPBACK}:{nobody.getsockname()[1]}"
        done = sweep(tmp_path, "--grid", "tiny.yaml", "--no-tracking", "--backend", "ray", "--address", address)
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1].startswith(f"error: there is no Ray cluster at {address}")
    assert "Traceback" not in done.stderr
