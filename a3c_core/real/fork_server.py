"""Worker processes through multiprocessing's fork server, and the folder in which it listens.

A master that is killed leaves that folder behind, so every master marks its own with a lock, which the system lets go
of however the master ends, and removes those that nobody holds.
"""

import contextlib
import fcntl
import functools
import multiprocessing
import multiprocessing.util
import os
import shutil
import signal
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from multiprocessing import forkserver, resource_tracker
from multiprocessing.context import ForkServerProcess
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import IO, Any

_LOCK = "a3c.lock"
_LONGEST_FOLDER = 64  # bytes: a socket's name has at most 107 in all, and the folder and file in it some 40
_SERVER_LIMIT_S = 10.0  # for a killed fork server to be gone


class Inherited:
    """A descriptor that a process being started inherits, and gets as a plain number."""

    def __init__(self, descriptor: int):
        self.descriptor = descriptor

    def __reduce__(self) -> tuple[Any, ...]:
        # Not before: outside of a start multiprocessing keeps a copy until the process asks for it, which may never be.
        return _arrived, (DupFd(self.descriptor),)


def _arrived(duplicate: Any) -> int:
    return duplicate.detach()


def start_process(name: str, preload: str, target: Callable[..., None], *arguments: Any) -> ForkServerProcess:
    """Start a process whose fork server has imported the module `preload`, and return it.

    Raises OSError or EOFError if the fork server is killed meanwhile. In that case the process may or may not have come
    to be; the next call starts another server.
    """
    _own_folder()
    context = multiprocessing.get_context("forkserver")
    _end_server_without(preload)
    context.set_forkserver_preload([preload])
    process = context.Process(target=target, args=arguments, name=name, daemon=True)
    until_s = time.monotonic() + _SERVER_LIMIT_S
    with _no_main_module():
        while not _has_started(process):
            if time.monotonic() > until_s:
                raise EOFError("the fork server does not listen")
            time.sleep(0.01)
    return process


_preloaded: list[str] = []  # what the server that was started last has imported


def _end_server_without(preload: str) -> None:
    """End a fork server that has imported something else; its children live on."""
    server = forkserver._forkserver  # multiprocessing's one and only, which it offers no other way to end
    pid = server._forkserver_pid  # type: ignore[attr-defined]
    if pid is not None and _preloaded != [preload]:
        os.kill(pid, signal.SIGKILL)  # not reaped yet, so that this is its id; asked to end, it would wait for children
        server._stop()  # type: ignore[attr-defined]
    _preloaded[:] = [preload]


def _has_started(process: ForkServerProcess) -> bool:
    """Start a process, if the fork server listens. A killed one takes a moment to be gone, and is replaced then.

    The server and what it forks inherit that Ctrl-C is blocked: it is the master's business, also while they import.
    """
    resource_tracker.ensure_running()  # before, since it would let Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        process.start()
    except ConnectionRefusedError:
        return False
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return True


@contextlib.contextmanager
def _no_main_module() -> Iterator[None]:
    """Keep multiprocessing from importing the user's script again in every worker: they need nothing of it."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@functools.cache
def _own_folder() -> IO[str] | None:
    """Mark multiprocessing's folder as this process's own, once; return the lock, which lives as long as we do."""
    if multiprocessing.parent_process() is not None:
        return None  # the folder may be the parent's
    temporary = _folder_for_sockets()
    _remove_abandoned(Path(temporary))
    before, tempfile.tempdir = tempfile.tempdir, temporary
    try:
        folder = Path(multiprocessing.util.get_temp_dir())
    finally:
        tempfile.tempdir = before
    lock = (folder / "unlocked").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    (folder / "unlocked").rename(folder / _LOCK)  # never seen without its lock while we live
    return lock


def _folder_for_sockets() -> str:
    """Return the temporary directory, or a shorter one where the names of sockets in it would be too long."""
    folder = tempfile.gettempdir()
    return folder if len(os.fsencode(folder)) <= _LONGEST_FOLDER else "/tmp"


def _remove_abandoned(temporary: Path) -> None:
    """Remove this user's folders whose masters are dead."""
    for lock in temporary.glob(f"pymp-*/{_LOCK}"):
        with contextlib.suppress(OSError), lock.open() as file:  # locked, or just removed by another
            if lock.parent.lstat().st_uid == os.getuid():
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.parent)
