"""What must hold when a round is over; each check returns sentences about what does not."""

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_TRACEBACK = re.compile(r"^Traceback \(most recent call last\):\n(?:[ \t].*\n)*\S.*$", re.MULTILINE)
_PLACE = re.compile(r'^ +File "(.*)", line (\d+), in (.*)$', re.MULTILINE)
_PYTHONS_OWN = "<frozen site>"  # its start
_MEMORY = Path("/dev/shm")
_TEMPORARY = re.compile(r"\.unfinished-.*|\..*\.tmp")  # see a3c_core/records/files.py


def run_is_whole(directory: Path, episodes: int) -> Iterator[str]:
    """Check a finished run: its records are there, each once, and its summary agrees with them."""
    try:
        records = pq.read_table(directory / "episodes.parquet")
        summary = json.loads((directory / "summary.json").read_bytes())
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0].replace(f"{directory}/", "")
        yield f"{directory.name} is called finished, but {reason[:150]}"
        return
    if len(records) != episodes:
        yield f"{directory.name} has {len(records):,} records instead of {episodes:,}"
    names = set(zip(records["worker"].to_pylist(), records["worker_episode"].to_pylist(), strict=True))
    if len(names) < len(records):
        yield f"{directory.name} has {len(records) - len(names):,} duplicates among {len(records):,} records"
    if records["episode"].to_pylist() != list(range(len(records))):
        yield f"{directory.name} has records that are not numbered one after the other"
    yield from summary_adds_up(summary, directory.name, episodes)
    told = summary.get("sha256", {})
    for name in ("episodes.parquet", "updates.parquet"):
        if told.get(name) != hashlib.sha256((directory / name).read_bytes()).hexdigest():
            yield f"{directory.name}'s {name} is not the one that its summary tells of"


def summary_adds_up(summary: dict[str, Any], name: str, episodes: int) -> Iterator[str]:
    """Check a run's summary: the episodes asked for, and a fate for every gradient."""
    if summary["outcome"] != "finished" or summary["episodes"] != episodes:
        yield f"{name}'s summary says {summary['outcome']} with {summary['episodes']:,} of {episodes:,} episodes"
    fates = ("gradients_applied", "gradients_rejected", "gradients_dropped", "gradients_lost")
    if summary["gradients_sent"] != sum(summary[fate] for fate in fates):
        counts = ", ".join(f"{fate.removeprefix('gradients_')} {summary[fate]:,}" for fate in fates)
        yield f"{name}'s summary says {summary['gradients_sent']:,} gradients were sent, but {counts}"


def study_is_whole(study: Path, cells: int, episodes: int) -> Iterator[str]:
    """Check a sweep that ended well: all its cells are finished, and noted as such."""
    try:
        known = json.loads((study / "study.json").read_bytes())["cells"]
    except (OSError, ValueError, KeyError) as error:
        yield f"study.json can't be read after a sweep that ended well: {error!r}"
        return
    if len(known) != cells:
        yield f"study.json knows {len(known)} cells instead of {cells}"
    for cell in known:
        directory = study / "cells" / cell["id"]
        yield from run_is_whole(directory, episodes)
        yield from _is_noted_as_finished(directory)


def _is_noted_as_finished(directory: Path) -> Iterator[str]:
    try:
        status = json.loads((directory / "metadata.json").read_bytes())["status"]
    except (OSError, ValueError, KeyError) as error:
        status = repr(error)
    if status != "finished":
        yield f"{directory.name} has status {status} after a sweep that ended well"


def digests(results: Path) -> dict[str, str]:
    """Return {cell: digest of its records}: in virtual time, the same after any storm."""
    files = sorted(results.glob("*/cells/*/episodes.parquet"))
    return {path.parent.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def tracking_is_whole(database: Path, episodes: int) -> Iterator[str]:
    """Check MLflow's store: no run twice, and all finished cells told to the last episode."""
    with sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True) as store:
        doubled = "SELECT value, COUNT(*) FROM tags WHERE key = 'uid' GROUP BY value HAVING COUNT(*) > 1"
        for uid, count in store.execute(doubled):
            yield f"MLflow has {count} runs for the one cell or sweep {uid}"
        told = "SELECT name, value FROM runs JOIN tags USING (run_uuid) WHERE key = 'episodes_logged'"
        latest = dict(store.execute(f"{told} ORDER BY start_time").fetchall())
    for cell, logged in latest.items():
        if int(logged) != episodes:
            yield f"MLflow knows {int(logged):,} of {episodes:,} episodes of {cell}"


def master_is_steady(output: str, episodes: int) -> Iterator[str]:
    """Check what a long-lived master has said: its descriptors grow neither within a run nor from run to run."""
    said = [json.loads(line) for line in output.splitlines() if line.startswith('{"descriptors"')]
    for message in said[1:]:  # the first run was a short one, for comparison
        yield from summary_adds_up(message["summary"], "a run in a row", episodes)
    held = [message["descriptors"] for message in said]
    lost = sum(message["summary"]["crashes"] for message in said)
    if any(counts["last"] > counts["first"] or counts["after"] > held[0]["after"] for counts in held):
        yield f"a master's descriptors grow: {held}, with {lost} lost workers in all"


def tracebacks(output: str) -> list[str]:
    """Return each traceback in a program's output as one line, but for Ctrl-C where nobody can listen yet."""
    return [_one_line(text) for text in _TRACEBACK.findall(output) if not _is_early(text)]


def _one_line(traceback: str) -> str:
    lines = traceback.splitlines()
    places = [f"{Path(name).name}:{line} {function}" for name, line, function in _PLACE.findall(traceback)]
    return f"{lines[-1][:150]} at {places[-1] if places else '?'}"


def _is_early(traceback: str) -> bool:
    """Return whether Ctrl-C came too early: before any line of ours."""
    return _PYTHONS_OWN in traceback and traceback.splitlines()[-1].startswith("KeyboardInterrupt")


def leftovers(temporary: Path, results: Path) -> list[str]:
    """Return what was left behind in the temporary directory, and half-written files among the results."""
    left = [path.name for path in sorted(temporary.iterdir())]
    return left + [path.name for path in sorted(results.rglob(".*")) if _TEMPORARY.fullmatch(path.name)]


def shared_memory() -> set[str]:
    """Return the names of the files in /dev/shm."""
    return {path.name for path in _MEMORY.iterdir() if path.is_file()} if _MEMORY.is_dir() else set()


def orphaned_memory(before: set[str]) -> list[str]:
    """Return what came to /dev/shm since, and is in use by nobody: others may share this machine."""
    return sorted((shared_memory() - before - _in_use()) & shared_memory())  # what has gone meanwhile is no orphan


def _in_use() -> set[str]:
    """Return the files in /dev/shm that a process has, by inode: who makes a semaphore maps it under another name."""
    inodes = {inode for process in Path("/proc").glob("[0-9]*") for inode in _inodes_of(process)}
    return {name for name in shared_memory() if _inode(name) in inodes}


def _inode(name: str) -> int | None:
    try:
        return (_MEMORY / name).stat().st_ino
    except OSError:  # it is gone
        return None


def _inodes_of(process: Path) -> Iterator[int]:
    """Yield the inodes in /dev/shm that a process has mapped or open."""
    with suppress(OSError):  # it ends while we look
        for line in (process / "maps").read_text().splitlines():
            if f"{_MEMORY}/" in line:
                yield int(line.split()[4])
        for descriptor in (process / "fd").iterdir():
            if str(descriptor.readlink()).startswith(f"{_MEMORY}/"):
                yield descriptor.stat().st_ino
