"""The master's end of the workers' channels: what has arrived and from whom, and the way back, without polling."""

import time

import numpy as np
from numpy.typing import NDArray

from a3c_core.config import RunConfig
from a3c_core.learners.base import Learner
from a3c_core.models.parameters import Vector
from a3c_core.real.pool import Pool
from a3c_core.real.shared_memory import (
    ACCEPTED,
    MAILED,
    RING_SIZE,
    SERVED,
    Message,
    SharedArrays,
    first_count,
)
from a3c_core.worker import Episode


class Inbox:
    """Where the master sits: it sees all slots at once, and is woken only if it said that it sleeps."""

    def __init__(self, config: RunConfig, arrays: SharedArrays, pool: Pool):
        self._transport = config.gradients.transport
        self._arrays, self._pool = arrays, pool
        self._asleep, self._shown_room = arrays.inbox["asleep"], arrays.inbox["room"]
        slots = arrays.slots
        self._sent, self._accepted, self._served = slots["sent"], slots["accepted"], slots["served"]
        self._waiting, self._finished_s = slots["waiting"], arrays.messages["finished_s"]
        self._messages, self._episodes = arrays.messages.reshape(-1), arrays.episodes.reshape(-1)
        self._agents = arrays.episodes.shape[-1]
        self._mail_sent, self._mail_taken = slots["mail_sent"], slots["mail_taken"]
        self.taken: NDArray[np.int64] = np.zeros(len(slots), np.int64)  # messages, by slot, as `accepted` says
        self._room = 0  # as the workers see it
        self.busy_s = 0.0  # since the last `count_busy`; all the time that the master was not asleep
        self.awake_since_s = time.monotonic()

    def clear(self, slot: int, generation: int) -> None:
        """Begin anew in `slot`, which is to have a new worker."""
        permits = self._arrays.slots["permits"]
        counts = (self._sent, self._accepted, self._served, permits, self._mail_sent, self._mail_taken, self.taken)
        for count in counts:
            count[slot] = first_count(generation)

    # Waiting

    def wait(self, limit_s: float) -> NDArray[np.intp]:
        """Block until a worker says something or dies, or the limit has passed; return the slots with messages."""
        self._asleep[0] = 1
        pending = self.pending()
        if not pending.size:  # what came just before would not have rung
            self.sleep(limit_s)
            pending = self.pending()
        self._asleep[0] = 0
        return pending

    def sleep(self, limit_s: float) -> None:
        """Block until a worker says something new or dies, or the limit has passed."""
        self._asleep[0] = 1
        self.busy_s += time.monotonic() - self.awake_since_s
        self._pool.wait(limit_s)
        self.awake_since_s = time.monotonic()

    def count_busy(self) -> float:
        """Return the seconds that the master has been awake since the last call."""
        now_s = time.monotonic()
        busy_s = self.busy_s + now_s - self.awake_since_s
        self.busy_s, self.awake_since_s = 0.0, now_s
        return busy_s

    def wake(self, slot: int, occasion: int) -> None:
        """Wake the worker of `slot` if this is what it waits for."""
        if self._waiting[slot] == occasion and slot in self._pool.members:
            self._waiting[slot] = 0
            self._pool.wake(slot)

    # From the workers

    def pending(self) -> NDArray[np.intp]:
        """Return the slots that hold messages."""
        self._pool.look()
        return (self._sent > self.taken).nonzero()[0]

    def holds(self, slot: int) -> bool:
        """Return whether `slot` holds a message."""
        return bool(self._sent[slot] > self.taken[slot])

    def oldest_first(self, pending: NDArray[np.intp]) -> list[int]:
        """Return slots that hold messages, longest waiting first; those in pipes can't be seen, and take turns."""
        if pending.size > 1:
            taken = self.taken[pending]
            in_pipes = self._transport == "queue"
            waiting_since = taken % first_count(1) if in_pipes else self._finished_s[pending, taken % RING_SIZE]
            pending = pending[waiting_since.argsort(kind="stable")]
        return pending.tolist()

    def receive(self, slot: int) -> tuple[Message, tuple[Episode, ...], Vector] | None:
        """Return the next (message, episodes, gradient) of a slot, or None if it was lost with its worker.

        The gradient stays valid until `accept`.
        """
        if self._transport != "queue":
            turn = self.taken.item(slot) % RING_SIZE  # in the slot's ring
            place = slot * RING_SIZE + turn
            message = Message._make(self._messages.item(place))
            first = place * self._agents
            described = map(self._episodes.item, range(first, first + message.episodes))
            return message, tuple(map(Episode._make, described)), self._arrays.gradients[slot, turn]
        connection = self._pool.members[slot].gradients
        assert connection is not None
        try:
            message, episodes, gradient = connection.recv()
        except (EOFError, OSError):
            return None
        return Message._make(message), tuple(map(Episode._make, episodes)), gradient

    def accept(self, slot: int) -> None:
        """Say that the next message of `slot` has been taken over."""
        self.taken[slot] += 1
        self._accepted[slot] += 1
        self.wake(slot, ACCEPTED)

    def show_room(self, room: int) -> None:
        """Let workers see how many gradients the queue still takes: they wait when there is no room."""
        if room != self._room:
            self._shown_room[0] = self._room = room

    # To the workers

    def mark_served(self, slot: int) -> None:
        """Say that a gradient of the worker in `slot` was dealt with."""
        if slot in self._pool.members:
            self._served[slot] += 1
            self.wake(slot, SERVED)

    def publish(self, master: Learner) -> None:
        """Make what the master publishes the latest, or put it into all mailboxes that are empty."""
        if self._transport != "queue":
            self._arrays.publish(master.version, master.publication)
            return
        for slot in (self._mail_sent == self._mail_taken).nonzero()[0].tolist():
            self.post(slot, master)

    def post(self, slot: int, master: Learner) -> None:
        """Put what the master publishes into the mailbox of `slot`, if it has one."""
        if self._transport == "queue" and slot in self._pool.members:
            self._arrays.put_mail(slot, master.version, master.publication)
            self.wake(slot, MAILED)
