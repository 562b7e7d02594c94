"""What lost workers and killed masters could leave behind: descriptors, memory, folders."""

import contextlib
import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from a3c_core.real.local_pool import LocalPool
from a3c_core.real.shared_memory import Layout, NoSharedMemory, SharedBlock
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
