"""Any other CSV or JSONL, a line for each step, by a map from our names to its columns: --columns rollout=gen_s,..."""

import csv

import numpy as np

from a3c.advise.measurements import ASYNCHRONOUS, SYNCHRONOUS, LogError, Measurements, mean
from a3c.advise.readers.text import Line, Step, complete, flat, json_object, last, series, whole
from a3c_core.errors import shown, unknown

NAME = "columns"
NAMES = {  # of --columns, and what each is
    "step": "seconds of a step",
    "wait": "seconds in which the trainer waits for rollouts",
    "rollout": "seconds of a synchronous step's generation",
    "update": "seconds of training",
    "sync": "seconds of a weight sync",
    "staleness": "updates, mean of a step",
    "queue": "rollouts in the queue",
    "batch": "rollouts of a step",
    "slots": "rollouts side by side",
}


def parse(text: str) -> dict[str, str]:
    """Return {our name: column} of rollout=timing_s/gen,...; ValueError says what is wrong."""
    columns = {}
    for part in text.split(","):
        name, equals, column = part.partition("=")
        if not equals or not column.strip():
            raise ValueError(f"write each column as name=column, not {shown(part)}")
        if name.strip() not in NAMES:
            raise ValueError(f"{shown(name.strip())}: {unknown(name.strip(), NAMES, 'column')}")
        columns[name.strip()] = column.strip()
    if "update" not in columns or not {"wait", "rollout", "step"} & columns.keys():
        raise ValueError("at least update, and one of wait, rollout and step, are needed")
    if "wait" in columns and "rollout" in columns:
        raise ValueError("wait (asynchronous) and rollout (synchronous) exclude each other")
    return columns


def read(lines: list[Line], source: str, columns: dict[str, str]) -> Measurements:
    """Return what the columns say."""
    steps = _steps(lines)
    there = {key for step in steps for key in step.values}
    if missing := [column for column in columns.values() if column not in there]:
        raise LogError(f"the log has no column of numbers {shown(missing[0])}: {unknown(missing[0], there, 'column')}")
    steps, notes = complete(
        steps, *(columns[name] for name in columns if name in ("step", "wait", "rollout", "update", "sync"))
    )
    found = {name: series(steps, column) for name, column in columns.items()}
    for name in ("step", "wait", "rollout", "update", "sync"):
        if name in found and (found[name] < 0).any():
            line = steps[int(np.argmax(found[name] < 0))].line
            raise LogError(f"line {line} of the log: {columns[name]} is negative, which is no time")
    mode = SYNCHRONOUS if "rollout" in columns else ASYNCHRONOUS
    sync_s = found.get("sync", np.zeros(len(steps)))
    if "step" in found:
        step_s = found["step"]
        wait_s = found.get("wait", found.get("rollout", np.maximum(step_s - found["update"] - sync_s, 0.0)))
    else:
        wait_s = found.get("wait", found.get("rollout", np.zeros(len(steps))))
        step_s = wait_s + found["update"] + sync_s
    if not mean(step_s) > 0:
        raise LogError("by the log steps take no time at all: are its times in seconds?")
    return Measurements(
        system=NAME,
        source=source,
        mode=mode,
        step_s=step_s,
        wait_s=wait_s,
        update_s=found["update"],
        sync_s=sync_s,
        staleness=found.get("staleness", np.zeros(0)),
        queued=found.get("queue", np.zeros(0)),
        batch=whole(last(steps, columns["batch"])) if "batch" in columns else None,
        slots=whole(last(steps, columns["slots"])) if "slots" in columns else None,
        notes=notes,
        unknown=(
            "how long single rollouts take: a lognormal spread of 0.5 is assumed (--jitter)",
            *(() if "batch" in columns else ("how many rollouts a step has (--batch)",)),
        ),
    )


def _steps(lines: list[Line]) -> list[Step]:
    """Return the lines of a CSV with a heading, or of JSON objects."""
    if lines[0].text.lstrip().startswith("{"):
        steps: list[Step] = []
        for line in lines:
            value = json_object(line.text)
            if value is None:
                if line is lines[-1] and steps:
                    continue  # cut off as it was written
                raise LogError(f"line {line.number} of the log is not a JSON object")
            step = Step(line.number, str(line.number))
            step.add(line.number, flat(value))
            steps.append(step)
        return steps
    from a3c.advise.readers.rllib import _csv_steps

    try:
        return _csv_steps(lines)
    except csv.Error as error:
        raise LogError(f"line {lines[0].number} of the log is not CSV: {error}") from error
