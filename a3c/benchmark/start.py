"""What a run costs before its first episode, and what memory a long one takes: each in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from a3c.benchmark.measure import Fact, Results, Row

EPISODES_PER_S = 1_000_000  # of the long run, for each of the seconds given
_RUN = (
    "import sys; from pathlib import Path; from a3c_core.config import RunConfig; from a3c_core.train import train;"
    "train(RunConfig(workers='10', profile='uniform', episodes=int(sys.argv[1]), learner={'learning_rate': 1e-30}),"
    " Path(sys.argv[2]))"
)
_REFERENCE = "Python alone"
_LOOKS = 5  # of which the least counts
_MEGABYTE = 1e6


class Used(NamedTuple):
    """What a process has taken until its end."""

    core_s: float
    peak_bytes: float


def measure_start(seconds: float) -> Results:
    """Return how often a second a core can start each, and the memory of a run of a million episodes a second given."""
    rows = [
        _row(_REFERENCE, "pass"),
        _row("import a3c_core", "import a3c_core"),
        _row("import of a run", "import a3c_core.train"),
        _row("a run of 1 episode", _RUN, 1),
    ]
    episodes = max(1, round(seconds * EPISODES_PER_S))
    long = _used(_RUN, episodes)
    facts = [
        Fact(f"peak memory of a run of {episodes:,} episodes", long.peak_bytes / _MEGABYTE, "MB"),
        Fact("its core time an episode, all in all", 1e6 * long.core_s / episodes, "µs"),
    ]
    return Results("start", "starts", _REFERENCE, rows, facts)


def _row(name: str, program: str, *arguments: int) -> Row:
    best = min((_used(program, *arguments) for _ in range(_LOOKS)), key=lambda used: used.core_s)
    note = f"{best.core_s:.2f} s of a core, at most {best.peak_bytes / _MEGABYTE:,.0f} MB"
    return Row(name, 1.0 / best.core_s, note)


def _used(program: str, *arguments: int) -> Used:
    """Return what a Python program takes; its last argument is a folder that is removed after it."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-c", program, *map(str, arguments), str(Path(folder, "run"))]
        process = subprocess.Popen(command)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Used(usage.ru_utime + usage.ru_stime, 1024.0 * usage.ru_maxrss)
