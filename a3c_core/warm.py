"""Compile now what the first run of all would have to compile: `python -m a3c_core.warm`, the end of `make setup`."""

import tempfile
import time
from pathlib import Path
from typing import Any

import rich.console

from a3c_core.config import RunConfig
from a3c_core.tools import heartbeat
from a3c_core.tools.command_line import Parser, duration
from a3c_core.train import train

EXAMPLES = """\
examples:
  python -m a3c_core.warm    # half a minute once, then a second: compiled code is kept beside the package

Exit codes: 0 all is compiled, 2 a mistake on the command line, 130 interrupted.
"""
RUNS: dict[str, dict[str, Any]] = {  # tiny ones, that between them need all compiled code of runs
    "virtual time": {},
    "several agents a worker": {"agents_per_worker": 2},
    "agents without a model": {"topology": "ga3c"},
    "value methods": {"algorithm": "q"},
    "trajectories": {"algorithm": "ppo"},
    "weighted trajectories": {"algorithm": "vtrace"},
    "replay memories": {"algorithm": "dqn", "topology": "gorila", "learner": {"learn_from": 100}},
    "real processes": {"runtime": "processes"},
    "processes without a master": {"runtime": "processes", "topology": "hogwild"},
}


def warm(console: rich.console.Console) -> None:
    """Carry out the runs, and say what is under way."""
    for number, (name, settings) in enumerate(RUNS.items(), start=1):
        began_s = time.monotonic()

        def line(name: str = name, number: int = number, began_s: float = began_s) -> str:
            return f"Compiling, {number} of {len(RUNS)}: {name}, {duration(time.monotonic() - began_s)}"

        with heartbeat.shown(line, console), tempfile.TemporaryDirectory() as folder:
            train(RunConfig.model_validate({"workers": "2", "episodes": 40, **settings}), Path(folder))
        console.print(line(), highlight=False)


def main(arguments: list[str] | None = None) -> None:
    """Compile."""
    Parser("a3c_core.warm", "Compile now what the first run would have to.", EXAMPLES).parse_args(arguments)
    warm(rich.console.Console())


if __name__ == "__main__":
    main()
