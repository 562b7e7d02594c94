"""RLlib, new stack: Tune's result.json (a JSON line an iteration) or progress.csv, nested keys joined by /.

Keys: rllib/utils/metrics/__init__.py, rllib/algorithms/impala, rllib/core/learner of ray-project/ray.
"""

import csv

import numpy as np

from a3c.advise.measurements import ASYNCHRONOUS, SYNCHRONOUS, LogError, Measurements
from a3c.advise.readers.text import Line, Step, complete, flat, json_object, last, series, whole

NAME = "rllib"
_LEARNERS = ("learners/__all_modules__/", "learners/default_policy/", "learner_group/learners/__all_modules__/")


def _keys(name: str) -> tuple[str, ...]:
    return tuple(f"{place}{name}" for place in _LEARNERS)


_WAIT = _keys("learner_thread_in_queue_wait_timer")
_THREAD = (*_keys("learner_thread_update_timer"), *_keys("update_timer"))
_STALE = _keys("diff_num_grad_updates_vs_sampler_policy")


def is_mine(line: Line) -> bool:
    """Return whether a line is one of RLlib's."""
    if line.text.lstrip().startswith("{"):
        return '"training_iteration"' in line.text and '"timers"' in line.text and json_object(line.text) is not None
    return "training_iteration" in line.text and "timers/" in line.text


def read(lines: list[Line], source: str) -> Measurements:
    """Return what the iterations say."""
    steps = _steps(lines)
    if any(step.get(*_WAIT) >= 0 for step in steps):
        return _asynchronous(steps, source)
    steps, notes = complete(steps, "timers/env_runner_sampling_timer", "timers/learner_update_timer")
    gen_s, update_s = series(steps, "timers/env_runner_sampling_timer"), series(steps, "timers/learner_update_timer")
    sync_s = np.nan_to_num(series(steps, "timers/synch_weights", "timers/synch_env_connectors"))
    return Measurements(
        system=NAME,
        source=source,
        mode=SYNCHRONOUS,
        step_s=gen_s + update_s + sync_s,
        wait_s=gen_s,
        update_s=update_s,
        sync_s=sync_s,
        slots=whole(last(steps, "config/num_env_runners")),
        batch=whole(last(steps, "config/num_env_runners")),
        staleness=series(steps, *_STALE),
        notes=notes,
        unknown=("how long the rollout of a single EnvRunner takes: a lognormal spread of 0.5 is assumed (--jitter)",),
    )


def _asynchronous(steps: list[Step], source: str) -> Measurements:
    """Return a run of IMPALA or APPO: the learner thread waits for its queue, then updates."""
    kept = [step for step in steps if step.get(*_WAIT) >= 0 and step.get(*_THREAD) > 0]
    if not kept:
        raise LogError("no iteration of the log has learner_thread_in_queue_wait_timer and learner_thread_update_timer")
    wait_s, update_s = series(kept, *_WAIT), series(kept, *_THREAD)
    dropped = last(kept, *_keys("learner_thread_env_steps_dropped"), "aggregator_actors/num_env_steps_dropped_lifetime")
    sampled = last(kept, "env_runners/num_env_steps_sampled_lifetime", "num_env_steps_sampled_lifetime")
    return Measurements(
        system=NAME,
        source=source,
        mode=ASYNCHRONOUS,
        step_s=wait_s + update_s,
        wait_s=wait_s,
        update_s=update_s,
        slots=whole(last(kept, "config/num_env_runners")),
        staleness=series(kept, *_STALE),
        queued=series(kept, *_keys("learner_thread_in_queue_size"), *_keys("queue_size_learner_thread_queue")),
        dropped=dropped / sampled if dropped is not None and sampled else None,
        unknown=(
            "how long the rollout of a single EnvRunner takes: a lognormal spread of 0.5 is assumed (--jitter)",
            "how many rollouts an update takes (--batch)",
        ),
    )


def _steps(lines: list[Line]) -> list[Step]:
    """Return the iterations."""
    steps: list[Step] = []
    if not lines[0].text.lstrip().startswith("{"):
        return _csv_steps(lines)
    for place, line in enumerate(lines):
        value = json_object(line.text)
        if value is None:
            if place == len(lines) - 1 and steps:
                continue  # cut off as it was written
            raise LogError(f"line {line.number} of the log is not a JSON object as Tune writes it")
        step = Step(line.number, str(value.get("training_iteration")))
        step.add(line.number, flat(value))
        steps.append(step)
    return steps


def _csv_steps(lines: list[Line]) -> list[Step]:
    names = next(csv.reader([lines[0].text]))
    steps: list[Step] = []
    for line in lines[1:]:
        try:
            fields = next(csv.reader([line.text]))
        except csv.Error as error:
            raise LogError(f"line {line.number} of the log is not CSV: {error}") from error
        if len(fields) != len(names):
            if line is lines[-1] and steps:
                continue  # cut off as it was written
            raise LogError(f"line {line.number} of the log has {len(fields)} fields, and {len(names)} are needed")
        step = Step(line.number, str(line.number))
        step.add(
            line.number,
            {name: value for name, text in zip(names, fields, strict=True) if (value := _number(text)) is not None},
        )
        steps.append(step)
    if not steps:
        raise LogError("the log of RLlib has a heading and no iteration")
    return steps


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
