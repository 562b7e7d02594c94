"""Virtual time against real time on this machine: `python -m experiments.validate --help`."""

import argparse
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import rich.console

from a3c_core.command_line.arguments import Parser, duration, positive_seconds
from a3c_core.config import PaceConfig
from a3c_core.errors import shown
from experiments.agreement import paced
from experiments.agreement.comparison import Bench, Comparison, settings
from experiments.agreement.figure import draw
from experiments.agreement.paced import PacedComparison
from experiments.agreement.paced_report import errors
from experiments.agreement.paced_report import report_of as paced_report_of
from experiments.agreement.report import Report, number

EXAMPLES = """\
examples:
  python -m experiments.validate                             # ten minutes; into results/validation
  python -m experiments.validate --quick --out /tmp/check    # half a minute, fewer settings, less certain
  python -m experiments.validate --episodes 5000             # longer runs: steadier numbers
  python -m experiments.validate --paced --speed 20          # real processes at the report's costs: ten minutes;
                                                             # into results/validation_paced

Nothing else should run meanwhile: other programs slow the real runs down, but not the virtual ones.
"""
QUANTITIES = {  # fields of a summary: what they are called, and how they are written
    "episodes_per_s": ("episodes/s", "{:,.0f}"),
    "env_steps_per_s": ("steps/s", "{:,.0f}"),
    "master_utilisation": ("utilisation", "{:.2f}"),
    "staleness_mean": ("staleness", "{:.1f}"),
}
TOLERANCE = 0.1
ROUNDS = 5
QUICK_EPISODES = 50
_MOST_EPISODES = 1_000_000
_PLAIN_WIDTH = 140  # characters, where there is no terminal to ask
_LEGEND = (
    "Pairs are predicted / measured, utilisation is the master's. Error: of episodes/s, the median of several rounds, "
    "each with a calibration of its own. Spread: how much slower than the fastest the slowest real run was."
)


def compare_all(episodes: int, quick: bool, console: rich.console.Console) -> list[Comparison]:
    """Try every setting in every round, saying which one it is and how long the rest will take."""
    tried, rounds = list(settings(quick)), 1 if quick else ROUNDS
    comparisons = [Comparison(setting, [], []) for setting in tried]
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory() as directory, console.status("getting ready") as status:
        bench = Bench(Path(directory), episodes, seconds=0.2 if quick else 2.0)
        for number_of in range(1, rounds + 1):
            status.update(f"round {number_of} of {rounds}: what things cost")
            bench.calibrate()
            for comparison in comparisons:
                status.update(f"round {number_of} of {rounds}: {comparison.setting}")
                predicted, measured = bench.compare(comparison.setting)
                comparison.predicted.append(predicted)
                comparison.measured.append(measured)
            left_s = (time.monotonic() - began_s) / number_of * (rounds - number_of)
            console.print(f"Round {number_of} of {rounds} done; {duration(left_s)} to go", highlight=False)
    return comparisons


def rows(comparisons: Iterable[Comparison]) -> Iterator[dict[str, object]]:
    """Yield one row per setting: predicted, measured and error of every quantity, to four digits."""
    for comparison in comparisons:
        row: dict[str, object] = dict(vars(comparison.setting))
        for quantity in QUANTITIES:
            for name, value in zip(("predicted", "measured"), comparison.values(quantity), strict=True):
                row[f"{quantity}_{name}"] = number(value)
            row[f"{quantity}_error"] = round(comparison.error(quantity), 4)
        yield {**row, "spread": round(comparison.spread, 4)}


def table(comparisons: Iterable[Comparison]) -> list[list[str]]:
    """Return the table as words, its heading first: each quantity as predicted / measured."""
    heading = ["game", "transport", "workers", *(name for name, _ in QUANTITIES.values()), "error", "spread"]
    body = []
    for comparison in comparisons:
        pairs = [
            " / ".join(form.format(value) for value in comparison.values(quantity))
            for quantity, (_, form) in QUANTITIES.items()
        ]
        setting = comparison.setting
        error, spread = f"{comparison.error():+.1%}", f"{comparison.spread:.1%}"
        body.append([setting.game, setting.transport, str(setting.workers), *pairs, error, spread])
    return [heading, *body]


def closing(comparisons: list[Comparison]) -> str:
    """Return a sentence that says how well virtual time predicts real time."""
    worst = max(comparisons, key=lambda comparison: abs(comparison.error()))
    off = [str(comparison.setting) for comparison in comparisons if abs(comparison.error()) > TOLERANCE]
    within = len(comparisons) - len(off)
    sentence = (
        f"Predicted throughput is within {TOLERANCE:.0%} of measured in {within} of {len(comparisons)} settings; "
        f"the largest error is {worst.error():+.1%} ({worst.setting})."
    )
    return f"{sentence} Beyond {TOLERANCE:.0%}: {'; '.join(off)}." if off else sentence


def report_of(comparisons: list[Comparison]) -> Report:
    """Return all that is to be read of the comparisons."""
    return Report(
        "validation",
        "virtual time against real time",
        "Does virtual time predict real time at this machine's own costs?",
        "python -m experiments.validate",
        table(comparisons),
        list(rows(comparisons)),
        _LEGEND,
        closing(comparisons),
        partial(draw, comparisons),
    )


def compare_paced(speed: float, seconds: float, quick: bool, console: rich.console.Console) -> list[PacedComparison]:
    """Try every paced setting, saying what came of it and how long the rest will take."""
    comparisons: list[PacedComparison] = []
    tried, began_s = list(paced.settings(quick)), time.monotonic()
    for place, setting in enumerate(tried, start=1):
        comparison = paced.compare(setting, speed, seconds)
        comparisons.append(comparison)
        left_s = (time.monotonic() - began_s) / place * (len(tried) - place)
        late = f"{comparison.measured.late_share:.1%} late"
        said = f"{place} of {len(tried)}: {setting}: {errors(comparison)}, {late}; {duration(left_s)} to go"
        console.print(said, highlight=False, soft_wrap=True)
    return comparisons


def main(arguments: list[str] | None = None) -> None:
    """Compare, print and write; a user's mistake ends with exit code 2 and one line."""
    parser = _parser()
    options = parser.parse_args(arguments)
    options.out = options.out or Path("results/validation_paced" if options.paced else "results/validation")
    if os.path.isfile(options.out):
        parser.error(f"{options.out} is a file: --out needs a directory")
    if not 1 <= options.episodes <= _MOST_EPISODES:
        parser.error(f"--episodes must be at least 1 and at most {_MOST_EPISODES:,}, not {options.episodes}")
    console = rich.console.Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH)
    episodes = min(options.episodes, QUICK_EPISODES) if options.quick else options.episodes
    if options.paced:
        compared = compare_paced(options.speed, options.seconds, options.quick, console)
        report = paced_report_of(compared, options.speed)
    else:
        report = report_of(compare_all(episodes, options.quick, console))
    words = sys.argv[1:] if arguments is None else arguments
    report = report._replace(command=shlex.join(["python", "-m", "experiments.validate", *words]))
    report.show(console)
    try:
        report.write(options.out)
    except OSError as error:
        parser.error(f"can't write to {options.out}: {error.strerror or error}")
    console.print(f"Written to {options.out}.", highlight=False, soft_wrap=True)


def _speed(text: str) -> float:
    """Return the speed that `text` says."""
    try:
        return PaceConfig(profile=paced.PROFILE, speed=float(text)).speed
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"a positive number is needed, not {shown(text)}") from error


def _parser() -> Parser:
    parser = Parser("experiments.validate", "Compare virtual time with real time on this machine.", EXAMPLES)
    parser.add_argument("--out", type=Path, help="default: results/validation, with --paced results/validation_paced")
    parser.add_argument("--episodes", type=int, default=500, help="per worker, of the waiting game (default: 500)")
    parser.add_argument("--quick", action="store_true", help="short runs of few settings")
    parser.add_argument("--paced", action="store_true", help="compare processes paced to the report's costs instead")
    parser.add_argument("--speed", type=_speed, default=20.0, help="of --paced: pace.speed (default: 20)")
    parser.add_argument(
        "--seconds", type=positive_seconds, default=40.0, help="of --paced: about, for each setting (default: 40)"
    )
    return parser


if __name__ == "__main__":
    main()
