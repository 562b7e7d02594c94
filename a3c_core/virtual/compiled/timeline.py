"""The virtual clock, compiled: a heap of places by the time of their next event, and cores that all share."""

import numpy as np

from a3c_core.machine.jit import inner
from a3c_core.streams import write_words
from a3c_core.virtual import costs
from a3c_core.virtual.compiled.state import MASTER

BEGIN, CORE, PLAYED, UPDATED = np.arange(4)  # kinds of events; the last two end some work on a core


@inner
def work(state, seconds, place, kind, count):
    """Let `kind` happen when `place` has had a core for `seconds`; return how long that takes as things are now."""
    numbers = state.numbers[0]
    taken_s = seconds * (1.0 if _goes_first(state, place) else numbers.crowding)
    if state.given[0].jitters:
        taken_s = _jittered(state, taken_s, state.workers[place].id + 1, count)
    at(state, numbers.now_s + taken_s, place, kind)
    _count_core(numbers, place, 1)
    return taken_s


@inner
def at(state, time_s, place, kind):
    """Let `kind` happen to `place` at `time_s`, without a core."""
    numbers = state.numbers[0]
    state.times[place] = time_s
    state.workers[place].kind = kind
    state.heap[numbers.events] = place
    numbers.events += 1
    _rise(state, numbers.events - 1)


@inner
def next_place(state):
    """Advance the clock to the next event; return whose it is."""
    numbers, heap = state.numbers[0], state.heap
    place = heap[0]
    numbers.now_s = state.times[place]
    numbers.events -= 1
    heap[0] = heap[numbers.events]
    _sink(state, 0)
    if state.workers[place].kind >= PLAYED:
        _count_core(numbers, place, -1)
    return place


@inner
def share_cores(state):
    """Stretch or shorten what is under way if more or fewer share the cores than before."""
    numbers = state.numbers[0]
    crowding = costs.crowding(state.given[0], numbers.workers_on_core, numbers.master_on_core)
    if crowding == numbers.crowding:
        return
    ratio = crowding / numbers.crowding
    numbers.crowding = crowding
    for i in range(numbers.events):
        place = state.heap[i]
        if state.workers[place].kind >= PLAYED and not _goes_first(state, place):
            change_s = (state.times[place] - numbers.now_s) * (ratio - 1.0)
            state.times[place] += change_s
            if place == MASTER:
                numbers.master_busy_s += change_s
    for i in range(numbers.events // 2 - 1, -1, -1):
        _sink(state, i)


@inner
def _goes_first(state, place):
    return place == MASTER and state.given[0].master_first != 0.0


@inner
def _count_core(numbers, place, change):
    if place == MASTER:
        numbers.master_on_core = change > 0
    else:
        numbers.workers_on_core += change


@inner
def _jittered(state, seconds, who, count):
    entropy = state.entropy
    entropy[0] = state.given[0].seed
    entropy[4], entropy[5], entropy[6] = who, count, costs.JITTER_KEY
    write_words(entropy, state.words)
    return costs.jittered(seconds, state.given[0].jitters_exponentially, state.given[0].jitter_variance, state.words[0])


@inner
def _comes_before(state, place, other):
    """Return which of two events is first; at the same instant the master's is, then workers' by their number."""
    if state.times[place] != state.times[other]:
        return state.times[place] < state.times[other]
    return state.workers[place].id < state.workers[other].id


@inner
def _rise(state, i):
    """Move the heap's entry `i` up to where it belongs."""
    heap = state.heap
    place = heap[i]
    while i > 0:
        parent = (i - 1) // 2
        if not _comes_before(state, place, heap[parent]):
            break
        heap[i] = heap[parent]
        i = parent
    heap[i] = place


@inner
def _sink(state, i):
    """Move the heap's entry `i` down to where it belongs."""
    heap, size = state.heap, state.numbers[0].events
    place = heap[i]
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and _comes_before(state, heap[child + 1], heap[child]):
            child += 1
        if not _comes_before(state, heap[child], place):
            break
        heap[i] = heap[child]
        i = child
    heap[i] = place
