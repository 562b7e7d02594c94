"""AReaL: sessions of its session tracer (a line for each rollout), and the box table of a trainer's statistics.

Formats: docs/en/best_practices/perf_profiling.md (sessions), areal/utils/printing.py (table). A folder with both is
read as one log.
"""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from a3c.advise.measurements import ASYNCHRONOUS, LONGEST_S, LogError, Measurements
from a3c.advise.readers.text import Line, Step, complete, json_object, read_lines, series, total
from a3c_core.errors import shown

NAME = "areal"
_CELLS = re.compile(r"([A-Za-z_][\w./\-]*)\s*│\s*([-+]?(?:\d[\d.]*(?:[eE][-+]?\d+)?|nan|inf))(?=\s*(?:│|$))")
_PARTS = "critic_values ref_logp teacher_logp recompute_logp compute_advantage train_step critic_train_step"
_WORK = tuple(f"timeperf/{name}" for name in _PARTS.split())
_OTHER = ("save", "checkpoint_for_recover", "eval", "clear_batches", "rollout_pause", "rollout_resume")
_STATUSES = ("accepted", "rejected", "failed", "dropped")


def is_mine(line: Line) -> bool:
    """Return whether a line is one of AReaL's."""
    if "│" in line.text:
        return "timeperf/" in line.text
    value = json_object(line.text) if '"submit_ts"' in line.text else None
    return value is not None and "finalized_ts" in value


def read(lines: list[Line], source: str) -> Measurements:
    """Return what a file of sessions or a table says, or one that has both."""
    sessions = [(line.number, value) for line in lines if (value := _session(line)) is not None]
    steps = _steps(lines)
    if sessions and steps:
        return _both(sessions, steps, source)
    return _of_sessions(sessions, source) if sessions else _of_table(steps, source)


def read_folder(folder: Path) -> Measurements | None:
    """Return what a folder with files of sessions says, with the table of any .log beside them; None without any."""
    files = sorted(folder.rglob("sessions-r*.jsonl"))
    if not files:
        return None
    lines: list[Line] = []
    for path in [*files, *sorted(folder.rglob("*.log"))]:
        lines += read_lines(path)
    return read(lines, str(folder))


def _session(line: Line) -> dict[str, Any] | None:
    """Return a session, None for another line; raise LogError for one that contradicts itself."""
    value = json_object(line.text) if '"submit_ts"' in line.text else None
    if value is None:
        return None
    times = [value.get(name) for name in ("submit_ts", "finalized_ts")]
    if not all(isinstance(one, int | float) and abs(one) <= LONGEST_S for one in times):
        return None  # not finalised yet
    if times[1] < times[0]:  # type: ignore[operator]
        raise LogError(f"line {line.number} of the log: the session ends before it was submitted")
    if value.get("status") not in _STATUSES:
        raise LogError(
            f"line {line.number} of the log: its status is {shown(value.get('status'))}; known: {', '.join(_STATUSES)}"
        )
    return value


def _steps(lines: list[Line]) -> list[Step]:
    """Return the steps of the tables; a key that comes again begins the next."""
    steps: list[Step] = []
    for line in lines:
        if "│" not in line.text:
            continue
        for key, value in _CELLS.findall(line.text):
            if not steps or key in steps[-1]:
                steps.append(Step(line.number, str(len(steps))))
            number = float(value)
            if math.isfinite(number):
                steps[-1].add(line.number, {key: number})
    return [step for step in steps if any(key.startswith("timeperf/") for key in step.values)]


def _of_table(steps: list[Step], source: str) -> Measurements:
    """Return what tables alone say: timeperf/rollout is the trainer's wait."""
    if not steps:
        raise LogError("the log of AReaL has neither a session with its times nor a table with timeperf/...")
    steps, notes = complete(steps, "timeperf/train_step")
    wait_s, update_s, sync_s = (
        series(steps, "timeperf/rollout"),
        total(steps, *_WORK),
        series(steps, "timeperf/update_weights"),
    )
    other_s = total(steps, *(f"timeperf/{name}" for name in _OTHER))
    return Measurements(
        system=NAME,
        source=source,
        mode=ASYNCHRONOUS,
        step_s=sum(np.nan_to_num(part) for part in (wait_s, update_s, sync_s, other_s)),  # type: ignore[arg-type]
        wait_s=wait_s,
        update_s=update_s,
        sync_s=sync_s,
        notes=notes,
        unknown=(
            "how long single rollouts take: a lognormal spread of 0.5 is assumed (turn on perf_tracer.session_tracer)",
            "how many rollouts a step has, and how many are in flight (--batch, --in-flight)",
            "the bound on age: 2 is assumed (--staleness)",
        ),
    )


def _of_sessions(sessions: list[tuple[int, dict[str, Any]]], source: str) -> Measurements:
    """Return what sessions alone say: how long rollouts take, how many at once, and what became of them."""
    ones = [session for _, session in sessions]
    begin = np.array([float(one["submit_ts"]) for one in ones])
    end = np.array([float(one["finalized_ts"]) for one in ones])
    tasks: dict[Any, int] = {}
    for one in ones:
        tasks[one.get("task_id")] = tasks.get(one.get("task_id"), 0) + 1
    accepted = np.array([one["status"] == "accepted" for one in ones])
    edges = np.concatenate([begin, end])
    changes = np.concatenate([np.ones(len(ones)), -np.ones(len(ones))])
    order = np.lexsort((changes, edges))
    side_by_side = np.cumsum(changes[order])
    seconds = float(end.max() - begin.min())
    notes: tuple[str, ...] = ()
    if lost := int((~accepted).sum()):
        notes = (f"{lost:,} of {len(ones):,} sessions were not accepted",)
    return Measurements(
        system=NAME,
        source=source,
        mode=ASYNCHRONOUS,
        rollouts_s=end - begin,
        group=int(np.median(list(tasks.values()))),
        slots=int(side_by_side.max()),
        dropped=float((~accepted).mean()),
        generators_idle=max(0.0, 1.0 - float(np.sum(end - begin)) / (seconds * float(side_by_side.max())))
        if seconds
        else None,
        notes=notes,
        unknown=(
            "how long an update takes and how long the trainer waits: name the trainer's log beside it, or --update",
        ),
    )


def _both(sessions: list[tuple[int, dict[str, Any]]], steps: list[Step], source: str) -> Measurements:
    """Return what sessions and tables say together: also how many rollouts a step takes."""
    from dataclasses import replace

    rollouts, table = _of_sessions(sessions, source), _of_table(steps, source)
    group = rollouts.group or 1
    accepted = sum(one["status"] == "accepted" for _, one in sessions)
    batch = max(group, round(accepted / table.steps / group) * group)
    return replace(
        rollouts,
        step_s=table.step_s,
        wait_s=table.wait_s,
        update_s=table.update_s,
        sync_s=table.sync_s,
        batch=batch,
        notes=(*rollouts.notes, *table.notes),
        unknown=("the bound on age: 2 is assumed (--staleness)", "whether rollouts go on after a weight sync"),
    )
