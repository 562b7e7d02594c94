"""Whether a run that says it is finished has all of its records, and what one that goes on has lost of them."""

from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from a3c_core.records import checkpoints
from a3c_core.records.digests import digest_of_file
from a3c_core.records.layout import EPISODES, SETTINGS, SUMMARY, UPDATES, is_of_another_run, read_digests, read_summary
from a3c_core.records.tables import EPISODE_TABLE, UNREADABLE, UPDATE_TABLE, sound_rows

_TABLES = {"records": EPISODE_TABLE, "updates": UPDATE_TABLE}  # by what checkpoints call them


def flaw(directory: Path, planned: int, env_steps: int | None = None) -> str | None:
    """Return what is missing or damaged in a run of `planned` episodes that says it is finished, or None.

    `env_steps`: that may end it before.
    """
    summary = read_summary(directory)
    if summary is None:
        return f"its {SUMMARY} is missing or not a run's summary"
    told = summary["episodes"]
    cut_short = env_steps is not None and summary.get("env_steps", 0) >= env_steps
    if summary["outcome"] == "finished" and told < planned and not cut_short:
        return f"its {SUMMARY} tells of {told:,} of {planned:,} episodes"
    missing = _missing(directory / EPISODES, told, "episodes")
    updates = summary.get("update_rows")
    if not missing and type(updates) is int and updates:  # older results do not tell of any
        missing = _missing(directory / UPDATES, updates, "updates")
    return missing or _changed(directory)


def _changed(directory: Path) -> str | None:
    """Return what is not as it was when the summary was written, or None; older summaries have no digests."""
    if is_of_another_run(directory):
        return f"its {SUMMARY} is of a run with other settings"
    for name, digest in read_digests(directory).items():
        if name == SETTINGS:
            continue
        if not (directory / name).is_file() or digest_of_file(directory / name) != digest:
            return f"its {name} is damaged: its digest is not the one in its {SUMMARY}"
    return None


def _missing(path: Path, told: int, what: str) -> str | None:
    """Return what is wrong with a file that should have `told` rows, or None."""
    try:
        there = pq.read_metadata(path).num_rows
    except FileNotFoundError:
        return f"its {path.name} is missing"
    except UNREADABLE:
        return f"its {path.name} can't be read: damaged or no parquet file"
    return None if there == told else f"its {path.name} holds {there:,} of {told:,} {what}"


def _rows_left(directory: Path, kind: str, checkpoint: Path) -> int:
    return sound_rows(directory, _TABLES[kind], checkpoints.vouched_parts(checkpoint, kind))


class Setback(NamedTuple):
    """Records were lost: what that means for the run, and the checkpoints that rest on them."""

    words: str
    checkpoints: list[Path]  # newest first


def setback(directory: Path) -> Setback | None:
    """Return what a run that goes on in `directory` has lost, or None if it goes on where it was."""
    found = checkpoints.found(directory)
    losses = [loss for kind in _TABLES if (loss := _loss(directory, kind, found)) is not None]
    if not losses:
        return None
    beyond = [path for path in found if any(path in loss.checkpoints for loss in losses)]
    left = [path for path in found if path not in beyond]
    copes = f"it goes back to record {checkpoints.records_of(left[0]) or 0:,}" if left else "it starts over"
    return Setback(f"{losses[0].words}: {copes}", beyond)


def _loss(directory: Path, kind: str, found: list[Path]) -> Setback | None:
    """Return which of the checkpoints `found` rest on more records of a kind than are sound, or None."""
    rests_on = {path: checkpoints.records_of(path, kind) or 0 for path in found}
    there = {path: _rows_left(directory, kind, path) if rows else 0 for path, rows in rests_on.items()}
    beyond = [path for path, rows in rests_on.items() if rows > there[path]]
    if not beyond:
        return None
    left, needed = there[beyond[0]], rests_on[beyond[0]]
    words = f"only {left:,} of the {needed:,} {kind} before its newest checkpoint are there, readable and unchanged"
    return Setback(words, beyond)
