"""The virtual clock, compiled: a heap of places by the time of their next event, and cores that all share."""

import numpy as np

from a3c_core.streams import write_words
from a3c_core.system.jit import inner
from a3c_core.virtual import costs
from a3c_core.virtual.compiled.state import MASTER

BEGIN, CORE, PLAYED, UPDATED = np.arange(4)  # kinds of events; the last two end some work on a core
_KINDS = 4  # an entry of the heap is its place times this, plus its kind


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
    numbers.events += 1
    _rise(state.times, state.heap, state.workers, numbers.events - 1, time_s, _KINDS * place + kind)


@inner
def next_place(state):
    """Advance the clock to the next event, and note its kind; return whose it is."""
    numbers, times, heap = state.numbers[0], state.times, state.heap
    place, numbers.kind = heap[0] // _KINDS, heap[0] % _KINDS
    numbers.now_s = times[0]
    numbers.events -= 1
    _sink(times, heap, state.workers, numbers.events, 0, times[numbers.events], heap[numbers.events])
    if numbers.kind >= PLAYED:
        _count_core(numbers, place, -1)
    return place


@inner
def share_cores(state):
    """Stretch or shorten what is under way if more or fewer share the cores than before."""
    numbers, times, heap, workers = state.numbers[0], state.times, state.heap, state.workers
    crowding = costs.crowding(state.given[0], numbers.workers_on_core, numbers.master_on_core)
    if crowding == numbers.crowding:
        return
    ratio = crowding / numbers.crowding
    numbers.crowding = crowding
    numbers.master_busy_s += _stretch(times, heap, numbers.events, numbers.now_s, ratio, _goes_first(state, MASTER))
    if not _is_ordered(times, heap, workers, numbers.events):
        for i in range(numbers.events // 2 - 1, -1, -1):
            _sink(times, heap, workers, numbers.events, i, times[i], heap[i])


@inner
def _stretch(times, heap, events, now_s, ratio, but_master):
    """Let all work that is under way take `ratio` times as long from now on; return how much longer the master's."""
    master_s = 0.0
    for i in range(events):
        place = heap[i] // _KINDS
        if heap[i] % _KINDS >= PLAYED and not (but_master and place == MASTER):
            change_s = (times[i] - now_s) * (ratio - 1.0)
            times[i] += change_s
            if place == MASTER:
                master_s = change_s
    return master_s


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
    write_words(entropy[:7], state.words)
    return costs.jittered(seconds, state.given[0].jitters_exponentially, state.given[0].jitter_variance, state.words[0])


# The heap: events in the order of their time, with the arrays themselves as arguments, since these are called often


@inner
def _comes_before(workers, time_s, event, other_s, other):
    """Return which of two events is first; at the same instant the master's is, then workers' by their number."""
    if time_s != other_s:
        return time_s < other_s
    return workers[event // _KINDS].id < workers[other // _KINDS].id


@inner
def _is_ordered(times, heap, workers, size):
    """Return whether the heap is one: what is stretched alike mostly keeps its order."""
    for i in range(1, size):
        parent = (i - 1) // 2
        if _comes_before(workers, times[i], heap[i], times[parent], heap[parent]):
            return False
    return True


@inner
def _rise(times, heap, workers, i, time_s, event):
    """Put an event where it belongs, from the heap's entry `i` upwards."""
    while i > 0:
        parent = (i - 1) // 2
        if not _comes_before(workers, time_s, event, times[parent], heap[parent]):
            break
        times[i], heap[i] = times[parent], heap[parent]
        i = parent
    times[i], heap[i] = time_s, event


@inner
def _sink(times, heap, workers, size, i, time_s, event):
    """Put an event where it belongs, from the heap's entry `i` downwards."""
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and _comes_before(workers, times[child + 1], heap[child + 1], times[child], heap[child]):
            child += 1
        if not _comes_before(workers, times[child], heap[child], time_s, event):
            break
        times[i], heap[i] = times[child], heap[child]
        i = child
    times[i], heap[i] = time_s, event
