"""One attempt: a command started in the round's folder, struck by signals, and followed to its end."""

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.storm import processes
from tests.storm.plans import GROUP, Strike
from tests.sweeps import ROOT

LIMIT_S = 900.0  # for what takes seconds on an idle machine: longer is a hang, however busy this one is
_LAST_WORDS_S = 5.0
_LOOK_S = 0.03


class Ending(NamedTuple):
    """How an attempt ended."""

    code: int | None  # None: it hung, and was killed
    output: str
    struck: set[str]  # roles that got a signal which ends a process


def environment(folder: Path, mark: str) -> dict[str, str]:
    """Return the environment of a round's processes: marked, with a temporary directory of their own."""
    own = {processes.MARK: mark, "TMPDIR": str(folder / "tmp"), "PYTHONPATH": str(ROOT), "PYTHONFAULTHANDLER": "1"}
    return {**os.environ, **own}


class Command:
    """A started command with all its processes, found by their mark."""

    def __init__(
        self,
        words: Sequence[str],
        folder: Path,
        mark: str,
        output: Path,
        signals: Counter[tuple[str, str]],
        descriptors: int | None = None,
    ):
        self._mark, self._results, self._output = mark, folder / "results", output
        self._signals = signals  # sent, by (target, signal)
        self._struck: set[str] = set()
        self._stopped: list[tuple[float, int]] = []  # (when to let it go on, process)
        self._checkpoints = self._found_checkpoints()
        self._deadline_s = time.monotonic() + LIMIT_S
        with output.open("wb") as file:
            self._process = subprocess.Popen(
                words,
                cwd=folder,
                env=environment(folder, mark),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,  # Ctrl-C is the storm's
                preexec_fn=partial(processes.prepare, descriptors),
            )

    def follow(self, strikes: Sequence[Strike], damage: Callable[[], None]) -> Ending:
        """Strike while it runs, damage, wait for its end, and return how it ended."""
        try:
            for strike in strikes:
                self._strike(strike)
            if self._is_running():
                damage()
            self._wait(lambda: False)
            code = self._process.poll()
            if code is None:
                self._make_them_say_where_they_are()
        finally:
            self._let_go_on(at=float("inf"))
            if self._process.poll() is None:
                processes.kill_all(self._mark)
                self._process.wait()
        return Ending(code, self._output.read_text(errors="replace"), self._struck)

    def _strike(self, strike: Strike) -> None:
        """Wait for the strike's moment, its delay and its target, and send its signal."""
        self._wait(lambda: self._has_come(strike))
        self._wait(lambda: False, strike.delay_s)
        if not self._wait(lambda: bool(self._targets(strike))):
            return
        if strike.target == GROUP:
            self._strike_group(strike)
            return
        targets = self._targets(strike) or [0]  # gone since
        target = targets[int(strike.choice * len(targets))]
        if not processes.send(target, self._mark, strike.signal):
            return
        self._signals[strike.target, strike.signal.name] += 1
        if strike.signal == signal.SIGSTOP:
            self._stopped.append((time.monotonic() + strike.pause_s, target))
        else:
            self._struck.add(strike.target)

    def _strike_group(self, strike: Strike) -> None:
        """Send the signal to every process of the command's group, as a terminal does."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, strike.signal)  # ours, and not reaped yet: this is its id
            self._signals[strike.target, strike.signal.name] += 1
            self._struck.add(strike.target)

    def _has_come(self, strike: Strike) -> bool:
        if strike.moment == "checkpoint":
            return self._found_checkpoints() != self._checkpoints
        return strike.moment == "start" or bool(self._targets(strike))

    def _targets(self, strike: Strike) -> list[int]:
        found = processes.by_role(self._mark)
        if strike.target == GROUP:  # at the sight of workers, or of what they will be forked from
            return found.get("fork server", []) or found.get("cell", []) or found.get("master", [])
        return found.get(strike.target, [])

    def _found_checkpoints(self) -> set[Path]:
        with suppress(OSError):  # removed while we look
            return set(self._results.glob("**/checkpoints/*/manifest.json"))
        return set()

    def _is_running(self) -> bool:
        return self._process.poll() is None

    def _wait(self, condition: Callable[[], bool], limit_s: float = LIMIT_S) -> bool:
        """Wait until the condition holds while the command runs; return whether it came to that."""
        deadline = min(time.monotonic() + limit_s, self._deadline_s)
        while self._is_running() and time.monotonic() < deadline:
            self._let_go_on(time.monotonic())
            if condition():
                return True
            time.sleep(_LOOK_S)
        return False

    def _make_them_say_where_they_are(self) -> None:
        """Let those that hang print their stacks, to their output or log, before they are killed."""
        for name in ("sweep", "cell", "master"):
            for process in processes.by_role(self._mark).get(name, []):
                processes.send(process, self._mark, signal.SIGABRT)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_LAST_WORDS_S)

    def _let_go_on(self, at: float) -> None:
        """Send SIGCONT to the stopped processes whose time has come."""
        for when, process in self._stopped:
            if when <= at:
                processes.send(process, self._mark, signal.SIGCONT)
        self._stopped = [(when, process) for when, process in self._stopped if when > at]
