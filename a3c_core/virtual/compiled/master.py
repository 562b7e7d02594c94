"""The master, compiled: its queue, its updates, and the loop over all events. The twin of topologies/master.py.

Where there is none, workers apply their own gradients: the twin of topologies/hogwild.py.
"""

import numpy as np

from a3c_core.optimizers import rate_at, update
from a3c_core.records.blocks import APPLIED, BLOCK_RECORDS, DROPPED, REJECTED
from a3c_core.system.jit import copy, exact, inner
from a3c_core.virtual import costs
from a3c_core.virtual.compiled import timeline, workers
from a3c_core.virtual.compiled.state import MASTER, NOBODY

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
    if numbers.updates + state.given[0].batch > BLOCK_RECORDS:  # every record comes with an update
        return RECORDS_TAKEN
    if numbers.slots < _SLOTS_AT_ONCE:
        return QUEUE_SPILLED
    if numbers.head < state.given[0].batch and numbers.spilled > 0:
        return QUEUE_REFILLED
    return MORE_ROOM if numbers.places < state.given[0].end - numbers.alive else NOTHING


@inner
def _let_happen(state, place):
    """Let the event of `place` happen, but for the play of those who begin in it: see `_next_to_begin`."""
    numbers = state.numbers[0]
    if numbers.kind == timeline.PLAYED:
        _played(state, place)
    elif numbers.kind == timeline.UPDATED and place == MASTER:
        _updated(state)
    elif numbers.kind == timeline.UPDATED:
        _applied_own(state, place)
    elif numbers.kind == timeline.BEGIN:
        _let_begin(state, place)
    else:
        workers.want_core(state, place)


@inner
def _next_to_begin(state):
    """Return who plays next within this event, or nobody. The master takes up its next update in between.

    So there is one place in the code where workers begin: what they do is large, and would be compiled at each.
    """
    numbers = state.numbers[0]
    if numbers.begun == numbers.to_begin:
        numbers.begun = numbers.to_begin = 0
        taken = 0 if numbers.serving > 0 else _may_take(state)
        if taken > 0:
            _begin_update(state, taken)
    if numbers.begun < numbers.to_begin:
        numbers.begun += 1
        return state.lists[numbers.begun - 1].begins
    place, numbers.last = numbers.last, NOBODY
    return place


@inner
def _let_begin(state, place):
    """Let a worker play within this event, after those that were let before."""
    numbers = state.numbers[0]
    state.lists[numbers.to_begin].begins = place
    numbers.to_begin += 1


@inner
def _played(state, place):
    """Let a worker's parcel reach the master's queue, or find it full."""
    numbers, worker = state.numbers[0], state.workers[place]
    parcel = state.parcels[worker.slot]
    numbers.sent += 1
    numbers.last_arrival_s = numbers.now_s
    parcel.arrived_s, parcel.queue_length = numbers.now_s, numbers.waiting
    if not state.given[0].has_master:
        timeline.work(state, state.given[0].slowdown * state.given[0].update_s, place, timeline.UPDATED, 0)
    elif numbers.waiting < state.given[0].queue_size:
        numbers.last = _enqueue(state, place)
    elif state.given[0].is_bounded:
        state.lists[(numbers.blocked_first + numbers.blocked) % state.lists.size].blocked = place
        numbers.blocked += 1
        worker.waits += 1
    else:
        workers.settle(state, worker.slot, DROPPED, 0, np.nan)
        _let_begin(state, place)


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
def _may_take(state):
    """Return of how many waiting parcels the master makes an update; it holds nothing when nothing more will come."""
    numbers = state.numbers[0]
    is_alone = numbers.places == state.lists.size - 1  # all but the master's are free
    held = 0 if is_alone else state.given[0].hold
    return min(max(0, numbers.waiting - held), state.given[0].batch)


@inner
def _begin_update(state, taken):
    """Let the master begin its next update, which may make room for the gradients of workers that wait."""
    numbers = state.numbers[0]
    fresh, ended = 0, 0
    for i in range(taken):
        state.slots[i].taken = _take(state)
        parcel = state.parcels[state.slots[i].taken]
        fresh += not _is_too_old(state, parcel)
        ended += 1 if parcel.ends else 0
    numbers.serving = taken
    state.workers[MASTER].started_s = numbers.now_s
    is_idle = 0 if numbers.kind == timeline.UPDATED else 1
    if fresh > 0:
        seconds = costs.service_s(state.given[0], numbers.empty, is_idle, taken)
        seconds += costs.bookkeeping_s(state.given[0], numbers.written_up, ended)
        numbers.written_up += ended
    else:
        seconds = costs.discard_s(state.given[0], is_idle, taken)
    served = numbers.applied + numbers.rejected
    numbers.master_busy_s += timeline.work(state, seconds, MASTER, timeline.UPDATED, served)
    for _ in range(min(taken, numbers.blocked)):
        place = state.lists[numbers.blocked_first].blocked
        numbers.blocked_first = (numbers.blocked_first + 1) % state.lists.size
        numbers.blocked -= 1
        if _enqueue(state, place) != NOBODY:
            _let_begin(state, place)


@inner
def _is_too_old(state, parcel):
    """Return whether a gradient is to be dropped."""
    return state.numbers[0].version - parcel.version_pulled > state.given[0].bound


@inner
def _updated(state):
    """Apply the gradients that were taken as one update, without those that are too old; publish what comes of it."""
    numbers = state.numbers[0]
    taken, numbers.serving, version = numbers.serving, 0, numbers.version
    total, rate = _combined(state, taken)
    norm = np.nan
    if total != NOBODY:
        norm = _apply(state, state.gradients[total], rate)
        workers.publish(state)
    for i in range(taken):
        slot = state.slots[i].taken
        parcel = state.parcels[slot]
        staleness = version - parcel.version_pulled
        if staleness > state.given[0].bound:
            workers.settle(state, slot, DROPPED, 0, np.nan)
        else:
            workers.settle(state, slot, APPLIED if np.isfinite(norm) else REJECTED, staleness, norm)
        if state.given[0].waits_for_apply:
            _let_begin(state, parcel.place)


@inner
def _applied_own(state, place):
    """Let a worker's gradient change the parameters that all share, where there is no master: see hogwild.py."""
    numbers, slot = state.numbers[0], state.workers[place].slot
    staleness = numbers.version - state.parcels[slot].version_pulled
    norm = _apply(state, state.gradients[slot], 1.0)
    workers.settle(state, slot, APPLIED if np.isfinite(norm) else REJECTED, staleness, norm)
    _let_begin(state, place)


@inner
def _combined(state, taken):
    """Return the slot whose gradient stands for all that are not too old, or nobody's; and its share of the rate."""
    given, count, total, rate = state.given[0], 0, NOBODY, 0.0
    for i in range(taken):
        slot = state.slots[i].taken
        if _is_too_old(state, state.parcels[slot]):
            continue
        staleness = state.numbers[0].version - state.parcels[slot].version_pulled
        rate += 1.0 / max(1, staleness) if given.divides_by_staleness else 1.0
        count += 1
        if total == NOBODY:
            total = slot
        else:
            _add(state.gradients[slot], state.gradients[total])
    if count > 1 and given.takes_mean:
        _divide(state.gradients[total], np.float32(count))
    return total, rate / max(1, count)


@inner
def _add(gradient, total):
    for i in range(total.size):
        total[i] += gradient[i]


@inner
def _divide(total, count):
    for i in range(total.size):
        total[i] /= count


@inner
def _apply(state, gradient, rate):
    """Apply a gradient at a share of the rate, unless it is not finite, which its norm then says; return that."""
    given, numbers = state.given[0], state.numbers[0]
    rate = rate_at(given.learning_rate, given.anneal, _share(state)) * rate
    updates = numbers.version + 1
    norm = update(
        given.update_rule,
        state.published[: gradient.size],
        gradient,
        state.averages,
        rate,
        given.clip_norm,
        given.epsilon,
        given.decay,
        updates,
    )
    numbers.version += np.isfinite(norm)
    if given.target_every > 0:
        _follow(state, gradient.size)
    return norm


@inner
def _share(state):
    """Return how far the run has come: see Topology.progress."""
    numbers, given = state.numbers[0], state.given[0]
    if given.env_steps_in_all > 0:
        return min(1.0, numbers.env_steps / given.env_steps_in_all)
    return numbers.episodes / given.episodes_in_all


@inner
def _follow(state, size):
    """Set the target network anew if the run's env steps have passed another multiple: see learners/target.py."""
    numbers, every = state.numbers[0], state.given[0].target_every
    if numbers.env_steps // every > numbers.target_set_at // every:
        copy(state.published[:size], state.published[size:])
        numbers.target_set_at = numbers.env_steps
