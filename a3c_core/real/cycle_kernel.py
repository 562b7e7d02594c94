"""A worker's cycle through shared memory, compiled: pull, play, differentiate, hand over, until there is a wait.

The twin of a3c_core/worker.py and of the `SharedChannel`, for one agent of the compiled engine.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from a3c_core.engines import actor_critic_kernels
from a3c_core.engines.actor_critic_kernels import Buffers
from a3c_core.games import flappy
from a3c_core.models.parameters import Vector
from a3c_core.real.shared_memory import ACCEPTED, AT_ONCE, GRANTED, NO_ROOM, NOTHING, PERMITTED, SERVED, UNWANTED
from a3c_core.streams import write_words
from a3c_core.system.jit import copy, exact, inner
from a3c_core.system.system_calls import Desk, now_s, ordered, ring, seen, sleep, written

NUMBERS = np.dtype(
    [
        ("next_episode", "i8"),  # number of the episode that begins next
        ("sent", "i8"),  # messages handed over
        ("version", "i8"),  # of the parameters that it plays with
        ("env_steps", "i8"),  # of its piece of work
        ("is_done", "i8"),  # whether its piece of work is to be handed over
        ("number", "i8"),  # of its episode
        ("in_episode", "i8"),  # whether an episode has begun and not ended
        ("truncated", "i8"),  # whether its episode was cut off
        ("steps", "i8"),  # of its episode so far, as all that follows
        ("started_s", "f8"),  # on the monotonic clock
        ("reward", "f8"),
        ("loss", "f8"),
        ("entropy", "f8"),
    ]
)
_PATIENCE_S = 0.02  # beyond which Python waits, and looks whether this worker is still wanted


class Place(NamedTuple):
    """A worker's place in the shared memory: its slot, its ring of R messages, and what the master publishes."""

    slot: NDArray[np.void]  # SLOT [1]
    messages: NDArray[np.void]  # MESSAGE [R]
    episodes: NDArray[np.void]  # EPISODE [R]
    gradients: NDArray[np.float32]  # [R, P]
    inbox: NDArray[np.void]  # INBOX [1], the master's
    versions: NDArray[np.int64]  # [2]
    current: NDArray[np.int64]  # [1]
    published: NDArray[np.float32]  # [2, P]


class Player(NamedTuple):
    """What a worker plays with, and how far it is."""

    given: NDArray[np.void]  # [1], settings
    numbers: NDArray[np.void]  # NUMBERS [1]
    games: NDArray[np.void]  # GAME [1]
    stream: NDArray[np.uint64]  # [4], of actions
    entropy: NDArray[np.uint32]  # [6]
    words: NDArray[np.uint64]  # [2, 4]
    parameters: Vector  # [P]
    gradient: Vector  # [P]
    settings: actor_critic_kernels.Settings
    buffers: Buffers
    desk: Desk


@exact
def work_on(place, player, pieces):
    """Do `pieces` pieces of work, as far as nothing is to be waited for that takes long; return what does."""
    for _ in range(pieces):
        need = _work_once(place, player)
        if need != NOTHING and not _is_soon_met(place, player, need):
            return need
    return NOTHING


@inner
def _is_soon_met(place, player, need):
    """Wait a little for a place in the ring or for a grant; return whether it has come."""
    slot, desk = place.slot[0], player.desk
    if need != ACCEPTED and need != GRANTED:
        return False
    began_s = now_s(desk)
    until_s = began_s + _PATIENCE_S
    while not _is_met(place, player, need) and not slot.stop and now_s(desk) < until_s:
        slot.waiting = need  # the master clears it when it wakes us, so that it does so once
        ordered()  # it sees that we wait, or we see what it has done
        if not _is_met(place, player, need):
            sleep(desk, player.given[0].wake, until_s - now_s(desk))
    slot.waiting = NOTHING
    slot.wait_s += now_s(desk) - began_s
    return _is_met(place, player, need)


@inner
def _is_met(place, player, need):
    slot, numbers = place.slot[0], player.numbers[0]
    if need == ACCEPTED:
        return numbers.sent - slot.accepted < place.messages.size
    return slot.granted > numbers.next_episode and not slot.stop


@inner
def _work_once(place, player):
    slot, numbers, given = place.slot[0], player.numbers[0], player.given[0]
    if not numbers.is_done:
        if not numbers.in_episode and (slot.stop or slot.granted <= numbers.next_episode):
            return GRANTED
        if given.until_permitted and slot.permits <= numbers.sent:
            return PERMITTED
        _work(place, player)
        numbers.is_done = 1
    if numbers.sent - slot.accepted >= place.messages.size:
        return ACCEPTED
    if slot.stop == AT_ONCE or slot.generation != given.generation:
        return UNWANTED
    _hand_over(place, player)
    numbers.is_done = 0
    if given.until_applied:
        return SERVED
    return NO_ROOM if given.until_accepted and place.inbox[0].room <= 0 else NOTHING


@inner
def _work(place, player):
    """Pull, play a whole episode or a piece of one, and differentiate; note where the time went."""
    slot, numbers, given, desk = place.slot[0], player.numbers[0], player.given[0], player.desk
    began_s = now_s(desk)
    numbers.version = _pull(place, player.parameters)
    pulled_s = now_s(desk)
    if not numbers.in_episode:
        _begin_episode(player, began_s)
    limit = min(given.steps_at_once, given.max_steps - numbers.steps)
    played = player.parameters, player.games, player.stream, limit, player.settings, player.buffers
    steps, died = actor_critic_kernels.play(*played)
    played_s = now_s(desk)
    loss, entropy = actor_critic_kernels.differentiate(steps, died, player.settings, player.buffers, player.gradient)
    slot.pull_s += pulled_s - began_s
    slot.play_s += played_s - pulled_s
    slot.gradient_s += now_s(desk) - played_s
    _count(player, steps, died, loss, entropy)


@inner
def _pull(place, parameters):
    """Copy what was published last and return its version; never a mixture of two."""
    while True:
        buffer = place.current[0]
        version = place.versions[buffer]
        seen()
        copy(place.published[buffer], parameters)
        seen()
        if version >= 0 and place.versions[buffer] == version:
            return version


@inner
def _begin_episode(player, now_s):
    numbers, given, entropy = player.numbers[0], player.given[0], player.entropy
    entropy[0], entropy[4], entropy[5] = given.seed, given.worker, numbers.next_episode
    write_words(entropy, player.words)
    ways = given.own_streams, given.own_actions, given.resets
    flappy.begin_episode(player.games[0], player.stream, player.words, *ways)
    numbers.number, numbers.in_episode, numbers.started_s = numbers.next_episode, 1, now_s
    numbers.reward, numbers.loss, numbers.entropy, numbers.steps = 0.0, 0.0, 0.0, 0
    numbers.next_episode += 1


@inner
def _count(player, steps, died, loss, entropy):
    """Add what was just played to the episode."""
    numbers, rewards = player.numbers[0], player.buffers.rewards
    reward = 0.0
    for t in range(steps):
        reward += rewards[t]
    numbers.env_steps = steps
    numbers.reward += reward
    numbers.loss += loss
    numbers.entropy += entropy * steps
    numbers.steps += steps
    numbers.truncated = not died and numbers.steps >= player.given[0].max_steps
    numbers.in_episode = not (died or numbers.truncated)


@inner
def _hand_over(place, player):
    """Put gradient, message and episode into the ring, where there is room, and wake the master if it sleeps."""
    numbers, inbox = player.numbers[0], place.inbox[0]
    turn = numbers.sent % place.messages.size
    copy(player.gradient, place.gradients[turn])
    message = place.messages[turn]
    message.version_pulled = numbers.version
    message.env_steps = numbers.env_steps
    message.finished_s = now_s(player.desk)
    message.episodes = not numbers.in_episode
    message.generation = player.given[0].generation
    if not numbers.in_episode:
        _write_episode(place.episodes[turn], player)
    numbers.sent += 1
    written()
    place.slot[0].sent = numbers.sent  # last: only now is that place in the ring the master's
    ordered()
    if inbox.asleep:
        inbox.asleep = 0
        ring(player.desk, player.given[0].doorbell)


@inner
def _write_episode(episode, player):
    numbers = player.numbers[0]
    episode.number = numbers.number
    episode.started_s = numbers.started_s
    episode.score = player.games[0].score
    episode.reward = numbers.reward
    episode.steps = numbers.steps
    episode.truncated = numbers.truncated != 0
    episode.loss = numbers.loss
    episode.entropy = numbers.entropy / numbers.steps
