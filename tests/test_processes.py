"""Real workers: every episode counted once whatever dies, and nothing left behind."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from a3c_core.config import ExchangeConfig, LearnerConfig, RunConfig
from a3c_core.real.shared_memory import AFTER_THIS_EPISODE, RING_SIZE, Layout, SharedBlock
from a3c_core.real.transport import SharedChannel, Stopped
from a3c_core.real.worker_manager import RunFailed
from a3c_core.records.tables import EpisodeRecord, read_records
from a3c_core.train import Run, train
from a3c_core.worker import Work
from tests.storm.checks import orphaned_memory, shared_memory
from tests.sweeps import PATIENCE_S

TRANSPORTS = {
    "shared": {"exchange": ExchangeConfig(transport="shared")},
    "queue": {"exchange": ExchangeConfig(transport="queue", channel="mailbox")},
    "hogwild": {"topology": "hogwild"},
}
IN_PIECES = LearnerConfig(t_max=20, update_every="t_max", standardise=False)
PROGRAM = (
    "import sys; from pathlib import Path; from a3c_core.config import RunConfig; from a3c_core.train import train;"
    "train(RunConfig.model_validate_json(sys.argv[1]), Path(sys.argv[2]))"
)


def config_of(transport="shared", workers="4", episodes=400, runtime="processes", **settings):
    return RunConfig(workers=workers, episodes=episodes, runtime=runtime, **TRANSPORTS[transport], **settings)


def collect(config, directory=None, on_episode=None):
    """Return (summary, records) of a run, calling `on_episode(run, record)` along the way."""
    records: list[EpisodeRecord] = []

    def remember(record):
        records.append(record)
        if on_episode is not None:
            on_episode(run, record)

    run = Run(config, directory, remember)
    run.runtime.write_up_after = 1  # along the way, not when so short a run is over
    return run.finish(), records


def assert_each_once(summary, records, episodes):
    assert len(records) == episodes == summary.episodes
    assert len({(record.worker, record.worker_episode) for record in records}) == episodes
    applied, rejected = summary.gradients_applied, summary.gradients_rejected
    assert summary.gradients_sent == applied + rejected + summary.gradients_dropped + summary.gradients_lost


@pytest.mark.parametrize("runtime", ["processes", "threads"])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_every_episode_is_counted_once(transport, runtime):
    summary, records = collect(config_of(transport, runtime=runtime))
    assert_each_once(summary, records, 400)
    assert {record.worker for record in records} == {0, 1, 2, 3}
    assert all(record.finished_s >= record.started_s for record in records)
    assert summary.crashes == 0
    assert summary.worker_play_s > 0 < summary.worker_gradient_s
    assert summary.oversubscribed == ((os.cpu_count() or 1) < 5)


@pytest.mark.parametrize("engine", ["tensorflow", "report"])
def test_tensorflow_plays_in_processes_too(engine, capfd):
    summary, records = collect(config_of(workers="2", episodes=6, engine=engine))
    assert_each_once(summary, records, 6)
    assert summary.crashes == 0
    assert capfd.readouterr().err == ""  # no storm of warnings where there is no GPU


def test_updates_within_episodes_are_applied_in_order():
    summary, records = collect(config_of(learner=IN_PIECES))
    assert_each_once(summary, records, 400)
    assert summary.updates > 800


def test_one_waiting_worker_plays_the_game_of_virtual_time():
    """One worker that waits for its update leaves only one order of events: the real run equals the virtual one."""
    waiting = ExchangeConfig(pull="after_apply")
    games = {}
    for runtime in ("simulate", "processes", "threads"):
        records: list[EpisodeRecord] = []
        train(RunConfig(workers="1", episodes=200, runtime=runtime, exchange=waiting), on_episode=records.append)
        games[runtime] = [(record.score, record.steps, record.version_pulled, record.staleness) for record in records]
    assert games["processes"] == games["simulate"] == games["threads"]


def test_a_stuck_worker_is_replaced():
    def stop(run, record):
        if record.episode == 50:
            os.kill(run.runtime.pool.members[1].body.pid, signal.SIGSTOP)

    summary, records = collect(config_of(worker_limit_s=1.0), on_episode=stop)
    assert_each_once(summary, records, 400)
    assert summary.crashes >= 1


def test_too_many_lost_workers_end_the_run_with_the_reason():
    def kill(run, record):
        if record.episode % 20 == 19:
            with contextlib.suppress(ProcessLookupError, KeyError):  # dead, and perhaps removed
                os.kill(run.runtime.pool.members[0].body.pid, signal.SIGKILL)

    with pytest.raises(RunFailed, match="worker 0: killed by signal 9"):
        collect(config_of(restarts=2, episodes=100_000), on_episode=kill)


def test_workers_join_and_leave_for_real():
    """Seen from outside: the process ids that are alive while the schedule goes up, and down again."""
    alive = []

    def look(run, record):
        members = run.runtime.pool.members.values()
        alive.append(sum(Path(f"/proc/{member.body.pid}").exists() for member in members))

    schedule = {"first_s": 0.3, "further_s": 0.01, "window": 10, "spacing": 40}
    summary, records = collect(config_of(workers="6->12", episodes=1500, schedule=schedule), on_episode=look)
    assert_each_once(summary, records, 1500)
    assert alive[0] == 6
    assert max(alive) == 12
    counts = [record.workers_alive for record in records]
    assert counts == sorted(counts)


def test_auto_lets_workers_go():
    alive: set[int] = set()

    def look(run, record):
        runtime = run.runtime
        alive.add(runtime.worker_manager.alive)
        runtime.inbox.count_busy = lambda: 0.0 if record.episode < 600 else 1.0  # as if idle, then swamped

    schedule = {"auto_min": 2, "auto_max": 8, "window": 20, "spacing": 50}
    slow = {"wait_s": 2e-5}  # or the queue would be full all the time, whatever the master seems to do
    config = config_of(workers="auto", episodes=1500, schedule=schedule, environment=slow)
    summary, records = collect(config, on_episode=look)
    assert_each_once(summary, records, 1500)
    assert max(alive) >= 6
    assert records[-1].workers_alive <= 4


def test_a_worker_on_its_way_out_overwrites_nothing_that_the_master_has_not_taken():
    block = SharedBlock(Layout(slots=1, parameters=3, agents=1, averages=0, mail_bytes=0))
    arrays, (_, doorbell), (wake, button) = block.arrays, os.pipe(), os.pipe()
    line = SharedChannel(RunConfig(), 0, arrays, doorbell, wake)
    arrays.inbox["room"] = 9
    work = Work(np.zeros(3, np.float32), 1, 0, ())
    for version in range(RING_SIZE):
        line.deliver(work, version)
    arrays.slots["stop"] = AFTER_THIS_EPISODE
    last = threading.Thread(target=line.deliver, args=(work, 99))
    last.start()
    last.join(0.3)
    assert last.is_alive()  # it waits for the master
    assert arrays.messages["version_pulled"][0].tolist() == list(range(RING_SIZE))
    arrays.slots["accepted"] = 1
    os.write(button, b"!")
    last.join()
    assert arrays.messages["version_pulled"][0].tolist() == [99, *range(1, RING_SIZE)]


class ToldMeanwhile(dict):
    """A slot whose worker is told to stop after so many looks at whether it is."""

    def __init__(self, looks):
        super().__init__(granted=5, waiting=0, wait_s=0.0, generation=0)
        self._looks = looks

    def __missing__(self, name):
        assert name == "stop"
        self._looks -= 1
        return 0 if self._looks >= 0 else AFTER_THIS_EPISODE


@pytest.mark.parametrize("looks", range(6))
def test_a_worker_that_is_told_to_stop_at_any_moment_begins_something_or_leaves(looks):
    block = SharedBlock(Layout(slots=1, parameters=3, agents=1, averages=0, mail_bytes=0))
    line = SharedChannel(RunConfig(), 0, block.arrays, *os.pipe())
    line._slot = ToldMeanwhile(looks)
    try:
        begun = line.may_begin(next_episode=3, has_work=False)
    except Stopped:
        begun = None
    assert begun in (2, None)
    line._slot = ToldMeanwhile(looks)
    assert line.may_begin(next_episode=3, has_work=True) in (2, 0)


def test_an_unbounded_queue_ends_as_overloaded():
    exchange = ExchangeConfig(queue="unbounded", overload_limit=30)
    config = RunConfig(workers="8", episodes=100_000, runtime="processes", exchange=exchange)

    def be_slow(run, record):
        time.sleep(0.002)

    summary, records = collect(config, on_episode=be_slow)
    assert summary.outcome == "overloaded"
    assert summary.gradients_dropped >= 30
    assert len(records) == summary.episodes < 100_000


def marked_processes(mark: str) -> list[int]:
    """Return the ids of all processes that carry `mark` in their environment, and are not just waiting to be reaped."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (directory / "environ").read_bytes():
                found.append(int(directory.name))
        except OSError:
            continue
    return found


def start_elsewhere(config: RunConfig, directory: Path, mark: str) -> subprocess.Popen:
    """Start a run in a process of its own and return when it has left a checkpoint of some updates."""
    environment = {**os.environ, "A3C_TEST_MARK": mark}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, config.model_dump_json(), str(directory)], env=environment
    )
    deadline = time.monotonic() + 60
    while not any(int(path.name) for path in directory.glob("checkpoints/0*")) and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.02)
    return process


def wait_until_gone(mark: str, limit_s: float) -> list[int]:
    deadline = time.monotonic() + limit_s
    while marked_processes(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    return marked_processes(mark)


@pytest.mark.parametrize("transport", ["shared", "queue"])
def test_workers_die_with_a_killed_master_and_the_run_resumes(transport, tmp_path):
    config = config_of(transport, workers="6", episodes=20_000, checkpoint_s=0.1)
    mark = f"killed-{transport}-{os.getpid()}"
    before = shared_memory()
    process = start_elsewhere(config, tmp_path, mark)
    assert len(marked_processes(mark)) >= 7
    process.kill()
    process.wait()
    assert wait_until_gone(mark, PATIENCE_S) == []
    assert orphaned_memory(before) == []
    had = len(read_records(tmp_path))
    summary, records = collect(config, tmp_path)
    everything = read_records(tmp_path).to_pandas()
    assert len(everything) == 20_000 == summary.episodes
    assert not everything.duplicated(["worker", "worker_episode"]).any()
    assert 0 < len(records) < 20_000
    assert had > 0


def test_ctrl_c_leaves_records_and_a_checkpoint(tmp_path):
    config = config_of(workers="4", episodes=200_000, checkpoint_s=0.2)
    mark = f"interrupted-{os.getpid()}"
    process = start_elsewhere(config, tmp_path, mark)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) != 0
    assert wait_until_gone(mark, PATIENCE_S) == []
    assert len(read_records(tmp_path)) > 0


def test_mailbox_and_latest_must_fit_the_transport():
    with pytest.raises(ValueError, match="mailbox"):
        RunConfig(runtime="processes", exchange=ExchangeConfig(transport="queue", channel="latest"))
    with pytest.raises(ValueError, match="latest"):
        RunConfig(runtime="threads", exchange=ExchangeConfig(transport="shared", channel="mailbox"))


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_learns_with_real_processes(transport):
    learner = LearnerConfig(learning_rate=1e-3)
    if transport == "hogwild":
        learner = LearnerConfig(optimizer="rmsprop", learning_rate=3e-3)
    summary, records = collect(config_of(transport, episodes=4_000, learner=learner))
    assert_each_once(summary, records, 4_000)
    assert np.mean([record.score for record in records[-400:]]) >= 12
