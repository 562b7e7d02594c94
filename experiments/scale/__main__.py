"""The study `scale`: a table, a figure and a page from the events of `a3c.advise`, without any learning."""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

import rich.console
import rich.progress

from a3c_core.command_line.arguments import Parser
from a3c_core.records.files import write_whole
from experiments.scale.figure import draw
from experiments.scale.page import write_page
from experiments.scale.ways import LATENCIES_S, WAYS, WORKERS, learners

EXAMPLES = """\
examples:
  python -m experiments.scale                      # about a minute; into results/scale
  python -m experiments.scale --out /tmp/scale     # somewhere else
"""
CORES = 40  # of a machine
_MILLION = 1e6


def rows(console: rich.console.Console) -> Iterator[dict[str, object]]:
    """Yield what every learner, distance, way and number of workers comes to."""
    cases = [(one, where, way) for one in learners() for where in LATENCIES_S for way in WAYS]
    for learner, where, way in rich.progress.track(cases, "Simulating", console=console):
        for workers in WORKERS:
            outcome = way.measure(learner, LATENCIES_S[where], workers)
            alone_s = learner.cycle_s + LATENCIES_S[where]
            machines = (workers + way.stations) / CORES
            yield {
                "learner": learner.name,
                "latency": where,
                "way": way.name,
                "workers": workers,
                "n0": round(alone_s / learner.update_s, 2),
                "gradients_per_s": _rounded(outcome.throughput),
                "efficiency": round(outcome.throughput * learner.cycle_s / workers, 4),
                "lost_to_latency": round(LATENCIES_S[where] / alone_s, 4),
                "learner_busy": round(outcome.utilisation, 4),
                "staleness": _rounded(outcome.staleness),
                "staleness_95": _rounded(outcome.staleness_95),
                "machine_hours_per_million": _rounded(machines * _MILLION / outcome.throughput / 3600),
            }


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def main(arguments: list[str] | None = None) -> int:
    """Simulate all, and write the table, the figure and the page."""
    parser = Parser("experiments.scale", "Which limit bites first with 10 to 10,000 workers, and where.", EXAMPLES)
    parser.add_argument("--out", type=Path, default=Path("results/scale"), help="where to (default: results/scale)")
    options = parser.parse_args(arguments)
    console = rich.console.Console(stderr=True)
    try:
        (options.out / "tables").mkdir(parents=True, exist_ok=True)
        table = list(rows(console))
        write_whole(options.out / "tables" / "scale.csv", lambda path: _write_csv(table, path))
        draw(table, options.out / "main.png")
        write_page(table, options.out)
    except OSError as error:
        parser.error(f"can't write to {options.out}: {error.strerror or error}")
    print(f"{len(table)} rows: {options.out / 'README.md'}")
    return 0


def _write_csv(table: list[dict[str, object]], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)


if __name__ == "__main__":
    sys.exit(main())
