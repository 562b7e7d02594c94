"""What lost workers and killed masters could leave behind: descriptors, memory, folders."""

import contextlib
import errno
import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from a3c_core.real.local_pool import LocalPool
from a3c_core.real.shared_memory import Layout, NoSharedMemory, SharedBlock
from a3c_core.train.__main__ import main as train_command
from tests.test_losses import kill, spawn_and
from tests.test_processes import PROGRAM, collect, config_of, start_elsewhere


@pytest.mark.parametrize("transport", ["shared", "queue"])
def test_workers_lost_while_they_start_leave_no_descriptors_behind(transport):
    block = SharedBlock(Layout(slots=1, parameters=3, agents=1, averages=0, mail_bytes=0))
    pool = LocalPool(config_of(transport, workers="1"), block)
    counts = []
    for _ in range(25):
        pool.spawn(0, 0)
        kill(pool.members[0].body.pid)
        while not list(pool.lost()):
            pool.wait(1.0)
        pool.remove(0)
        counts.append(len(os.listdir("/proc/self/fd")))
    assert counts[-1] == counts[0]
    pool.close()
    block.close()


def test_too_little_shared_memory_is_said_before_any_worker_starts(monkeypatch):
    def no_room(descriptor, offset, length):
        raise OSError(errno.ENOSPC, "No space left on device")

    spawned = spawn_and(monkeypatch, lambda member, number: None)
    monkeypatch.setattr(os, "posix_fallocate", no_room)
    with pytest.raises(NoSharedMemory, match=r"4 workers need 0\.\d MB of shared memory, and /.* has .* MB left"):
        collect(config_of())
    assert spawned == []


def test_too_little_shared_memory_is_one_sentence_for_who_trains(monkeypatch, tmp_path, capsys):
    def no_room(descriptor, offset, length):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", no_room)
    with pytest.raises(SystemExit) as caught:
        train_command(["--set", "runtime=processes", "--workers", "4", "--out", str(tmp_path / "run")])
    said = capsys.readouterr().err
    assert caught.value.code == 2
    assert said.startswith("error: 4 workers need ")
    assert said.count("\n") == 1


def limited(limit: str, folder: Path) -> subprocess.CompletedProcess:
    """Return how a run with eight processes ended, with so few descriptors."""
    train = f"{sys.executable} -m a3c_core.train --workers 8 --episodes 100 --set runtime=processes --out run"
    return subprocess.run(["bash", "-c", f"ulimit {limit}; {train}"], cwd=folder, capture_output=True, text=True)


def test_a_soft_limit_of_descriptors_is_raised(tmp_path):
    ended = limited("-Sn 40", tmp_path)
    assert ended.returncode == 0, ended.stderr


def test_a_hard_limit_of_descriptors_is_one_sentence_that_says_how_many_are_needed(tmp_path):
    ended = limited("-n 40", tmp_path)
    assert ended.returncode == 2
    assert re.fullmatch(r"error: 8 workers need \d+ open files, and this process may have 40: .*\n", ended.stderr)


@pytest.mark.parametrize("missing", ["pipe", "socketpair"])
def test_a_worker_for_which_nothing_is_left_is_cleared_away(missing, monkeypatch):
    block = SharedBlock(Layout(slots=1, parameters=3, agents=1, averages=0, mail_bytes=0))
    pool = LocalPool(config_of("shared", workers="1"), block)
    before = len(os.listdir("/proc/self/fd"))

    def no_more(*_, **__):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr({"pipe": os, "socketpair": socket}[missing], missing, no_more)
    with pytest.raises(OSError, match="Too many open files"):
        pool.spawn(0, 0)
    assert len(os.listdir("/proc/self/fd")) == before
    pool.close()
    block.close()


def folders(temporary):
    return sorted(path.name for path in temporary.glob("pymp-*"))


@pytest.fixture
def temporary(monkeypatch):
    """A temporary directory of its own, with a name short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="a3c-") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        yield Path(folder)


def test_a_long_temporary_directory_is_left_aside(tmp_path, monkeypatch):
    long = tmp_path / ("x" * 120)
    long.mkdir()
    short = config_of(workers="1", episodes=50).model_dump_json()
    environment = {**os.environ, "TMPDIR": str(long)}
    subprocess.run([sys.executable, "-c", PROGRAM, short, str(tmp_path / "run")], check=True, env=environment)


def test_the_folder_of_a_killed_master_is_removed_at_the_next_start(temporary, tmp_path):
    (temporary / "pymp-of-another-program").mkdir()
    config = config_of(workers="1", episodes=10**6, checkpoint_s=0.1)
    killed = start_elsewhere(config, tmp_path / "killed", f"folders-{os.getpid()}")
    dead = folders(temporary)
    killed.kill()
    killed.wait()
    alive = start_elsewhere(config, tmp_path / "alive", f"folders-{os.getpid()}")
    with contextlib.ExitStack() as stack:
        stack.callback(alive.wait)
        stack.callback(alive.kill)
        living = folders(temporary)
        assert len(dead) == len(living) == 2
        assert set(dead) & set(living) == {"pymp-of-another-program"}
        short = config_of(workers="1", episodes=50).model_dump_json()
        subprocess.run([sys.executable, "-c", PROGRAM, short, str(tmp_path / "short")], check=True)
        assert folders(temporary) == living
