"""Virtual time against real time on this machine: `python -m experiments.validate --help`."""

import csv
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import rich.console
import rich.table

from a3c_core.benchmark.feeder import EXCHANGES
from a3c_core.calibrate import calibrate, write_profile
from a3c_core.command_line import Parser
from a3c_core.config import EnvironmentConfig, RunConfig
from a3c_core.exchange_costs import FROZEN
from a3c_core.files import write_whole
from a3c_core.summary import RunSummary
from a3c_core.train import train
from experiments.validate_figure import draw

EXAMPLES = """\
examples:
  python -m experiments.validate                             # about two minutes; into results/validation
  python -m experiments.validate --quick --out /tmp/check    # a few seconds, and less certain
  python -m experiments.validate --episodes 5000             # longer runs: steadier numbers

Nothing else should run meanwhile: other programs slow the real runs down, but not the virtual ones.
"""
QUANTITIES = {  # fields of a summary: what they are called, and how they are written
    "episodes_per_s": ("episodes/s", "{:,.0f}"),
    "env_steps_per_s": ("steps/s", "{:,.0f}"),
    "master_utilisation": ("master's utilisation", "{:.2f}"),
    "staleness_mean": ("staleness", "{:.1f}"),
}
THROUGHPUT = "episodes_per_s"
TOLERANCE = 0.1
WAIT_S = 1e-4  # per env step: some milliseconds an episode, to which a sleep's own delay of some 60 µs adds little
_PLAIN_FACTOR = 20  # episodes of the plain game take so much less time


@dataclass(frozen=True)
class Setting:
    """One thing tried, really and virtually."""

    game: str  # plain or waiting
    transport: str
    workers: int

    def __str__(self) -> str:
        return f"{self.game} game, {self.transport}, {self.workers} worker{'s' * (self.workers > 1)}"

    def config(self, episodes: int) -> RunConfig:
        """Return the settings of a real run; `episodes` per worker, more of the plain game."""
        plain = self.game == "plain"
        return RunConfig(
            workers=str(self.workers),
            episodes=episodes * self.workers * (_PLAIN_FACTOR if plain else 1),
            runtime="processes",
            environment=EnvironmentConfig(wait_s=0.0 if plain else WAIT_S),
            exchange=EXCHANGES[self.transport],
            learner=FROZEN,  # so that both play the same episodes, and only time can differ
        )


@dataclass(frozen=True)
class Comparison:
    """What virtual time predicted, and what the real runs gave, the fastest of them first."""

    setting: Setting
    predicted: RunSummary
    measured: list[RunSummary]

    def values(self, quantity: str) -> tuple[float, float]:
        """Return (predicted, measured)."""
        return getattr(self.predicted, quantity), getattr(self.measured[0], quantity)

    def error(self, quantity: str = THROUGHPUT) -> float:
        """Return how far the prediction is off, relative to what was measured."""
        predicted, measured = self.values(quantity)
        return predicted / measured - 1.0 if measured else 0.0

    @property
    def spread(self) -> float:
        """How much slower the slowest real run was than the fastest."""
        return 1.0 - self.measured[-1].episodes_per_s / self.measured[0].episodes_per_s


def settings(quick: bool = False) -> Iterator[Setting]:
    """Yield what is tried: as many plain workers as two cores bear, and many whose game waits."""
    for transport in ("shared", "queue"):
        for workers in (1, 2):
            yield Setting("plain", transport, workers)
        for workers in (4,) if quick else (4, 10, 20, 40):
            yield Setting("waiting", transport, workers)


def compare(setting: Setting, episodes: int, profile: Path, runs: int) -> Comparison:
    """Return the comparison for one setting; other programs can only slow a real run down, so the fastest counts."""
    real = setting.config(episodes)
    virtual = real.model_copy(update={"runtime": "simulate", "profile": str(profile)})
    measured = sorted((train(real) for _ in range(runs)), key=lambda summary: -summary.episodes_per_s)
    return Comparison(setting, train(virtual), measured)


def compare_all(
    episodes: int, seconds: float, runs: int, quick: bool, console: rich.console.Console
) -> list[Comparison]:
    """Calibrate this machine for each transport, then try every setting."""
    comparisons = []
    with tempfile.TemporaryDirectory() as directory:
        profiles: dict[str, Path] = {}
        for setting in settings(quick):
            if setting.transport not in profiles:
                profiles[setting.transport] = Path(directory) / f"{setting.transport}.yaml"
                with console.status(f"calibrating {setting.transport}"):
                    write_profile(calibrate("compiled", setting.transport, seconds), profiles[setting.transport])
            with console.status(str(setting)):
                comparisons.append(compare(setting, episodes, profiles[setting.transport], runs))
    return comparisons


def rows(comparisons: Iterable[Comparison]) -> Iterator[dict[str, object]]:
    """Yield one row per setting: predicted, measured and error of every quantity, to four digits."""
    for comparison in comparisons:
        row: dict[str, object] = dict(vars(comparison.setting))
        for quantity in QUANTITIES:
            for name, value in zip(("predicted", "measured"), comparison.values(quantity), strict=True):
                row[f"{quantity}_{name}"] = float(f"{value:.4g}")
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


def write(comparisons: list[Comparison], directory: Path) -> None:
    """Write validation.csv, validation.md and validation.png into `directory`."""
    listed = list(rows(comparisons))

    def write_csv(path: Path) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, listed[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(listed)

    write_whole(directory / "validation.csv", write_csv)
    write_whole(directory / "validation.md", lambda path: path.write_text(markdown(comparisons), encoding="utf-8"))
    write_whole(directory / "validation.png", lambda path: draw(comparisons, path))


def markdown(comparisons: list[Comparison]) -> str:
    """Return the table and its closing sentence as Markdown."""
    heading, *body = table(comparisons)
    lines = [heading, ["---"] * len(heading), *body]
    legend = "Pairs are predicted / measured; error is that of episodes/s; spread is how much slower the slowest real run was."
    return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), "", legend, "", closing(comparisons), ""])


def main(arguments: list[str] | None = None) -> None:
    """Compare, print and write; a user's mistake ends with exit code 2 and one line."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.out.exists() and not options.out.is_dir():
        parser.error(f"{options.out} is a file: --out needs a directory")
    if options.episodes < 1:
        parser.error(f"--episodes must be at least 1, not {options.episodes}")
    console = rich.console.Console()
    if options.quick:
        comparisons = compare_all(min(options.episodes, 50), 0.2, 1, True, console)
    else:
        comparisons = compare_all(options.episodes, 2.0, 3, False, console)
    try:
        write(comparisons, options.out)
    except OSError as error:
        parser.error(f"can't write to {options.out}: {error.strerror or error}")
    heading, *body = table(comparisons)
    printed = rich.table.Table(*heading, title="predicted / measured")
    for line in body:
        printed.add_row(*line)
    console.print(printed)
    console.print(closing(comparisons), highlight=False)
    console.print(f"Written to {options.out}.", highlight=False, soft_wrap=True)


def _parser() -> Parser:
    parser = Parser("experiments.validate", "Compare virtual time with real time on this machine.", EXAMPLES)
    parser.add_argument("--out", type=Path, default=Path("results/validation"), help="default: results/validation")
    parser.add_argument("--episodes", type=int, default=500, help="per worker (default: 500; of the plain game 20 x)")
    parser.add_argument("--quick", action="store_true", help="short runs of few settings")
    return parser


if __name__ == "__main__":
    main()
