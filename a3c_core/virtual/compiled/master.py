"""The master, compiled: its queue, its updates, and the loop over all events. The twin of topologies/master.py."""

import numpy as np

from a3c_core.learners.optimizers import update
from a3c_core.machine.jit import exact, inner
from a3c_core.virtual import costs
from a3c_core.virtual.compiled import timeline, workers
from a3c_core.virtual.compiled.state import APPLIED, BLOCK_RECORDS, DROPPED, MASTER, NOBODY, REJECTED

NOTHING, RECORDS_TAKEN, QUEUE_SPILLED, QUEUE_REFILLED, MORE_ROOM = range(5)  # needed of Python
_SLOTS_AT_ONCE = 3  # that an event may take: as many workers may begin in it


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
        workers.settle(state, _take(state), DROPPED, 0, np.nan)
        need = _need(state)
    return done, need


@inner
def _need(state):
    """Return for what the next event may find too little room."""
    numbers = state.numbers[0]
    if numbers.updates == BLOCK_RECORDS:  # every record comes with an update
        return RECORDS_TAKEN
    if numbers.slots < _SLOTS_AT_ONCE:
        return QUEUE_SPILLED
    if numbers.head == 0 and numbers.spilled > 0:
        return QUEUE_REFILLED
    return MORE_ROOM if numbers.places < state.given[0].end - numbers.alive else NOTHING


@inner
def _let_happen(state, place):
    """Let the event of `place` happen, but for the play of those who begin in it: see `_next_to_begin`."""
    numbers = state.numbers[0]
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
    if numbers.first == NOBODY and numbers.serving == NOBODY and numbers.waiting > 0:
        _begin_update(state)
    if numbers.first != NOBODY:
        place, numbers.first = numbers.first, NOBODY
    else:
        place, numbers.last = numbers.last, NOBODY
    return place


@inner
def _played(state, place):
    """Let a worker's parcel reach the master's queue, or find it full."""
    numbers, worker = state.numbers[0], state.workers[place]
    parcel = state.parcels[worker.slot]
    numbers.sent += 1
    numbers.last_arrival_s = numbers.now_s
    parcel.arrived_s, parcel.queue_length = numbers.now_s, numbers.waiting
    if numbers.waiting < state.given[0].queue_size:
        numbers.last = _enqueue(state, place)
    elif state.given[0].is_bounded:
        state.lists[(numbers.blocked_first + numbers.blocked) % state.lists.size].blocked = place
        numbers.blocked += 1
        worker.waits += 1
    else:
        workers.settle(state, worker.slot, DROPPED, 0, np.nan)
        numbers.first = place


# The queue: a ring of slots. First its oldest (head), then, where not all fit into memory, its newest (tail); those
# between the two are in a file.


@inner
def _enqueue(state, place):
    """Put a worker's parcel at the queue's end; return the worker, unless it waits for the update."""
    numbers, worker = state.numbers[0], state.workers[place]
    state.slots[(numbers.queue_first + numbers.head + numbers.tail) % state.slots.size].queued = worker.slot
    if numbers.spilled > 0:
        numbers.tail += 1
    else:
        numbers.head += 1
    numbers.waiting += 1
    numbers.queue_peak = max(numbers.queue_peak, numbers.waiting)
    numbers.overloaded = numbers.waiting > state.given[0].overload_limit
    if not state.given[0].waits_for_apply:
        return place
    worker.waits += 1
    return NOBODY


@inner
def _take(state):
    """Take the oldest parcel from the queue; return its slot."""
    numbers = state.numbers[0]
    slot = state.slots[numbers.queue_first].queued
    numbers.queue_first = (numbers.queue_first + 1) % state.slots.size
    numbers.head -= 1
    numbers.waiting -= 1
    return slot


@inner
def _begin_update(state):
    """Let the master begin its next update, which may make room for the gradient of a worker that waits."""
    numbers = state.numbers[0]
    numbers.serving = _take(state)
    state.workers[MASTER].started_s = numbers.now_s
    is_idle = 1 if numbers.kind == timeline.PLAYED else 0
    seconds = costs.service_s(state.given[0], numbers.empty, is_idle, 1)
    ended = 1 if state.parcels[numbers.serving].ends else 0
    seconds += costs.bookkeeping_s(state.given[0], numbers.written_up, ended)
    numbers.written_up += ended
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
    numbers, slot = state.numbers[0], state.numbers[0].serving
    parcel = state.parcels[slot]
    numbers.serving = NOBODY
    staleness = numbers.version - parcel.version_pulled
    norm = _apply(state, state.gradients[slot])
    workers.publish(state)
    workers.settle(state, slot, APPLIED if np.isfinite(norm) else REJECTED, staleness, norm)
    if state.given[0].waits_for_apply:
        numbers.first = parcel.place


@inner
def _apply(state, gradient):
    """Apply a gradient, unless it is not finite, which its norm then says; return that."""
    given, numbers = state.given[0], state.numbers[0]
    rate = given.learning_rate * max(0.0, 1.0 - numbers.version / given.anneal_over)
    updates = numbers.version + 1
    norm = update(given.update_rule, state.parameters, gradient, state.averages, rate, given.clip_norm, updates)
    numbers.version += np.isfinite(norm)
    return norm
