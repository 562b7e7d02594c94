"""Run committed cells again, and compare their records to the byte: `python -m experiments.replicate --help`."""

import csv
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from a3c_core.command_line.arguments import Parser
from a3c_core.config import RunConfig
from a3c_core.games import score_of
from a3c_core.records.checkpoints import found
from a3c_core.records.digests import digest_of_file
from a3c_core.records.layout import EPISODES, UPDATES
from a3c_core.saved_settings import upgraded
from a3c_core.train import train

RESULTS = Path(__file__).parent.parent / "results"
UPDATE_DIGESTS = RESULTS / "updates_sha256.csv"  # study, cell and digest
_UNTOLD_VERSION = 2  # of results whose summary does not tell it
_LONG_ENOUGH = 2_000_000  # env steps of a run that is killed: it takes some tenths of a second at least
_CHECKPOINT_S = 0.05  # between its checkpoints
_LOOK_S = 0.02
EXAMPLES = """\
examples:
  python -m experiments.replicate                              # a few cells of every study in virtual time
  python -m experiments.replicate report map --cells 3 --jobs 2
  python -m experiments.replicate report --only workers=20,seed=0

Of each study the cheapest cell is run, and the cheapest one that learned; then the cheapest cell of each topology and
of each algorithm that is not among them. One run is killed after its first checkpoint, and resumed.

A study's runs.parquet holds the SHA-256 digest of each cell's episodes.parquet; results/updates_sha256.csv holds those
of updates.parquet. In virtual time with the compiled engine a cell that is run again, on any machine, must give those
very bytes; TensorFlow's depend on the processor, and are left out. Exit codes: 0 all do, 1 some differ, 2 a mistake on
the command line.
"""


class Known(NamedTuple):
    """A cell that was run before."""

    study: str
    cell: str
    config: str  # as JSON, as it is written today
    env_steps: int  # what running it again costs
    learned: bool
    digest: str  # of its episodes
    updates_digest: str | None = None  # None: it was not recorded

    @property
    def parts(self) -> tuple[str, str]:
        """Its topology, and its algorithm."""
        config = json.loads(self.config)
        return f"topology {config.get('topology', 'master')}", f"algorithm {config.get('algorithm', 'a3c')}"


class Digests(NamedTuple):
    """SHA-256 digests of a run's two tables."""

    episodes: str
    updates: str

    def differ_from(self, known: Known) -> list[str]:
        """Return the names of the tables that differ from a cell's known ones."""
        pairs = {"episodes": (self.episodes, known.digest), "updates": (self.updates, known.updates_digest)}
        return [name for name, (ours, theirs) in pairs.items() if theirs is not None and ours != theirs]


def known_cells(folder: Path) -> list[Known]:
    """Return a study's finished cells that are the same on any machine, cheapest first, as its compact table tells."""
    rows = [row for row in pq.read_table(folder / "runs.parquet").to_pylist() if row["episodes_sha256"]]
    updates = _update_digests()
    cells = [_known(folder.name, row, updates) for row in rows if _is_exact(json.loads(row["config"]))]
    return sorted(cells, key=lambda known: (known.env_steps, known.cell))


def _is_exact(config: dict[str, Any]) -> bool:
    """Return whether settings, in which older results may lack some, ask for virtual time and the compiled engine."""
    return config.get("runtime", "simulate") == "simulate" and config.get("engine", "compiled") == "compiled"


def _known(study: str, row: dict[str, Any], updates: dict[tuple[str, str], str]) -> Known:
    """Return a row's cell, at the costs that its settings meant when it was run."""
    summary, cell = json.loads(row["summary"]), row["cell"]
    config = upgraded(json.loads(row["config"]), summary.get("results_version", _UNTOLD_VERSION))
    least = score_of(RunConfig.model_validate(config).environment.id).learned_above
    learned = least is not None and summary["score_last_tenth"] >= least
    digests = row["episodes_sha256"], updates.get((study, cell))
    return Known(study, cell, json.dumps(config), summary["env_steps"], learned, *digests)


def _update_digests() -> dict[tuple[str, str], str]:
    """Return the recorded digests of updates by (study, cell)."""
    if not UPDATE_DIGESTS.exists():
        return {}
    with UPDATE_DIGESTS.open(encoding="utf-8", newline="") as file:
        return {(study, cell): digest for study, cell, digest in list(csv.reader(file))[1:]}


def _record(digests: dict[tuple[str, str], str]) -> None:
    """Write digests of updates."""
    with UPDATE_DIGESTS.open("w", encoding="utf-8", newline="") as file:
        rows = sorted((*key, digest) for key, digest in digests.items())
        csv.writer(file, lineterminator="\n").writerows([("study", "cell", "updates_sha256"), *rows])


def digests_again(known: Known) -> Digests:
    """Run a cell from its beginning, and return the digests of its records."""
    with tempfile.TemporaryDirectory(prefix="replicate-") as directory:
        _run(known, Path(directory))
        return _digests_in(Path(directory))


def digests_after_a_kill(known: Known) -> Digests:
    """Run a cell, kill it after its first checkpoint, resume it, and return the digests of its records."""
    with tempfile.TemporaryDirectory(prefix="replicate-") as folder:
        directory = Path(folder)
        process = multiprocessing.get_context("spawn").Process(target=_run, args=(known, directory, _CHECKPOINT_S))
        process.start()
        while process.is_alive() and not found(directory):
            time.sleep(_LOOK_S)
        process.kill()
        process.join()
        if not found(directory) or (directory / "summary.json").exists():
            raise RuntimeError(f"{known.study} {known.cell} ended before it could be killed")
        _run(known, directory, _CHECKPOINT_S)  # as before: it is one of the settings
        return _digests_in(directory)


def _run(known: Known, directory: Path, checkpoint_s: float = 60.0) -> None:
    settings = {**json.loads(known.config), "checkpoint_s": checkpoint_s}
    train(RunConfig.model_validate(settings), directory, run=known.cell)


def _digests_in(directory: Path) -> Digests:
    return Digests(*[digest_of_file(directory / name) for name in (EPISODES, UPDATES)])


def _run_all(cells: Sequence[Known], jobs: int, console: Console) -> Iterator[tuple[Known, Digests]]:
    """Run the cells again, `jobs` at a time; say how each ended and yield its digests."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    clocks = TimeElapsedColumn(), TimeRemainingColumn()
    with Progress(*columns, *clocks, console=console) as progress, ProcessPoolExecutor(jobs) as pool:
        task = progress.add_task("cells", total=len(cells))
        for known, digests in zip(cells, pool.map(digests_again, cells), strict=True):
            progress.console.print(f"{_verdict(known, digests)}  {known.study}  {known.cell}")
            progress.advance(task)
            yield known, digests


def _verdict(known: Known, digests: Digests) -> str:
    if different := digests.differ_from(known):
        return f"DIFFERENT {' and '.join(different)}"
    return "same bytes" if known.updates_digest else "same bytes (episodes alone)"


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; return the exit code."""
    parser = Parser("experiments.replicate", "Run committed cells again and compare them to the byte.", EXAMPLES)
    parser.add_argument("studies", nargs="*", metavar="STUDY", help="names in results/, or folders (default: all)")
    parser.add_argument("--cells", type=int, default=1, metavar="N", help="cheapest cells of each study (default: 1)")
    parser.add_argument("--only", metavar="CELL", help="this cell alone, such as workers=20,seed=0")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="cells at a time (default: 1)")
    parser.add_argument("--record", action="store_true", help="add digests of updates that are not recorded yet")
    options = parser.parse_args(arguments)
    if options.cells < 1 or options.jobs < 1:
        parser.error("--cells and --jobs must be at least 1")
    known = [known_cells(folder) for folder in _folders(options.studies, parser)]
    if options.only:
        cells = [one for study in known for one in study if one.cell == options.only]
    else:
        cells = chosen(known, options.cells)
    if not cells:
        parser.error("no finished cell in virtual time, with the compiled engine, fits")
    console = Console(stderr=False)
    results = list(_run_all(cells, options.jobs, console))
    alike = sum(not digests.differ_from(one) for one, digests in results)
    print(f"{alike} of {len(cells)} cells gave the same bytes again")
    if options.record:
        ours = {(one.study, one.cell): digests.updates for one, digests in results if not digests.differ_from(one)}
        _record({**ours, **_update_digests()})
    resumed = options.only is not None or _resumes(cells, console)
    return 0 if alike == len(cells) and resumed else 1


def _resumes(cells: Sequence[Known], console: Console) -> bool:
    """Kill one run, the cheapest that is long enough; say and return whether it gave the same bytes when resumed."""
    long_enough = [one for one in cells if one.env_steps >= _LONG_ENOUGH]
    if not long_enough:
        console.print("no cell is long enough to be killed and resumed")
        return True
    known = min(long_enough, key=lambda one: one.env_steps)
    digests = digests_after_a_kill(known)
    console.print(f"{_verdict(known, digests)}  {known.study}  {known.cell}, killed and resumed")
    return not digests.differ_from(known)


def chosen(studies: Sequence[Sequence[Known]], count: int) -> list[Known]:
    """Return the cells to run again, of studies whose cells are sorted by cost.

    These are the `count` cheapest of each study, the cheapest that learned, and of each topology and algorithm one.
    """
    cells: list[Known] = []
    for study in studies:
        learned = [one for one in study if one.learned][:1]
        cells += [*study[:count], *(one for one in learned if one not in study[:count])]
    covered = {part for one in cells for part in one.parts}
    for one in sorted((one for study in studies for one in study), key=lambda one: one.env_steps):
        if not covered.issuperset(one.parts):
            covered.update(one.parts)
            cells.append(one)
    return cells


def _folders(names: Sequence[str], parser: Parser) -> list[Path]:
    folders = [Path(name) if os.path.isdir(name) else RESULTS / name for name in names]
    for folder in folders:
        if not os.path.isfile(folder / "runs.parquet"):
            there = ", ".join(sorted(path.parent.name for path in RESULTS.glob("*/runs.parquet")))
            parser.error(f"{folder} holds no study: name a folder with a runs.parquet, or one of {there}")
    return folders or sorted(path.parent for path in RESULTS.glob("*/runs.parquet"))


if __name__ == "__main__":
    sys.exit(main())
