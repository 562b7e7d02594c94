"""The master, compiled: its queue, its updates, and the loop over all events. The twin of topologies/master.py."""

import numpy as np

from a3c_core.jit import copy, exact, inner
from a3c_core.learners.optimizers import update
from a3c_core.topologies.parcel_queue import BLOCK
from a3c_core.virtual import costs
from a3c_core.virtual.compiled import timeline, workers
from a3c_core.virtual.compiled.state import APPLIED, BLOCK_RECORDS, DROPPED, MASTER, NOBODY, REJECTED

NOTHING, RECORDS_TAKEN, TAIL_SPILLED, HEAD_REFILLED, MORE_ROWS, MORE_PLACES = range(6)  # needed of Python


@exact
def advance(state, player, events):
    """Let up to `events` events happen and return how many did, and what they need of Python before they can go on.

    With `events` = 0 the run's first workers join. At its end, what still waits is written down as dropped.
    """
    numbers, done = state.numbers[0], 0
    if numbers.next_id == 0:
        workers.add(state, state.given[0].start, 0.0)
    need = _need(state)
    while need == NOTHING and done < events and numbers.events > 0 and not numbers.overloaded:
        _let_happen(state, timeline.next_place(state))
        place = _next_to_begin(state)
        while place != NOBODY:
            workers.begin(state, player, place)
            place = _next_to_begin(state)
        timeline.share_cores(state)
        done += 1
        need = _need(state)
    while need == NOTHING and done < events and numbers.waiting > 0:
        _take(state)
        workers.settle(state, state.parcels[MASTER], DROPPED, 0, np.nan)
        need = _need(state)
    return done, need


@inner
def _need(state):
    """Return for what the next event may find too little room."""
    numbers = state.numbers[0]
    if numbers.updates == BLOCK_RECORDS:  # every record comes with an update
        return RECORDS_TAKEN
    if numbers.tail_filled >= BLOCK:
        return TAIL_SPILLED
    if numbers.head_read == numbers.head_filled and numbers.spilled > 0:
        return HEAD_REFILLED
    if state.given[0].has_mailboxes and numbers.rows < 2:  # one to publish, one for workers that join
        return MORE_ROWS
    return MORE_PLACES if numbers.places < state.given[0].end - numbers.alive else NOTHING


@inner
def _let_happen(state, place):
    """Let the event of `place` happen, but for the play of those who begin in it: see `_next_to_begin`."""
    numbers = state.numbers[0]
    numbers.kind = state.workers[place].kind
    if numbers.kind == timeline.PLAYED:
        _played(state, place)
    elif numbers.kind == timeline.UPDATED:
        _updated(state)
    elif numbers.kind == timeline.BEGIN:
        numbers.first = place
    else:
        workers.want_core(state, place)


@inner
def _next_to_begin(state):
    """Return who plays next within this event, or nobody. The master takes up its next update in between.

    So there is one place in the code where workers begin: what they do is large, and would be compiled at each.
    """
    numbers = state.numbers[0]
    if numbers.first == NOBODY and numbers.serving == 0 and numbers.waiting > 0:
        _begin_update(state)
    if numbers.first != NOBODY:
        place, numbers.first = numbers.first, NOBODY
    else:
        place, numbers.last = numbers.last, NOBODY
    return place


@inner
def _played(state, place):
    """Let a worker's parcel reach the master's queue, or find it full."""
    numbers, parcel = state.numbers[0], state.parcels[place]
    numbers.sent += 1
    numbers.last_arrival_s = numbers.now_s
    parcel.arrived_s, parcel.queue_length = numbers.now_s, numbers.waiting
    if numbers.waiting < state.given[0].queue_size:
        numbers.last = _enqueue(state, place)
    elif state.given[0].is_bounded:
        state.lists[(numbers.blocked_first + numbers.blocked) % state.lists.size].blocked = place
        numbers.blocked += 1
        state.workers[place].waits += 1
    else:
        workers.settle(state, parcel, DROPPED, 0, np.nan)
        numbers.first = place


@inner
def _enqueue(state, place):
    """Put a worker's parcel and gradient at the queue's end; return the worker, unless it waits for the update."""
    numbers = state.numbers[0]
    tail, end = 1 - numbers.head, numbers.tail_filled
    state.queue_parcels[tail, end] = state.parcels[place]
    copy(state.gradients[place], state.queue_gradients[tail, end])
    numbers.tail_filled += 1
    numbers.waiting += 1
    numbers.queue_peak = max(numbers.queue_peak, numbers.waiting)
    numbers.overloaded = numbers.waiting > state.given[0].overload_limit
    if not state.given[0].waits_for_apply:
        return place
    state.workers[place].waits += 1
    return NOBODY


@inner
def _take(state):
    """Move the oldest parcel and its gradient from the queue to the master's own."""
    numbers = state.numbers[0]
    if numbers.head_read == numbers.head_filled:
        numbers.head = 1 - numbers.head
        numbers.head_read, numbers.head_filled, numbers.tail_filled = 0, numbers.tail_filled, 0
    state.parcels[MASTER] = state.queue_parcels[numbers.head, numbers.head_read]
    copy(state.queue_gradients[numbers.head, numbers.head_read], state.gradients[MASTER])
    numbers.head_read += 1
    numbers.waiting -= 1


@inner
def _begin_update(state):
    """Let the master begin its next update, which may make room for the gradient of a worker that waits."""
    numbers = state.numbers[0]
    _take(state)
    numbers.serving = 1
    state.workers[MASTER].started_s = numbers.now_s
    is_idle = 1 if numbers.kind == timeline.PLAYED else 0
    seconds = costs.service_s(state.given[0], numbers.empty, is_idle, 1)
    served = numbers.applied + numbers.rejected
    numbers.master_busy_s += timeline.work(state, seconds, MASTER, timeline.UPDATED, served)
    if numbers.blocked > 0:
        place = state.lists[numbers.blocked_first].blocked
        numbers.blocked_first = (numbers.blocked_first + 1) % state.lists.size
        numbers.blocked -= 1
        numbers.first = _enqueue(state, place)


@inner
def _updated(state):
    """Apply the gradient and publish what comes of it."""
    numbers, given, parcel = state.numbers[0], state.given[0], state.parcels[MASTER]
    numbers.serving = 0
    staleness = numbers.version - parcel.version_pulled
    rate = given.learning_rate * max(0.0, 1.0 - numbers.version / given.anneal_over)
    gradient = state.gradients[MASTER]
    norm = update(
        given.update_rule, state.parameters, gradient, state.averages, rate, given.clip_norm, numbers.version + 1
    )
    applied = np.isfinite(norm)
    numbers.version += applied
    workers.publish(state)
    workers.settle(state, parcel, APPLIED if applied else REJECTED, staleness, norm)
    if given.waits_for_apply:
        numbers.first = parcel.place
