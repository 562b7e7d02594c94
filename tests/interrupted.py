"""Runs in virtual time that are cut short, go on, and must end in the bytes of one that was not."""

from collections.abc import Sequence
from pathlib import Path

from a3c_core.config import RunConfig
from a3c_core.train import Run, train

LOST = 20  # events after a checkpoint, which happen again


def assert_same_bytes_when_interrupted(config: RunConfig, folder: Path, events: Sequence[int]) -> None:
    """Interrupt a run after so many `events`, again and again; `folder` holds it as `cut`, and the other as `whole`."""
    for count in events:
        run = Run(config, folder / "cut")
        run.runtime.start(lambda: False)
        run.advance(count)
        run.checkpoint()
        run.advance(LOST)
    train(config, folder / "cut")
    train(config, folder / "whole")
    for file in ("episodes.parquet", "updates.parquet"):
        assert (folder / "cut" / file).read_bytes() == (folder / "whole" / file).read_bytes(), file
