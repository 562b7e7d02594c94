"""verl: the console's lines, or its JSONL file; synchronous, one step off, fully asynchronous, and the V1 trainer.

Formats: verl/utils/logger/aggregate_logger.py (console), verl/utils/tracking.py (JSONL),
verl/experimental/fully_async_policy (keys of the asynchronous trainer).
"""

import re

import numpy as np

from a3c.advise.measurements import ASYNCHRONOUS, ONE_STEP_OFF, SYNCHRONOUS, Durations, LogError, Measurements, mean
from a3c.advise.readers.text import Line, Step, complete, json_object, last, series, too_long, total, whole

NAME = "verl"
_LINE = re.compile(r"\bstep:\s*(\S+) - (.*)$")
_PAIR = re.compile(r"(\S+?):(\S+)$")
_WORK = tuple(
    f"timing_s/{name}"
    for name in ("reward", "old_log_prob", "ref", "values", "adv", "update_critic", "update_actor", "rollout_corr")
)
_SYNC = (
    "timing_s/timing_s/param_sync",
    "timing_s/param_sync",
    "timing_s/update_weights",
    "timing_s/sync_rollout_weights",
)


def is_mine(line: Line) -> bool:
    """Return whether a line is one of verl's."""
    found = _LINE.search(line.text)
    if found and "/" in found[2]:
        return True
    value = json_object(line.text) if '"data"' in line.text else None
    return value is not None and "step" in value and isinstance(value.get("data"), dict)


def read(lines: list[Line], source: str) -> Measurements:
    """Return what the lines say."""
    steps = _steps(lines)
    everything = {key for step in steps for key in step.values}
    if any(key.startswith("fully_async/") for key in everything):
        return _fully_async(steps, source)
    if "timing_s/wait_prev_gen" in everything:
        return _overlapping(steps, source, "timing_s/wait_prev_gen", ONE_STEP_OFF)
    if any(key.startswith(("training/off_policy/", "separate_async/")) for key in everything):
        return _overlapping(steps, source, "timing_s/gen", ASYNCHRONOUS)
    return _synchronous(steps, source)


def _steps(lines: list[Line]) -> list[Step]:
    """Return the steps; several lines of one step, as the asynchronous trainer writes them, are put together."""
    steps: dict[str, Step] = {}
    for line in lines:
        value = json_object(line.text)
        if value is not None and isinstance(value.get("data"), dict):
            name, pairs = str(value.get("step")), value["data"]
        elif found := _LINE.search(line.text):
            name, pairs = found[1], _pairs(line.number, found[2])
        else:
            continue
        steps.setdefault(name, Step(line.number, name)).add(line.number, pairs)
    timed = [step for step in steps.values() if any(key.startswith("timing_s/") for key in step.values)]
    if not timed:
        raise LogError("the log of verl has no timing_s/... in any step, so that it says nothing of times")
    return timed


def _pairs(number: int, text: str) -> dict[str, float]:
    pairs = {}
    for part in text.split(" - "):
        found = _PAIR.fullmatch(part.strip())
        if found is None:
            continue
        try:
            pairs[found[1]] = float(found[2])
        except ValueError as error:
            if found[1].startswith("timing_s/"):
                raise LogError(
                    f"line {number} of the log: {found[1][:80]} is {found[2][:40]!r}, which is no time"
                ) from error
    return pairs


def _synchronous(steps: list[Step], source: str) -> Measurements:
    """Return a synchronous run: generate, then train, on the same devices."""
    steps, notes = complete(steps, "timing_s/step", "timing_s/gen")
    step_s, wait_s, update_s = series(steps, "timing_s/step"), series(steps, "timing_s/gen"), total(steps, *_WORK)
    prefix = "timing_s/agent_loop/generate_sequences/"
    spread = None
    if any(f"{prefix}mean" in step for step in steps):
        spread = Durations(*(mean(series(steps, f"{prefix}{name}")) for name in ("mean", "min", "max")))
    return Measurements(
        system=NAME,
        source=source,
        mode=SYNCHRONOUS,
        step_s=step_s,
        wait_s=wait_s,
        update_s=update_s,
        sync_s=series(steps, *_SYNC),
        durations=spread,
        notes=(*notes, *too_long(steps, wait_s + np.nan_to_num(update_s), step_s)),
        unknown=(
            "how many rollouts a step has (--batch, --group)",
            *(() if spread else ("how long single rollouts take: a lognormal spread of 0.5 is assumed (--jitter)",)),
            "how generation and training change with the number of devices",
        ),
    )


def _overlapping(steps: list[Step], source: str, wait: str, mode: str) -> Measurements:
    """Return a run whose generation goes on beside training, and whose log has the trainer's wait."""
    steps, notes = complete(steps, "timing_s/step", wait)
    staleness = series(steps, "training/off_policy/trajectory_staleness/mean")
    return Measurements(
        system=NAME,
        source=source,
        mode=mode,
        step_s=series(steps, "timing_s/step"),
        wait_s=series(steps, wait),
        update_s=total(steps, *_WORK),
        sync_s=series(steps, *_SYNC),
        staleness=staleness,
        staleness_limit=1.0 if mode == ONE_STEP_OFF else None,
        notes=notes,
        unknown=(
            "how long single rollouts take: a lognormal spread of 0.5 is assumed (--jitter)",
            "how many rollouts a step has, and how many are generated side by side (--batch, --in-flight)",
            "how much faster generation could be where the trainer does not wait for it",
        ),
    )


def _fully_async(steps: list[Step], source: str) -> Measurements:
    """Return a fully asynchronous run; timing_s/gen is the trainer's wait, summed up over the steps of one sync."""
    steps, notes = complete(steps, "timing_s/step", "timing_s/gen")
    prefix = "fully_async/"
    sync_s = np.nan_to_num(series(steps, *_SYNC))
    step_s = series(steps, "timing_s/step")
    required = last(steps, f"{prefix}static/required_samples")
    at_most = last(steps, f"{prefix}static/max_required_samples")
    threshold = last(steps, f"{prefix}static/staleness_threshold")
    updates = 1
    if required and at_most and threshold is not None:
        updates = max(1, round(at_most / (required * (1.0 + threshold))))
    times = f"{prefix}processing_time/"
    known = {name: mean(series(steps, f"{times}{name}")) for name in ("avg", "min", "max", "tp50", "tp95")}
    spread = None if np.isnan(known["avg"]) else Durations(*known.values())
    slots = whole(last(steps, f"{prefix}static/max_concurrent_samples"))
    generated = last(steps, f"{prefix}count/total_generated_samples")
    dropped = last(steps, f"{prefix}count/dropped_stale_samples")
    partial = last(steps, f"{prefix}partial/total_partial_num")
    idle = None
    if spread and slots and required:  # by Little's law: those at work are their rate times their duration
        at_work = updates * required / mean(step_s + sync_s) * spread.mean_s
        idle = max(0.0, 1.0 - at_work / slots)
    return Measurements(
        system=NAME,
        source=source,
        mode=ASYNCHRONOUS,
        step_s=step_s + sync_s,
        wait_s=series(steps, "timing_s/gen"),
        update_s=total(steps, *_WORK),
        sync_s=sync_s,
        durations=spread,
        unit="sample",
        batch=whole(required),
        updates_a_step=updates,
        slots=slots,
        staleness_limit=threshold,
        partial=None if partial is None else partial > 0,
        queued=series(steps, f"{prefix}monitor/queue/mq_queue_size"),
        dropped=dropped / generated if dropped is not None and generated else None,
        generators_idle=idle,
        notes=(*notes, *too_long(steps, series(steps, "timing_s/gen") + np.nan_to_num(total(steps, *_WORK)), step_s)),
        unknown=(
            *(() if spread else ("how long single samples take: a lognormal spread of 0.5 is assumed (--jitter)",)),
            *(() if slots else ("how many samples are generated side by side (--in-flight)",)),
            "how much faster generation could be where the trainer does not wait for it",
        ),
    )
