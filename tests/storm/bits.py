"""`python -m tests.storm.bits --flips 400`: single flipped bits in records and parts, and how many go unnoticed."""

import argparse
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from a3c_core.config import RunConfig
from a3c_core.records.completeness import flaw, setback
from a3c_core.train import Run, train
from tests.storm.damages import flip_bit

CONFIG = RunConfig(workers="4", episodes=5_000, profile="uniform", environment={"max_episode_steps": 200})


def finished(directory: Path, config: RunConfig = CONFIG) -> tuple[Path, Callable[[], bool]]:
    """Leave a finished run in `directory`; return its records, and what says whether the run counts as damaged."""
    train(config, directory)
    return directory / "episodes.parquet", lambda: flaw(directory, config.episodes) is not None


def interrupted(directory: Path, config: RunConfig = CONFIG) -> tuple[Path, Callable[[], bool]]:
    """Leave a run that goes on; return a part of its records, and what says whether that would be built on."""
    run = Run(config, directory)
    run.runtime.start(lambda: False)
    run.advance(400)
    run.checkpoint()
    return next((directory / "episodes.parts").iterdir()), lambda: setback(directory) is not None


def unnoticed(path: Path, is_noticed: Callable[[], bool], flips: int, seed: int = 0) -> list[float]:
    """Flip as many single bits, one after the other, and mend each; return the places of those that nobody noticed."""
    places = [random.Random(f"bits {seed} {number}").random() for number in range(flips)]
    whole, missed = path.read_bytes(), []
    for place in places:
        flip_bit(path, place)
        missed += [] if is_noticed() else [place]
        path.write_bytes(whole)
    return missed


def main(arguments: list[str] | None = None) -> int:
    """Print how many were flipped and how many went unnoticed; return 1 if any did."""
    parser = argparse.ArgumentParser(prog="python -m tests.storm.bits", description=__doc__)
    parser.add_argument("--flips", type=int, default=400, metavar="N", help="in each of the two files (default: 400)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    missed = 0
    for make in (finished, interrupted):
        with tempfile.TemporaryDirectory(prefix="bits-") as folder:
            path, is_noticed = make(Path(folder) / "run")
            assert not is_noticed()
            places = unnoticed(path, is_noticed, options.flips, options.seed)
        missed += len(places)
        print(f"{make.__name__}: {len(places)} of {options.flips} flipped bits in {path.name} went unnoticed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
