"""A cell's own process: `python -m experiments.sweep.cell DIRECTORY ID [PART...]`, started by the sweep.

PART is a part of the user's own, `package.module:attribute`, that the grid names: a file on disk alone can't have it
imported. The process tells of its progress in lines of JSON on its standard output, and ends within seconds when the
sweep is gone: its standard input closes then.
"""

import json
import os
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from a3c_core.config import RunConfig
from a3c_core.records.blocks import RecordBlock
from a3c_core.records.tables import EpisodeRecord
from a3c_core.system.signals import INTERRUPTED, heard_interrupts
from a3c_core.train import train
from a3c_core.trusted_modules import refuse_untrusted
from experiments.wall_times import WallTimes

REPORT_S = 0.3  # between two reports of progress
LAST_WORDS_S = 5.0  # for a checkpoint, when the sweep is gone
WINDOW = 100  # episodes, of the means
Tell = Callable[[dict[str, Any]], None]


class Progress(NamedTuple):
    """How far a run is. The means are over its last 100 episodes."""

    episodes: int
    score: float
    staleness: float
    workers: int
    clock_s: float
    env_steps: int = 0  # since this process began


class Reporter:
    """Tells of a run's progress, a few times a second, and has the real time of each record written down."""

    def __init__(self, tell: Tell, wall_times: WallTimes | None = None):
        self._tell, self._wall_times = tell, wall_times
        self._last_s = float("-inf")
        self._recent: deque[tuple[float, int]] = deque(maxlen=WINDOW)
        self._env_steps = 0

    def __call__(self, record: EpisodeRecord) -> None:
        self._heed([record], 1, record.steps)

    def heed_block(self, block: RecordBlock) -> None:
        """Heed records that were made at once, of which only the last ones tell more than that they were made."""
        self._heed(list(block.records(WINDOW)), len(block), block.env_steps)

    def _heed(self, last: list[EpisodeRecord], count: int, env_steps: int) -> None:
        """Heed `count` records, at least one, of so many steps in all, of which these are the last."""
        if self._wall_times is not None:
            self._wall_times.note(last[-1].episode + 1 - count, count)
        self._recent.extend((record.score, record.staleness) for record in last)
        self._env_steps += env_steps
        now_s = time.monotonic()
        if now_s - self._last_s >= REPORT_S:
            self._last_s = now_s
            self._tell({"progress": self.progress(last[-1])._asdict()})

    def progress(self, record: EpisodeRecord) -> Progress:
        """Return how far the run is with this record."""
        score, staleness = (sum(values) / len(self._recent) for values in zip(*self._recent, strict=True))
        return Progress(record.episode + 1, score, staleness, record.workers_alive, record.applied_s, self._env_steps)


def run_cell(directory: Path, identity: str, tell: Tell, trusted: Sequence[str] = ()) -> int:
    """Train as the directory's config.json says, tell how it ended, and return the process's exit code."""
    try:
        settings = json.loads((directory / "config.json").read_bytes())
        refuse_untrusted(settings, trusted, str(directory / "config.json"))
        config = RunConfig.model_validate_json(json.dumps(settings))
        wall_times = WallTimes(directory) if config.is_virtual else None
        reporter = Reporter(tell, wall_times)
        summary = train(config, directory, reporter, identity, reporter.heed_block)
    except Exception as error:
        traceback.print_exc()
        tell({"end": "failed", "reason": f"{type(error).__name__}: {error}"})
        return 1
    tell({"end": summary.outcome})
    return 0


def main() -> None:
    """Run the cell that the command line names. SIGINT and SIGTERM are blocked before and after that, by the sweep."""
    directory, identity, *trusted = sys.argv[1:]
    channel = os.dup(1)
    os.dup2(2, 1)  # what libraries print goes to the log
    threading.Thread(target=_end_with_parent, daemon=True).start()
    tell = partial(_send, channel)
    try:
        with heard_interrupts():
            code = run_cell(Path(directory), identity, tell, trusted)
    except KeyboardInterrupt:
        tell({"end": "interrupted"})
        code = INTERRUPTED
    sys.exit(code)


def _send(channel: int, message: dict[str, Any]) -> None:
    with suppress(BrokenPipeError):  # when the sweep is gone, _end_with_parent knows
        os.write(channel, json.dumps(message).encode() + b"\n")


def _end_with_parent() -> None:
    """Wait until the sweep is gone; then ask the run to stop, and make sure that it and its workers do."""
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(LAST_WORDS_S)
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    main()
