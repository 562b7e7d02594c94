"""The master's work on all that waits in the workers' rings, as one compiled call: receive, apply, publish, record."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from a3c_core.models.parameters import Vector
from a3c_core.optimizers import rate_at, update
from a3c_core.real.shared_memory import ACCEPTED, GRANTED
from a3c_core.real.worker_manager import QuotaCounts, end_and_grant
from a3c_core.real.worker_pool import NO_BELL
from a3c_core.records.blocks import APPLIED, BLOCK_RECORDS, RECORD, REJECTED, UPDATE, Records
from a3c_core.system.jit import copy, exact, inner
from a3c_core.system.system_calls import Desk, nap, new_desk, now_s, ordered, ring, seen, sleep, written

NUMBERS = np.dtype(
    [
        ("version", "i8"),  # updates applied
        ("episodes", "i8"),  # recorded
        ("env_steps", "i8"),  # of all messages received
        ("sent", "i8"),  # messages received
        ("applied", "i8"),  # gradients
        ("rejected", "i8"),  # gradients that were not finite
        ("records", "i8"),  # rows of episodes that Python has not taken yet
        ("updates", "i8"),  # rows of updates that Python has not taken yet
        ("queue_peak", "i8"),  # most gradients that waited at once
        ("alive", "i8"),  # workers now
        ("capacity", "i8"),  # of the queue
        ("bell", "i8"),  # descriptor that workers ring
        ("enough", "i8"),  # rows from which on Python takes them
        ("offset_s", "f8"),  # from the monotonic clock to the run's clock
        ("awake_since_s", "f8"),  # on the monotonic clock
        ("busy_s", "f8"),  # that the master has worked
        ("nap_us", "i8"),  # how long the master sleeps to let gradients come together
        ("until_s", "f8"),  # on the monotonic clock: when Python looks at the pool again
    ]
)


class Rings(NamedTuple):
    """Where workers put what they hand over: L slots, in each a ring of R messages; and what was taken from there."""

    sent: NDArray[np.int64]  # [L]
    taken: NDArray[np.int64]  # [L], the master's own count
    accepted: NDArray[np.int64]  # [L], the same as the workers see it
    waiting: NDArray[np.int64]  # [L], what each worker wants to be woken for
    generations: NDArray[np.int64]  # [L], of the present workers
    messages: Records  # MESSAGE [L, R]
    episodes: Records  # EPISODE [L, R, agents]
    gradients: NDArray[np.float32]  # [L, R, P]
    inbox: Records  # INBOX [1], the master's own place
    quota: QuotaCounts


class Learning(NamedTuple):
    """The learner's own arrays, and the two buffers in which it publishes."""

    parameters: Vector  # [P]
    averages: NDArray[np.float32]  # [k, P]
    versions: NDArray[np.int64]  # [2]
    current: NDArray[np.int64]  # [1]
    published: NDArray[np.float32]  # [2, P]
    given: Records  # [1], settings of the optimizer, and the run's episodes


class Board(NamedTuple):
    """What the master writes down."""

    numbers: Records  # NUMBERS [1]
    recorded: NDArray[np.int64]  # [L], numbers of episodes below which all are recorded
    heard_s: NDArray[np.float64]  # [L], of the last message
    buttons: NDArray[np.int32]  # [L], descriptors that wake the workers; NO_BELL where there is none
    desk: Desk
    records: Records  # RECORD [BLOCK_RECORDS]
    updates: Records  # UPDATE [BLOCK_RECORDS]


def new_board(slots: int) -> Board:
    return Board(
        np.zeros(1, NUMBERS),
        recorded=np.zeros(slots, np.int64),
        heard_s=np.zeros(slots),
        buttons=np.full(slots, NO_BELL, np.int32),
        desk=new_desk(),
        records=np.zeros(BLOCK_RECORDS, RECORD),
        updates=np.zeros(BLOCK_RECORDS, UPDATE),
    )


@exact
def attend(rings, learning, board):
    """Deal with what waits, and sleep while nothing does, until Python is needed: the master's whole loop."""
    numbers = board.numbers[0]
    while True:
        left = deal(rings, learning, board)
        rings.inbox[0].room = numbers.capacity - left
        ordered()
        _wake_all(rings, board)
        if left > 0 or _is_due(board, learning) or not _await_message(rings, board):
            return


@inner
def _wake_all(rings, board):
    """Wake the workers that wait for what they have by now."""
    for slot in range(rings.waiting.size):
        occasion = rings.waiting[slot]
        if occasion == ACCEPTED or (occasion == GRANTED and rings.quota.under_way[slot] > 0):
            rings.waiting[slot] = 0
            written()  # before its worker, awake again, may say that it waits for something else
            ring(board.desk, board.buttons[slot])


@inner
def _is_due(board, learning):
    """Return whether Python has to write up records, to look after the pool, or to end the run."""
    numbers = board.numbers[0]
    is_over = numbers.episodes >= learning.given[0].episodes_in_all
    is_enough = max(numbers.records, numbers.updates) >= numbers.enough
    return is_over or is_enough or now_s(board.desk) >= numbers.until_s


@inner
def _await_message(rings, board):
    """Sleep until there is a message; return False if Python is wanted first, or nobody can ring."""
    numbers, inbox = board.numbers[0], rings.inbox[0]
    if numbers.nap_us > 0:
        numbers.busy_s += now_s(board.desk) - numbers.awake_since_s
        nap(numbers.nap_us)
        numbers.awake_since_s = now_s(board.desk)
    inbox.asleep = 1
    ordered()  # whoever sends from now on sees it; what came just before, and would not have rung, is seen here
    woken = _waiting(rings) > 0
    if not woken and numbers.bell != NO_BELL:
        asleep_s = now_s(board.desk)
        numbers.busy_s += asleep_s - numbers.awake_since_s
        woken = sleep(board.desk, numbers.bell, max(0.0, numbers.until_s - asleep_s))
        numbers.awake_since_s = now_s(board.desk)
    inbox.asleep = 0
    return woken


@inner
def _waiting(rings):
    """Return how many messages wait."""
    waiting = 0
    for slot in range(rings.sent.size):
        waiting += rings.sent[slot] - rings.taken[slot]
    return waiting


@inner
def deal(rings, learning, board):
    """Deal with all messages that wait now, longest waiting first, as far as there is room to write them down.

    Return how many still wait.
    """
    numbers, agents = board.numbers[0], rings.episodes.shape[2]
    waiting = _waiting(rings)
    seen()
    room = min(BLOCK_RECORDS - numbers.updates, (BLOCK_RECORDS - numbers.records) // agents)
    for position in range(min(waiting, room)):
        slot = _oldest(rings)
        turn = rings.taken[slot] % rings.messages.shape[1]
        if rings.messages[slot, turn].generation == rings.generations[slot]:
            _deal_with(rings, learning, board, slot, turn, position)
        rings.taken[slot] += 1
        written()  # before its place in the ring is the worker's again
        rings.accepted[slot] = rings.taken[slot]
    numbers.queue_peak = max(numbers.queue_peak, waiting)
    return max(0, waiting - room)


@inner
def _oldest(rings):
    """Return the slot whose next message waits longest; there must be one."""
    found, since_s = -1, np.inf
    for slot in range(rings.sent.size):
        if rings.sent[slot] > rings.taken[slot]:
            finished_s = rings.messages[slot, rings.taken[slot] % rings.messages.shape[1]].finished_s
            if finished_s < since_s:
                found, since_s = slot, finished_s
    return found


@inner
def _deal_with(rings, learning, board, slot, turn, position):
    numbers, message = board.numbers[0], rings.messages[slot, turn]
    taken_s = now_s(board.desk)
    staleness = numbers.version - message.version_pulled
    norm = _apply(learning, numbers, rings.gradients[slot, turn])
    status = APPLIED if np.isfinite(norm) else REJECTED
    if status == APPLIED:
        numbers.version += 1
        numbers.applied += 1
        _publish(learning, numbers.version)
    else:
        numbers.rejected += 1
    numbers.sent += 1
    numbers.env_steps += message.env_steps
    board.heard_s[slot] = message.finished_s
    _write_update(board, message, slot, position, taken_s, staleness, norm, status)
    for agent in range(message.episodes):
        _write_record(board, message, rings.episodes[slot, turn, agent], slot, position, staleness, norm, status)
        end_and_grant(rings.quota, slot, rings.episodes.shape[2])


@inner
def _apply(learning, numbers, gradient):
    """Make an update and return the gradient's norm."""
    given = learning.given[0]
    rate = rate_at(given.learning_rate, given.anneal, numbers.episodes / given.episodes_in_all)
    return update(
        given.update_rule,
        learning.parameters,
        gradient,
        learning.averages,
        rate,
        given.clip_norm,
        given.epsilon,
        given.decay,
        numbers.version + 1,
    )


@inner
def _publish(learning, version):
    """Make the parameters the latest, as SharedArrays.publish does."""
    target = 1 - learning.current[0]
    learning.versions[target] = -1
    written()
    copy(learning.parameters, learning.published[target])
    written()
    learning.versions[target] = version
    learning.current[0] = target


@inner
def _write_update(board, message, slot, position, taken_s, staleness, norm, status):
    numbers, applied_s = board.numbers[0], now_s(board.desk)
    row = board.updates[numbers.updates]
    row.update = numbers.applied + numbers.rejected - 1
    row.worker = slot
    row.version_pulled = message.version_pulled
    row.version = numbers.version
    row.staleness = staleness
    row.queue_length = position
    row.arrived_s = message.finished_s + numbers.offset_s
    row.applied_s = applied_s + numbers.offset_s
    row.service_s = applied_s - taken_s
    row.gradient_norm = norm
    row.status = status
    numbers.updates += 1


@inner
def _write_record(board, message, episode, slot, position, staleness, norm, status):
    numbers, update_row = board.numbers[0], board.updates[board.numbers[0].updates - 1]
    row = board.records[numbers.records]
    row.episode = numbers.episodes
    row.worker = slot
    row.worker_episode = episode.number
    row.workers_alive = numbers.alive
    row.score = episode.score
    row.return_ = episode.reward
    row.steps = episode.steps
    row.truncated = episode.truncated
    row.started_s = episode.started_s + numbers.offset_s
    row.finished_s = update_row.arrived_s
    row.applied_s = row.wall_s = update_row.applied_s
    row.version_pulled = message.version_pulled
    row.version_applied = numbers.version
    row.staleness = staleness
    row.queue_length = position
    row.queue_wait_s = update_row.applied_s - update_row.arrived_s
    row.master_busy_s = numbers.busy_s + update_row.applied_s - numbers.offset_s - numbers.awake_since_s
    row.loss = episode.loss
    row.entropy = episode.entropy
    row.gradient_norm = norm
    row.status = status
    numbers.records += 1
    numbers.episodes += 1
    board.recorded[slot] = max(board.recorded[slot], episode.number + 1)
