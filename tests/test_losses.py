"""Workers, their fork server and their master are lost in every way: nothing is counted twice or left behind."""

import contextlib
import math
import os
import signal
import time
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from types import SimpleNamespace

import pytest

from a3c.benchmark.feeder import FedMaster
from a3c_core.config import RunConfig
from a3c_core.real import local_pool as pool_module
from a3c_core.real import worker as worker_module
from a3c_core.real.local_pool import LocalPool
from a3c_core.real.shared_memory import Layout, SharedBlock
from a3c_core.real.worker_manager import RunFailed
from a3c_core.real.worker_pool import Loss
from a3c_core.records.tables import read_records
from a3c_core.train import Run
from tests.test_processes import TRANSPORTS, assert_each_once, collect, config_of


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def is_at_work(pid):
    """Return whether a process exists and is not just waiting to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def kill_fork_server():
    """Kill it, and wait until it is dead."""
    pid = forkserver._forkserver._forkserver_pid
    kill(pid)
    while is_at_work(pid):
        time.sleep(0.01)


def spawn_and(monkeypatch, then):
    """Call `then(member, number)` with each worker that is spawned, before it can be up."""
    spawn, spawned = LocalPool.spawn, []

    def spawn_then(self, slot, episode):
        spawn(self, slot, episode)
        spawned.append(self.members[slot].body.pid)
        then(self.members[slot], len(spawned))

    monkeypatch.setattr(LocalPool, "spawn", spawn_then)
    return spawned


# The fork server and the resource tracker


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_killed_fork_server_costs_no_worker_and_doubles_no_episode(transport, monkeypatch):
    def harm(run, record):
        if record.episode == 300:
            kill_fork_server()
        if record.episode == 600:
            kill(run.runtime.pool.members[1].body.pid)  # the next one needs another server

    spawned = spawn_and(monkeypatch, lambda member, number: None)
    summary, records = collect(config_of(transport, episodes=3000), on_episode=harm)
    assert_each_once(summary, records, 3000)
    assert summary.crashes == 1
    assert len(spawned) == 5
    assert not any(map(is_at_work, spawned))


def test_a_worker_that_its_killed_fork_server_never_told_of_goes_before_it_is_replaced(monkeypatch):
    read, untold = forkserver.read_signed, []

    def lose(descriptor):
        pid = read(descriptor)
        if len(untold) < 2:
            untold.append(pid)
            kill_fork_server()
            raise EOFError("unexpected EOF")
        return pid

    monkeypatch.setattr(forkserver, "read_signed", lose)
    summary, records = collect(config_of())
    assert_each_once(summary, records, 400)
    assert summary.crashes >= 2  # who was just being started may go with its server too
    assert not any(map(is_at_work, untold))


def test_a_stuck_worker_without_a_fork_server_is_killed_before_it_is_replaced():
    stopped = []

    def stop(run, record):
        if record.episode == 50:
            stopped.append(run.runtime.pool.members[1].body.pid)
            os.kill(stopped[0], signal.SIGSTOP)
            kill_fork_server()

    summary, records = collect(config_of(worker_limit_s=1.0), on_episode=stop)
    assert_each_once(summary, records, 400)
    assert summary.crashes >= 1
    assert not is_at_work(stopped[0])


@pytest.mark.filterwarnings("ignore:resource_tracker")
def test_a_killed_resource_tracker_does_no_harm():
    def harm(run, record):
        if record.episode == 100:
            kill(resource_tracker._resource_tracker._pid)
            kill(run.runtime.pool.members[1].body.pid)

    summary, records = collect(config_of(), on_episode=harm)
    assert_each_once(summary, records, 400)
    assert summary.crashes == 1


# Strangers


@pytest.mark.parametrize("runtime", ["processes", "threads"])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_nothing_is_taken_from_a_worker_that_was_given_up_but_lives(transport, runtime):
    strangers = []

    def give_up(run, record):
        pool = run.runtime.pool
        if record.episode == 100:
            lost, remove, slots = pool.lost, pool.remove, [0, 2]
            pool.lost = lambda: [Loss(slots.pop(), "said to be lost") for _ in (0, 1)] if slots else lost()
            run.runtime._looked_s = -math.inf  # look at once, however soon the run is over
            pool.remove = lambda slot: strangers.append(pool.members.pop(slot)) if len(strangers) < 2 else remove(slot)

    summary, records = collect(config_of(transport, runtime=runtime, episodes=6_000), on_episode=give_up)
    assert_each_once(summary, records, 6_000)
    assert summary.crashes == 2
    for member in strangers:
        member.body.join(60)
        assert not member.body.is_alive()  # it saw that it was not wanted, and went
        member.close()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_message_of_another_generation_is_refused(transport):
    fed = FedMaster(transport)
    runtime, feeder = fed.runtime, fed._feeder
    strange = feeder._message._replace(generation=1)
    runtime.block.arrays.messages[...] = feeder._message = strange
    feeder.feed()
    while runtime.inbox.pending().size:
        runtime.step()
    runtime.settle()
    assert runtime.log.totals.sent == runtime.log.episodes == runtime.waiting == 0
    fed.close()


@pytest.mark.parametrize("queue", ["bounded", "unbounded"])  # gradients wait with the workers, or with the master
def test_gradients_that_waited_when_a_run_was_interrupted_are_counted_once(queue, tmp_path):
    config = RunConfig(workers="4", episodes=200, runtime="processes", exchange={"queue": queue})
    run = Run(config, tmp_path)
    run.runtime.start()
    while not (run.runtime.waiting or run.runtime.log.episodes):
        run.runtime._collect()
    run.checkpoint()
    run.runtime.stop()
    summary, _ = collect(config, tmp_path)
    records = [SimpleNamespace(**row) for row in read_records(tmp_path).to_pylist()]  # those of before included
    assert_each_once(summary, records, 200)


# Starting


@pytest.mark.parametrize("workers", [1, 4])
def test_workers_killed_while_they_start_are_replaced(workers, monkeypatch):
    """The first one, its replacement, and that of a worker which is killed at work."""

    def kill_some(member, number):
        if number in (1, workers + 1, workers + 3):
            kill(member.body.pid)

    def kill_one(run, record):
        if record.episode == 100:
            kill(run.runtime.pool.members[0].body.pid)

    spawn_and(monkeypatch, kill_some)
    summary, records = collect(config_of(workers=str(workers)), on_episode=kill_one)
    assert_each_once(summary, records, 400)
    assert (4 if workers == 1 else 3) <= summary.crashes <= 4  # several may be done before the last is missed


def test_restarts_bound_how_often_a_worker_may_die_while_it_starts(monkeypatch):
    spawned = spawn_and(monkeypatch, lambda member, number: kill(member.body.pid))
    with pytest.raises(RunFailed, match=r"killed by signal 9 \(lost worker 4, 3 allowed\)"):
        collect(config_of(workers="1", restarts=3))
    assert len(spawned) == 4


def test_the_limit_of_silence_is_not_that_of_starting():
    config = config_of(workers="1", worker_limit_s=1e-6)
    block = SharedBlock(Layout(slots=1, parameters=3, agents=1, averages=0, mail_bytes=0))
    pool = LocalPool(config, block)
    pool.spawn(0, 0)
    os.kill(pool.members[0].body.pid, signal.SIGSTOP)  # it takes its time
    assert list(pool.lost()) == []
    assert pool.members[0].reason is None
    kill(pool.members[0].body.pid)
    pool.close()
    block.close()


def test_a_worker_that_does_not_come_up_is_replaced(monkeypatch):
    def stop_first(member, number):
        if number == 2:
            os.kill(member.body.pid, signal.SIGSTOP)

    spawned = spawn_and(monkeypatch, stop_first)
    summary, records = collect(config_of(workers="2", start_limit_s=3.0))
    assert_each_once(summary, records, 400)
    assert summary.crashes >= 1
    assert not any(map(is_at_work, spawned))


def broken_main(*arguments):
    """What a worker process runs whose engine can't be made."""

    def fail(*engine):
        raise ValueError("no such engine")

    worker_module.make_engine = fail
    worker_module.process_main(*arguments)


@pytest.mark.parametrize("runtime", ["processes", "threads"])
def test_an_exception_that_keeps_a_worker_from_starting_ends_the_run_at_once(runtime, monkeypatch):
    monkeypatch.setattr(pool_module, "process_main", broken_main)
    if runtime == "threads":
        monkeypatch.setattr(worker_module, "make_engine", worker_module.make_engine)  # put back afterwards
        monkeypatch.setattr(pool_module, "work_until_stopped", lambda *arguments: broken_main())
    with pytest.raises(RunFailed, match=r"can't start: .*Error"):
        collect(config_of(runtime=runtime))


def test_a_worker_with_nothing_to_play_is_not_stuck():
    run = Run(config_of(workers="1", episodes=1, worker_limit_s=30.0), None)
    runtime = run.runtime
    runtime.start()
    while runtime.step():
        pass
    runtime.pool.members[0].heard_s -= 60.0  # as if it had waited so long for another to finish
    runtime._replace_lost()
    assert runtime.log.totals.crashes == 0
    assert runtime.pool.members[0].reason is None
    runtime.stop()
