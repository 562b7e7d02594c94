"""Child processes of a sweep: started so that nothing outlives it, and stopped politely, then firmly."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from a3c_core.system.process_tuning import ONE_THREAD
from experiments.provenance import ROOT

Message = dict[str, Any]


def start(
    module: str, arguments: Sequence[str], log: Path | None = None, keep_open: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start `python -m module` in a session of its own, with pipes to its input and from its output.

    The input closes when this process ends, however it ends, and the child takes that as its own end.
    """
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **ONE_THREAD}
    with (log or Path(os.devnull)).open("ab") as errors:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            start_new_session=True,
            pass_fds=tuple(keep_open),
        )


def messages(process: subprocess.Popen[bytes]) -> Iterator[Message]:
    """Yield what a child says, until it closes its output."""
    assert process.stdout is not None
    for line in process.stdout:
        with suppress(ValueError):
            message = json.loads(line)
            if isinstance(message, dict):
                yield message


def _pass_on(process: subprocess.Popen[bytes], heed: Callable[[Message], None]) -> None:
    for message in messages(process):
        heed(message)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a child and everything it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


class Children:
    """The running cells, and whether they are to stop."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self.asked = 0  # how often they were asked to stop

    @property
    def stopping(self) -> bool:
        return self.asked > 0

    def follow(self, process: subprocess.Popen[bytes], heed: Callable[[Message], None]) -> int:
        """Pass on what a child says, wait for its end, clear up what it left running, and return its exit code."""
        self._running.add(process)
        if self.stopping:
            os.kill(process.pid, signal.SIGINT)
        reader = threading.Thread(target=_pass_on, args=(process, heed), daemon=True)
        reader.start()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # its number stays taken until wait() below
        self._running.discard(process)
        kill(process)
        code = process.wait()
        reader.join()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        return code

    def stop(self) -> None:
        """Ask all cells to leave a checkpoint and end; start no others. Asked again, end them at once."""
        firmly = self.stopping
        self.asked += 1
        for process in tuple(self._running):
            if firmly:
                kill(process)
            else:
                os.kill(process.pid, signal.SIGINT)


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[list[int]]:
    """Call `stop` at Ctrl-C and its kin within this block; yield the list of signals that came."""
    came: list[int] = []

    def heed(number: int, frame: FrameType | None) -> None:
        came.append(number)
        stop()

    before = {number: signal.signal(number, heed) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
