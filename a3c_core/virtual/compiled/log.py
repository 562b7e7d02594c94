"""What is written down, compiled: records and staleness into blocks, and the window that the schedule looks at."""

import numpy as np

from a3c_core.algorithms.values import annealed
from a3c_core.records.blocks import APPLIED, DROPPED
from a3c_core.schedules import Measured, may_change, wanted
from a3c_core.system.jit import inner
from a3c_core.virtual.compiled.state import MASTER


@inner
def enter(state, parcel, status, staleness, gradient_norm):
    """Enter one gradient that the master has dealt with, and make a record of the episode that it ends, if any."""
    numbers = state.numbers[0]
    _write_update(state, parcel, status, staleness, gradient_norm)
    numbers.updates += 1
    if status == APPLIED:
        numbers.applied += 1
    elif status == DROPPED:
        numbers.dropped += 1
    else:
        numbers.rejected += 1
    if parcel.ends:
        _enter_moment(state, parcel.arrived_s - parcel.started_s)
        _write_record(state, parcel, status, staleness, gradient_norm)
        numbers.records += 1
        numbers.episodes += 1


@inner
def _write_update(state, parcel, status, staleness, gradient_norm):
    numbers = state.numbers[0]
    update = state.updates[numbers.updates]
    update.update = numbers.applied + numbers.rejected + numbers.dropped
    update.worker = parcel.worker
    update.version_pulled = parcel.version_pulled
    update.version = numbers.version
    update.staleness = staleness
    update.queue_length = parcel.queue_length
    update.arrived_s = parcel.arrived_s
    update.applied_s = numbers.now_s
    taken_s = state.workers[MASTER].started_s if state.given[0].has_master else parcel.arrived_s
    update.service_s = 0.0 if status == DROPPED else numbers.now_s - taken_s
    update.gradient_norm = gradient_norm
    update.status = status
    update.target_age = np.nan if status == DROPPED else numbers.env_steps - numbers.target_set_at
    epsilon = annealed(parcel.final_epsilon, numbers.env_steps, state.given[0].epsilon_steps)
    update.epsilon = np.nan if status == DROPPED else epsilon


@inner
def _write_record(state, parcel, status, staleness, gradient_norm):
    numbers = state.numbers[0]
    record = state.records[numbers.records]
    record.episode = numbers.episodes
    record.worker = parcel.worker
    record.worker_episode = parcel.number
    record.workers_alive = numbers.alive
    record.score = parcel.score
    record.return_ = parcel.reward
    record.steps = parcel.steps
    record.truncated = parcel.truncated != 0
    record.started_s = parcel.started_s
    record.finished_s = parcel.arrived_s
    record.applied_s = numbers.now_s
    record.wall_s = np.nan
    record.version_pulled = parcel.version_pulled
    record.version_applied = numbers.version
    record.staleness = staleness
    record.queue_length = parcel.queue_length
    record.queue_wait_s = numbers.now_s - parcel.arrived_s
    record.master_busy_s = numbers.master_busy_s
    record.loss = parcel.loss
    record.entropy = parcel.entropy
    record.gradient_norm = gradient_norm
    record.status = status


@inner
def _enter_moment(state, episode_s):
    numbers, window = state.numbers[0], state.window
    moment = window[numbers.window_next]
    moment[0], moment[1], moment[2] = numbers.now_s, numbers.master_busy_s, episode_s
    numbers.window_next = (numbers.window_next + 1) % window.shape[0]
    numbers.window_filled = min(numbers.window_filled + 1, window.shape[0])


@inner
def target_workers(state):
    """Return how many workers the schedule wants now; a change is remembered."""
    numbers, rule, alive = state.numbers[0], state.given[0], state.numbers[0].alive
    since_change = numbers.episodes - numbers.changed_at
    if rule.start == rule.end or not may_change(rule, alive, since_change):
        return alive
    measured = Measured(alive, _mean_episode_s(state), since_change, _utilisation(state), numbers.waiting)
    target = wanted(rule, measured)
    if target != alive:
        numbers.changed_at = numbers.episodes
    return target


@inner
def _mean_episode_s(state):
    """Return the mean length of the window's episodes, added up from the oldest on; 0 before it is full."""
    window, oldest = state.window, state.numbers[0].window_next
    size = window.shape[0]
    if state.numbers[0].window_filled < size:
        return 0.0
    total_s = 0.0
    for i in range(size):
        total_s += window[(oldest + i) % size, 2]
    return total_s / size


@inner
def _utilisation(state):
    numbers, window = state.numbers[0], state.window
    size = window.shape[0]
    first, last = window[(numbers.window_next - numbers.window_filled) % size], window[numbers.window_next - 1]
    elapsed_s, busy_s = last[0] - first[0], last[1] - first[1]
    return min(1.0, busy_s / elapsed_s) if elapsed_s > 0 else 0.0
