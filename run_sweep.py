"""Run a grid of experiments: `python run_sweep.py --help`."""

import argparse
import importlib.util
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
NEEDED = ("joblib", "mlflow", "numba", "pyarrow", "pydantic", "rich", "yaml")
EXAMPLES = """\
examples:
  python run_sweep.py --list                                    # the grids that come with the project
  python run_sweep.py --grid quick                              # the demo: 4, 10, 20 and 40 workers in virtual time
  python run_sweep.py --grid workers.yaml --dry-run             # its cells, and about how long they would take
  python run_sweep.py --grid workers.yaml --set episodes=2000   # a short version, in a study of its own
  python run_sweep.py --grid report --only workers=10,seed=0    # a part of a grid
  python run_sweep.py --grid report --backend ray --address 10.0.0.1:6379    # on all machines of a Ray cluster
  python run_sweep.py --sync                                    # bring MLflow up to date after it was away

The same command goes on where an interrupted sweep stopped. Exit codes: 0 all done, 1 a cell failed, 2 a mistake in the
grid or on the command line, 130 interrupted.
"""


def use_the_projects_python() -> None:
    """Go on with .venv's Python if this one lacks the project's packages."""
    if all(importlib.util.find_spec(name) is not None for name in NEEDED):
        return
    ours = ROOT / ".venv" / "bin" / "python"
    if not ours.exists() or Path(sys.prefix).resolve() == (ROOT / ".venv").resolve():
        print("error: the project's packages are missing; run `make setup` first", file=sys.stderr)
        sys.exit(2)
    os.execv(ours, [str(ours), str(ROOT / "run_sweep.py"), *sys.argv[1:]])


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    from a3c_core.command_line.arguments import Parser  # not before the project's packages are known to be there

    about = "Run every cell of a grid, each in its own process; keep the results on disk and in MLflow."
    made = Parser("run_sweep.py", about, EXAMPLES)
    what = made.add_argument_group("what to run")
    what.add_argument("--grid", metavar="NAME|PATH", help="a grid file, from here or from experiments/")
    what.add_argument(
        "--only", action="append", default=[], metavar="KEY=VALUE,...", help="cells with these values; may be repeated"
    )
    what.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change a setting; may be repeated"
    )
    what.add_argument("--seeds", metavar="N|LIST", help="a count, such as 3, or a list, such as 0,5,7 or [5]")
    how = made.add_argument_group("how to run it")
    how.add_argument("--jobs", type=int, metavar="N", help="cells at once (default: one per core; real runtimes: 1)")
    how.add_argument("--backend", choices=("local", "ray"), default="local", help="ray: cells go to a Ray cluster")
    how.add_argument("--address", metavar="HOST:PORT", help="the Ray cluster (default: one of our own, here)")
    how.add_argument("--fresh", action="store_true", help="start over; older results are kept aside")
    how.add_argument("--fail-fast", action="store_true", help="stop at the first cell that fails")
    how.add_argument("--no-page", action="store_true", help="don't draw the study's page at the end")
    how.add_argument("--results", type=Path, default=Path("results"), metavar="DIR", help="default: results")
    tracking = made.add_argument_group("tracking")
    tracking.add_argument("--tracking-uri", metavar="URI", help="an MLflow store (default: sqlite:///mlflow.db)")
    tracking.add_argument("--no-tracking", action="store_true", help="run without MLflow")
    instead = made.add_argument_group("instead of running").add_mutually_exclusive_group()
    instead.add_argument("--list", action="store_true", help="show the grids that come with the project")
    instead.add_argument("--dry-run", action="store_true", help="show the cells and about how long they would take")
    instead.add_argument("--sync", action="store_true", help="bring MLflow up to date with the results on disk")
    return made


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; return the exit code."""
    made = parser()
    options = made.parse_args(arguments)
    if not (options.grid or options.list or options.sync):
        made.error("--grid is needed: name a grid, or see --list")
    if options.jobs is not None and options.jobs < 1:
        made.error(f"--jobs {options.jobs}: at least 1 is needed")
    if options.no_tracking and (options.tracking_uri or options.sync):
        made.error("--no-tracking does not go together with --tracking-uri or --sync")
    from a3c_core.command_line import heartbeat

    with heartbeat.repeated(lambda: print("getting ready", file=sys.stderr, flush=True), heartbeat.EVERY_S):
        from experiments.sweep.entry import carry_out  # seconds, or minutes on a busy machine

    return carry_out(options)


if __name__ == "__main__":
    use_the_projects_python()
    try:
        from a3c_core.system.process_tuning import tune_process
        from a3c_core.system.signals import answer_in_one_line

        answer_in_one_line()
        tune_process()
        code = main()
    except KeyboardInterrupt:  # while it still imports; see experiments/sweep/entry.py for later
        print("interrupted", file=sys.stderr)
        code = 130
    sys.exit(code)
