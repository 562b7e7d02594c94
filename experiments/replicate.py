"""Run committed cells again, and compare their records to the byte: `python -m experiments.replicate --help`."""

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from a3c_core.command_line.arguments import Parser
from a3c_core.config import RunConfig
from a3c_core.records.digests import digest_of_file
from a3c_core.records.layout import EPISODES
from a3c_core.saved_settings import upgraded
from a3c_core.train import train

RESULTS = Path(__file__).parent.parent / "results"
_UNTOLD_VERSION = 2  # of results whose summary does not tell it
EXAMPLES = """\
examples:
  python -m experiments.replicate                              # the cheapest cell of every study in virtual time
  python -m experiments.replicate report map --cells 3 --jobs 2
  python -m experiments.replicate report --only workers=20,seed=0

A study's runs.parquet holds the SHA-256 digest of each cell's episodes.parquet. In virtual time with the compiled
engine a cell that is run again, on any machine, must give those very bytes; TensorFlow's depend on the processor, and
are left out. Exit codes: 0 all do, 1 some differ, 2 a mistake on the command line.
"""


class Known(NamedTuple):
    """A cell that was run before."""

    study: str
    cell: str
    config: str  # as JSON, as it is written today
    env_steps: int  # what running it again costs
    digest: str


def known_cells(folder: Path) -> list[Known]:
    """Return a study's finished cells that are the same on any machine, cheapest first, as its compact table tells."""
    rows = [row for row in pq.read_table(folder / "runs.parquet").to_pylist() if row["episodes_sha256"]]
    cells = [_known(folder.name, row) for row in rows if _is_exact(json.loads(row["config"]))]
    return sorted(cells, key=lambda known: (known.env_steps, known.cell))


def _is_exact(config: dict[str, Any]) -> bool:
    """Return whether settings, in which older results may lack some, ask for virtual time and the compiled engine."""
    return config.get("runtime", "simulate") == "simulate" and config.get("engine", "compiled") == "compiled"


def _known(study: str, row: dict[str, Any]) -> Known:
    """Return a row's cell, at the costs that its settings meant when it was run."""
    summary = json.loads(row["summary"])
    config = upgraded(json.loads(row["config"]), summary.get("results_version", _UNTOLD_VERSION))
    return Known(study, row["cell"], json.dumps(config), summary["env_steps"], row["episodes_sha256"])


def digest_again(known: Known) -> str:
    """Run a cell from its beginning, and return the digest of its records."""
    with tempfile.TemporaryDirectory(prefix="replicate-") as directory:
        train(RunConfig.model_validate(json.loads(known.config)), Path(directory), run=known.cell)
        return digest_of_file(Path(directory) / EPISODES)


def differing(cells: Sequence[Known], jobs: int, console: Console) -> Iterator[Known]:
    """Run the cells again, `jobs` at a time, saying how each ended; yield those that differ."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    clocks = TimeElapsedColumn(), TimeRemainingColumn()
    with Progress(*columns, *clocks, console=console) as progress, ProcessPoolExecutor(jobs) as pool:
        task = progress.add_task("cells", total=len(cells))
        for known, digest in zip(cells, pool.map(digest_again, cells), strict=True):
            alike = digest == known.digest
            progress.console.print(f"{'same bytes' if alike else 'DIFFERENT '}  {known.study}  {known.cell}")
            progress.advance(task)
            if not alike:
                yield known


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; return the exit code."""
    parser = Parser("experiments.replicate", "Run committed cells again and compare them to the byte.", EXAMPLES)
    parser.add_argument("studies", nargs="*", metavar="STUDY", help="names in results/, or folders (default: all)")
    parser.add_argument("--cells", type=int, default=1, metavar="N", help="cells of each study (default: 1)")
    parser.add_argument("--only", metavar="CELL", help="this cell alone, such as workers=20,seed=0")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="cells at a time (default: 1)")
    options = parser.parse_args(arguments)
    if options.cells < 1 or options.jobs < 1:
        parser.error("--cells and --jobs must be at least 1")
    cells = [
        known for folder in _folders(options.studies, parser) for known in _chosen(folder, options.cells, options.only)
    ]
    if not cells:
        parser.error("no finished cell in virtual time, with the compiled engine, fits")
    different = list(differing(cells, options.jobs, Console(stderr=False)))
    print(f"{len(cells) - len(different)} of {len(cells)} cells gave the same bytes again")
    return 1 if different else 0


def _folders(names: Sequence[str], parser: Parser) -> list[Path]:
    folders = [Path(name) if os.path.isdir(name) else RESULTS / name for name in names]
    for folder in folders:
        if not os.path.isfile(folder / "runs.parquet"):
            there = ", ".join(sorted(path.parent.name for path in RESULTS.glob("*/runs.parquet")))
            parser.error(f"{folder} holds no study: name a folder with a runs.parquet, or one of {there}")
    return folders or sorted(path.parent for path in RESULTS.glob("*/runs.parquet"))


def _chosen(folder: Path, count: int, only: str | None) -> list[Known]:
    cells = known_cells(folder)
    return [known for known in cells if known.cell == only] if only else cells[:count]


if __name__ == "__main__":
    sys.exit(main())
