"""The processes of a round, wherever they ended up: found by a mark in their environment, known by their role."""

import ctypes
import os
import resource
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

MARK = "A3C_STORM"  # the environment variable
_LOOK_S = 0.05
_PR_SET_PDEATHSIG = 1  # <sys/prctl.h>
_BY_COMMAND = {  # a word of the command line: role
    "run_sweep.py": "sweep",
    "experiments.sweep.cell": "cell",
    "experiments.tracking.tracker": "MLflow tracker",
    "tests.storm.run": "master",
    "multiprocessing.resource_tracker": "resource tracker",
    "multiprocessing.forkserver": "fork server",
}


def marked(mark: str) -> list[int]:
    """Return the ids of all processes that carry the mark and are not just waiting to be reaped."""
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if carries(int(path.name), mark)]


def carries(process: int, mark: str) -> bool:
    """Return whether a process carries the mark."""
    return f"{MARK}={mark}".encode() in _read(process, "environ").split(b"\0")


def by_role(mark: str) -> dict[str, list[int]]:
    """Return {role: process ids} of the marked processes, oldest first."""
    found: dict[str, list[int]] = {}
    for process in sorted(marked(mark)):
        found.setdefault(role(process), []).append(process)
    return found


def role(process: int) -> str:
    """Return what a process is there for."""
    command = command_of(process)
    for word, name in _BY_COMMAND.items():
        if word in command:
            return "worker" if name == "fork server" and not _is_server(process) else name
    return "other"


def _is_server(process: int) -> bool:
    """Return whether this is the fork server: what it forks has its command line, but another parent."""
    return role(_parent(process)) in ("master", "cell")


def command_of(process: int) -> str:
    """Return a process's command line."""
    return _read(process, "cmdline").replace(b"\0", b" ").decode(errors="replace").strip()


def _parent(process: int) -> int:
    fields = _read(process, "stat").rpartition(b")")[2].split()  # the name before may hold anything
    return int(fields[1]) if fields else 0


def _read(process: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{process}/{name}").read_bytes()
    except OSError:
        return b""


def send(process: int, mark: str, number: int) -> bool:
    """Send a signal to a process of the round, never to another with its old number; return whether it was there."""
    try:
        handle = os.pidfd_open(process)
    except OSError:
        return False
    try:
        if carries(process, mark):
            signal.pidfd_send_signal(handle, number)
            return True
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)
    return False


def kill_all(mark: str) -> None:
    """End every process of the round, and those that they start meanwhile."""
    while found := marked(mark):
        for process in found:
            send(process, mark, signal.SIGKILL)
        time.sleep(_LOOK_S)


def wait_until_gone(mark: str, limit_s: float) -> list[int]:
    """Wait for the end of all processes of the round; return those that outlive the limit."""
    wait_for(lambda: not marked(mark), limit_s)
    return marked(mark)


def wait_for(condition: Callable[[], object], limit_s: float) -> bool:
    """Wait until the condition holds, for so long at most; return whether it does."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_S)
    return True


def prepare(descriptors: int | None = None) -> None:
    """Make the calling process end when the one that started it is killed, the storm with no time to clear up.

    `descriptors`: how many it may have open, as far as it does not raise that itself.
    """
    if descriptors is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
