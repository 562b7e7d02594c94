"""A worker's cycle, compiled: it pulls, really plays, is done when that is due; and workers come and go.

The twin of a3c_core/topologies/workers.py, and of the mailboxes in master.py.
"""

from a3c_core.algorithms.values import annealed, which_epsilon
from a3c_core.games import flappy
from a3c_core.streams import uniform, write_words
from a3c_core.system.jit import copy, inner
from a3c_core.virtual import costs
from a3c_core.virtual.compiled import log, timeline
from a3c_core.virtual.compiled.player import NOT_CHOSEN, rollout
from a3c_core.virtual.compiled.state import MASTER, NOBODY


@inner
def begin(state, player, place):
    """Let a worker pull, play, and be done when that is due; or leave, if nothing is left to begin."""
    numbers, worker = state.numbers[0], state.workers[place]
    if not worker.in_episode and (worker.retiring or not _may_begin(state)):
        _remove(state, place)
        return
    worker.slot = take_slot(state)
    loaded = _pull(state, place)
    began = not worker.in_episode
    if began:
        _begin_episode(state, place)
    steps = _play(state, player, place)
    away_s = costs.away_s(state.given[0], steps, state.given[0].wait_s)
    waits = worker.waits + (1 if away_s > 0 else 0)
    worker.waits = 0
    worker.core_s = costs.cycle_s(state.given[0], steps, 1 if began else 0, 1 if loaded else 0, waits)
    if away_s > 0:
        timeline.at(state, numbers.now_s + away_s, place, timeline.CORE)
    else:
        want_core(state, place)


@inner
def _may_begin(state):
    """Return whether another episode may begin."""
    numbers, given = state.numbers[0], state.given[0]
    is_over = given.env_steps_in_all > 0 and numbers.env_steps >= given.env_steps_in_all
    return not is_over and numbers.episodes_begun < given.episodes_in_all


@inner
def want_core(state, place):
    """Let a worker's work be done when it has had a core for long enough."""
    worker = state.workers[place]
    timeline.work(state, worker.core_s, place, timeline.PLAYED, worker.rollouts)


@inner
def _pull(state, place):
    """Give the worker the parameters it can get now; return whether they are new to it."""
    worker = state.workers[place]
    parcel = state.parcels[worker.slot]
    if not state.given[0].has_mailboxes:
        parcel.version_pulled = state.numbers[0].version
        return True
    is_new = worker.mail != NOBODY
    if is_new:
        _release(state, worker.held)
        worker.held = worker.mail
        worker.mail = NOBODY
        _enter_empty(state, place)
    parcel.version_pulled = state.rows[worker.held].version
    return is_new


@inner
def _begin_episode(state, place):
    worker, entropy, words, given = state.workers[place], state.entropy, state.words, state.given[0]
    entropy[0] = given.seed
    entropy[4], entropy[5] = worker.id, worker.next_episode
    write_words(entropy[:6], words)
    game, stream = state.games[place], state.streams[place]
    flappy.begin_episode(game, stream, words, given.own_streams, given.own_actions, given.resets)
    worker.number, worker.in_episode, worker.started_s = worker.next_episode, 1, state.numbers[0].now_s
    worker.reward, worker.loss, worker.entropy, worker.steps = 0.0, 0.0, 0.0, 0
    worker.chosen = NOT_CHOSEN
    worker.next_episode += 1
    state.numbers[0].episodes_begun += 1


@inner
def _play(state, player, place):
    """Play on, a whole episode or a piece of one, with the gradient into the worker's own; return the steps."""
    given, worker = state.given[0], state.workers[place]
    published = state.publications[worker.held] if given.has_mailboxes else state.published
    epsilon = annealed(worker.final_epsilon, state.numbers[0].env_steps, given.epsilon_steps)
    steps, died, reward, loss, entropy, chosen = rollout(
        published,
        state.games[place : place + 1],
        state.streams[place],
        min(given.steps_at_once, given.max_steps - worker.steps),
        player.settings,
        player.buffers,
        epsilon,
        worker.chosen,
        state.gradients[worker.slot],
    )
    worker.rollouts += 1
    worker.reward += reward
    worker.loss += loss
    worker.entropy += entropy * steps
    worker.steps += steps
    state.numbers[0].env_steps += steps
    truncated = not died and worker.steps >= given.max_steps
    worker.in_episode = not (died or truncated)
    worker.chosen = NOT_CHOSEN if truncated else chosen
    _write_parcel(state, place, truncated)
    return steps


@inner
def _write_parcel(state, place, truncated):
    worker = state.workers[place]
    parcel = state.parcels[worker.slot]
    parcel.place = place
    parcel.worker = worker.id
    parcel.ends = not worker.in_episode
    parcel.number = worker.number
    parcel.started_s = worker.started_s
    parcel.score = state.games[place].score
    parcel.reward = worker.reward
    parcel.steps = worker.steps
    parcel.truncated = truncated
    parcel.loss = worker.loss
    parcel.entropy = worker.entropy / worker.steps
    parcel.final_epsilon = worker.final_epsilon


# Slots, in which parcels and their gradients stay from beginning to end


@inner
def take_slot(state):
    """Return a free slot, the one that was last in use: it may still be in the processor's cache."""
    numbers = state.numbers[0]
    numbers.slots -= 1
    return state.slots[numbers.slots].free


@inner
def free_slot(state, slot):
    """Let a slot be used again."""
    numbers = state.numbers[0]
    state.slots[numbers.slots].free = slot
    numbers.slots += 1


# Mailboxes: rows of publications, each of which any number of workers hold or have waiting


@inner
def publish(state):
    """Put the newest parameters into all mailboxes that are empty."""
    numbers = state.numbers[0]
    if numbers.empty == 0:
        return
    row = _new_row(state)
    state.rows[row].uses = numbers.empty
    for i in range(numbers.empty):
        worker = state.workers[state.lists[i].empty]
        worker.mail, worker.empty_place = row, NOBODY
    numbers.empty = 0


@inner
def _new_row(state):
    """Return a row with the newest parameters, which nobody uses yet."""
    numbers = state.numbers[0]
    numbers.rows -= 1
    row = state.rows[numbers.rows].free
    copy(state.published, state.publications[row])
    state.rows[row].version = numbers.version
    return row


@inner
def _release(state, row):
    """Count one user of a row less."""
    state.rows[row].uses -= 1
    if state.rows[row].uses == 0:
        state.rows[state.numbers[0].rows].free = row
        state.numbers[0].rows += 1


@inner
def _enter_empty(state, place):
    numbers = state.numbers[0]
    state.workers[place].empty_place = numbers.empty
    state.lists[numbers.empty].empty = place
    numbers.empty += 1


@inner
def _leave_empty(state, place):
    """Let the last of those whose mailbox is empty take the place of this one."""
    numbers, worker = state.numbers[0], state.workers[place]
    numbers.empty -= 1
    last = state.lists[numbers.empty].empty
    state.lists[worker.empty_place].empty = last
    state.workers[last].empty_place = worker.empty_place
    worker.empty_place = NOBODY


# Workers come and go


@inner
def settle(state, slot, status, staleness, gradient_norm):
    """Write down what became of a parcel, then let the schedule have its way."""
    parcel = state.parcels[slot]
    log.enter(state, parcel, status, staleness, gradient_norm)
    free_slot(state, slot)
    if not parcel.ends:
        return
    numbers, profile = state.numbers[0], state.given[0]
    target = log.target_workers(state)
    if target > numbers.alive:
        add(state, target - numbers.alive, numbers.now_s + profile.worker_start_s * profile.slowdown)
    elif target < numbers.alive:
        _retire(state, numbers.alive - target)


@inner
def add(state, count, at_s):
    """Let `count` workers begin at `at_s`, each with the newest parameters in its mailbox, if there are any."""
    numbers = state.numbers[0]
    row = _new_row(state) if state.given[0].has_mailboxes else NOBODY
    for _ in range(count):
        numbers.places -= 1
        place = state.lists[numbers.places].free
        worker = state.workers[place]
        worker.id, worker.here, worker.retiring, worker.in_episode = numbers.next_id, 1, 0, 0
        worker.next_episode, worker.rollouts, worker.waits = 0, 0, 0
        worker.held, worker.mail, worker.empty_place = row, row, NOBODY
        worker.final_epsilon = _final_epsilon(state, numbers.next_id)
        if row != NOBODY:
            state.rows[row].uses += 2
        if not state.given[0].own_streams:
            flappy.share_stream(state.games[place], state.games[MASTER])
        copy(state.streams[MASTER], state.streams[place])
        numbers.next_id += 1
        numbers.alive += 1
        timeline.at(state, at_s, place, timeline.BEGIN)


@inner
def _final_epsilon(state, worker_id):
    """Return how often a worker acts at random in the end: its own draw from three (see progress.worker_draw)."""
    entropy, given = state.entropy, state.given[0]
    entropy[0], entropy[4], entropy[5], entropy[6], entropy[7] = given.seed, worker_id, 0, 0, 1
    write_words(entropy, state.words)
    which = which_epsilon(uniform(state.words[0]))
    if which == 0:
        return given.final_epsilon_0
    return given.final_epsilon_1 if which == 1 else given.final_epsilon_2


@inner
def _remove(state, place):
    numbers, worker = state.numbers[0], state.workers[place]
    if not worker.retiring:
        numbers.alive -= 1
    if state.given[0].has_mailboxes:
        _release(state, worker.held)
        if worker.mail != NOBODY:
            _release(state, worker.mail)
        if worker.empty_place != NOBODY:
            _leave_empty(state, place)
    worker.here = 0
    state.lists[numbers.places].free = place
    numbers.places += 1


@inner
def _retire(state, count):
    """Let the `count` youngest of those that stay be about to leave. Rare, so a look at all workers each is fine."""
    for _ in range(count):
        youngest = 0
        for place in range(1, state.workers.size):
            worker = state.workers[place]
            if worker.here and not worker.retiring and worker.id > state.workers[youngest].id:
                youngest = place
        state.workers[youngest].retiring = 1
        state.numbers[0].alive -= 1
