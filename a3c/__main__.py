"""One command for everything: `a3c --help`. It only finds the command meant; each is a program of its own."""

import difflib
import importlib
import sys
from typing import NamedTuple

import a3c_core


class Command(NamedTuple):
    """A subcommand: the module whose `main` it calls, and what it does."""

    module: str
    summary: str


COMMANDS = {
    "sweep": Command("run_sweep", "run every cell of a grid (run_sweep.py)"),
    "report": Command("analysis.report", "turn a study into figures, verdicts and a page"),
    "train": Command("a3c_core.train.__main__", "train one run, from settings on the command line"),
    "play": Command("a3c.play.__main__", "watch a checkpoint play"),
    "advise": Command(
        "a3c.advise.__main__", "how many workers your own learner keeps up with, and what limits a trainer"
    ),
    "calibrate": Command("a3c.calibrate", "measure this machine's costs, for virtual time"),
    "bench": Command("a3c.benchmark.__main__", "measure the speed of games, engines and runtimes"),
    "validate": Command("experiments.validate", "compare virtual time with real time on this machine"),
}
EXAMPLES = """\
examples:
  a3c sweep --grid quick                     # the demo: 4, 10, 20 and 40 workers in virtual time
  a3c report results/quick                   # its page
  a3c train --workers 10 --episodes 20000    # one run, a picture and a sentence
  a3c advise --episode 518ms --update 31.6ms # how many workers a learner with these costs keeps up with
  a3c play --help                            # every command has examples of its own

It works in any directory: files are read from and written to the current one, results below ./results.
"""


def main(arguments: list[str] | None = None) -> int:
    """Pass the command line on to the command that it names; return the exit code."""
    name, *rest = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if name in ("-h", "--help"):
        print(usage())
        return 0
    if name == "--version":
        print(f"a3c {a3c_core.__version__}")
        return 0
    if name not in COMMANDS:
        meant = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {meant[0]}?" if meant else f"there are {', '.join(COMMANDS)}"
        print(f"error: unknown command {name!r}; {hint} (--help shows examples)", file=sys.stderr)
        return 2
    try:
        from a3c_core.system.process_tuning import tune_process
        from a3c_core.system.signals import answer_in_one_line

        answer_in_one_line()
        tune_process()
        command = importlib.import_module(COMMANDS[name].module)
        return command.main(rest) or 0
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def usage() -> str:
    """Return the help text."""
    rows = [f"  {name:<10} {command.summary}" for name, command in COMMANDS.items()]
    return "\n".join(["usage: a3c COMMAND ...", "", "commands:", *rows, "", EXAMPLES])


if __name__ == "__main__":
    sys.exit(main())
