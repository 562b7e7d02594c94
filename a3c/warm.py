"""Compile now what the first run of all would have to compile: `python -m a3c.warm`, the end of `make setup`."""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import rich.console

from a3c.advise.simulator import System, simulate
from a3c_core.command_line import heartbeat
from a3c_core.command_line.arguments import Parser, duration
from a3c_core.config import RunConfig
from a3c_core.train import train

EXAMPLES = """\
examples:
  python -m a3c.warm    # half a minute once, then a second: compiled code is kept beside the package

Exit codes: 0 all is compiled, 2 a mistake on the command line, 130 interrupted.
"""


def _run(**settings: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        train(RunConfig.model_validate({"workers": "2", "episodes": 40, **settings}), Path(folder))


TASKS: dict[str, Callable[[], object]] = {  # tiny ones, that between them need all compiled code of runs and advice
    "virtual time": _run,
    "agents without a model": partial(_run, topology="ga3c"),
    "value methods": partial(_run, algorithm="q"),
    "trajectories": partial(_run, algorithm="ppo"),
    "weighted trajectories": partial(_run, algorithm="vtrace"),
    "replay memories": partial(_run, algorithm="dqn", topology="gorila", learner={"learn_from": 100}),
    "real processes": partial(_run, runtime="processes"),
    "processes without a master": partial(_run, runtime="processes", topology="hogwild"),
    "advice": partial(simulate, System(workers=2, cycle_s=1.0, latency_s=0.0, service_s=0.1)),
}


def warm(console: rich.console.Console) -> None:
    """Carry out the tasks, and say what is under way."""
    for number, (name, task) in enumerate(TASKS.items(), start=1):
        began_s = time.monotonic()

        def line(name: str = name, number: int = number, began_s: float = began_s) -> str:
            return f"Compiling, {number} of {len(TASKS)}: {name}, {duration(time.monotonic() - began_s)}"

        with heartbeat.shown(line, console):
            task()
        console.print(line(), highlight=False)


def main(arguments: list[str] | None = None) -> None:
    """Compile."""
    Parser("a3c.warm", "Compile now what the first run would have to.", EXAMPLES).parse_args(arguments)
    warm(rich.console.Console())


if __name__ == "__main__":
    main()
