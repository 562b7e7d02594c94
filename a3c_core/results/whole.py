"""Whether a run that says it is finished has all of its records, and what one that goes on has lost of them."""

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from a3c_core.results import checkpoints
from a3c_core.results.layout import EPISODES, SUMMARY, read_summary
from a3c_core.results.records import sound_records


def flaw(directory: Path, planned: int) -> str | None:
    """Return what keeps a run of `planned` episodes from being whole, or None. Only ends of files are read."""
    summary = read_summary(directory)
    if summary is None:
        return f"its {SUMMARY} is missing or not a run's summary"
    told = summary["episodes"]
    if summary["outcome"] == "finished" and told < planned:
        return f"its {SUMMARY} tells of {told:,} of {planned:,} episodes"
    try:
        there = pq.read_metadata(directory / EPISODES).num_rows
    except FileNotFoundError:
        return f"its {EPISODES} is missing"
    except (pa.ArrowException, OSError):
        return f"its {EPISODES} can't be read: damaged or no parquet file"
    return None if there == told else f"its {EPISODES} holds {there:,} of {told:,} episodes"


class Setback(NamedTuple):
    """Records were lost: what that means for the run, and the checkpoints that rest on them."""

    words: str
    checkpoints: list[Path]  # newest first


def setback(directory: Path) -> Setback | None:
    """Return what a run that goes on in `directory` has lost, or None if it goes on where it was."""
    rests_on = {path: checkpoints.records_of(path) or 0 for path in checkpoints.found(directory)}
    there = len(sound_records(directory)) if rests_on else 0
    beyond = [path for path, records in rests_on.items() if records > there]
    if not beyond:
        return None
    left = [records for path, records in rests_on.items() if path not in beyond]
    copes = f"it goes back to record {left[0]:,}" if left else "it starts over"
    lost = f"only {there:,} of the {rests_on[beyond[0]]:,} records before its newest checkpoint are there and readable"
    return Setback(f"{lost}: {copes}", beyond)
