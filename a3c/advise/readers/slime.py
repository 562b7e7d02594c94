"""slime, and miles, its fork: lines `perf <rollout>: {python dict}` of two actors on stdout.

Formats: slime/observability/rollout_metrics.py and train_metric_utils.py; miles docs/user-guide/fully-async.md.
"""

import ast
import re

import numpy as np

from a3c.advise.measurements import ASYNCHRONOUS, ONE_STEP_OFF, SYNCHRONOUS, LogError, Measurements, mean
from a3c.advise.readers.text import Line, Step, complete, series

NAME = "slime"
_LINE = re.compile(r"(?:\b(?:perf|rollout|step) (\d+):\s*)?(\{.*)$")
_OFF = 0.05  # of a step: identities hold so well
_FULLY = "rollout/fully_async/"


def is_mine(line: Line) -> bool:
    """Return whether a line is one of slime's or miles'."""
    return "'perf/" in line.text or f"'{_FULLY}" in line.text


def read(lines: list[Line], source: str) -> Measurements:
    """Return what the lines say; the two actors' lines of one rollout are put together."""
    steps = _steps(lines)
    everything = {key for step in steps for key in step.values}
    steps, notes = complete(steps, "perf/train_wait_time")
    rollout_s, waited_s = series(steps, "perf/rollout_time"), series(steps, "perf/train_wait_time")
    update_s = series(steps, "perf/train_time", "perf/actor_train_time")
    step_s = waited_s + update_s
    said_s = series(steps, "perf/step_time")
    if np.any(np.abs(said_s - step_s) > _OFF * step_s):
        line = steps[int(np.argmax(np.nan_to_num(np.abs(said_s - step_s))))].line
        raise LogError(f"line {line} of the log: perf/step_time is not perf/train_wait_time + perf/train_time")
    sync_s = np.minimum(np.nan_to_num(series(steps, "perf/update_weights_time")), waited_s)  # a part of the wait
    colocated = "perf/sleep_time" in everything or "perf/wake_up_time" in everything
    fully = any(key.startswith(_FULLY) for key in everything)
    mode = ASYNCHRONOUS
    if not fully:
        whole_rollout = (
            bool(np.mean((waited_s >= 0.9 * rollout_s)[~np.isnan(rollout_s)]) > 0.5)
            if not np.isnan(rollout_s).all()
            else False
        )
        mode = SYNCHRONOUS if colocated or whole_rollout else ONE_STEP_OFF
    stale = series(steps, f"{_FULLY}avg_staleness")
    return Measurements(
        system="miles" if fully else NAME,
        source=source,
        mode=mode,
        step_s=step_s,
        wait_s=waited_s - sync_s,
        update_s=update_s,
        sync_s=sync_s,
        staleness=stale,
        staleness_limit=1.0 if mode == ONE_STEP_OFF else None,
        queued=series(steps, f"{_FULLY}queue_size"),
        notes=notes + (_no_rollout_time(rollout_s) if mode == ONE_STEP_OFF else ()),
        unknown=(
            "how long single rollouts take: a lognormal spread of 0.5 is assumed (--jitter)",
            "how many rollouts a step has, and how many are generated side by side (--batch, --group, --in-flight)",
        ),
    )


def _no_rollout_time(rollout_s: np.ndarray) -> tuple[str, ...]:
    if not np.isnan(mean(rollout_s)):
        return ()
    return ("no perf/rollout_time in the log: taken for train_async.py, which is one step off (--mode says otherwise)",)


def _steps(lines: list[Line]) -> list[Step]:
    steps: dict[str, Step] = {}
    unnamed = 0
    for line in lines:
        found = _LINE.search(line.text) if is_mine(line) else None
        if found is None:
            continue
        try:
            values = ast.literal_eval(re.sub(r"\b(nan|inf)\b", "None", found[2].strip()))
        except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
            if line is lines[-1]:
                continue  # cut off as it was written
            raise LogError(f"line {line.number} of the log is not a dictionary of Python as slime prints it") from error
        if not isinstance(values, dict):
            raise LogError(f"line {line.number} of the log is not a dictionary of Python as slime prints it")
        name = found[1]
        if name is None:
            name, unnamed = f"unnamed {unnamed}", unnamed + 1
        steps.setdefault(name, Step(line.number, name)).add(line.number, values)
    if not steps:
        raise LogError("the log of slime has no whole line perf <rollout>: {...}")
    return list(steps.values())
