"""A study's page, made after the last cell: `python -m experiments.sweep.page STUDY`, started by the sweep.

A process of its own makes it, since drawing takes memory and seconds that the sweep need not wait for in silence. What
it prints, the last line being the outcome, goes to the sweep; it ends when the sweep is gone: its standard input
closes then.
"""

import importlib.util
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from a3c_core.command_line import heartbeat
from a3c_core.system.signals import deferred_interrupts
from experiments import processes

PAGE = "index.html"


class Made(NamedTuple):
    """What came of the page."""

    words: str  # where it is, or what kept it from being made
    is_there: bool
    interrupted: bool = False


def is_possible() -> bool:
    """Return whether the analysis is installed."""
    return importlib.util.find_spec("analysis.report") is not None


def build(study: Path, console: Console) -> Made:
    """Write the study's page, saying how far it is."""
    process = None
    try:
        with deferred_interrupts() as interruption:  # Ctrl-C waits until there is a process to end
            process = processes.start("experiments.sweep.page", [str(study)])
        if interruption.asked:
            raise KeyboardInterrupt
        return _follow(process, console)
    except KeyboardInterrupt:
        return Made("interrupted", is_there=False, interrupted=True)
    finally:
        if process is not None:
            processes.kill(process)
            process.wait()


def _follow(process: subprocess.Popen[bytes], console: Console) -> Made:
    """Show what the process says until it ends; return what came of it."""
    assert process.stdout is not None
    said = ["getting ready"]

    def line() -> str:
        return f"Page: {said[-1]}"

    if not console.is_terminal:
        console.print(line(), markup=False, highlight=False, soft_wrap=True)
    with heartbeat.shown(line, console):
        said += (text for raw in process.stdout if (text := raw.decode(errors="replace").strip()))
        code = process.wait()
    return Made(said[-1].removeprefix("error: "), is_there=code == 0)


def main() -> int:
    """Write the page of the study that the command line names; return the exit code."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.dup2(1, 2)  # progress and errors are for the sweep, too
    from analysis.report import main as report

    return report([sys.argv[1]])


def _end_with_parent() -> None:
    while os.read(0, 4096):
        pass
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
