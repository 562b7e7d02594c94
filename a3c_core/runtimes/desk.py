"""The master's end of the workers' lines: what has arrived and from whom, and the way back, without polling."""

import time

import numpy as np
from numpy.typing import NDArray

from a3c_core.config import RunConfig
from a3c_core.master import Master
from a3c_core.parameters import Vector
from a3c_core.runtimes.crew import Crew
from a3c_core.runtimes.shared_memory import (
    ACCEPTED,
    MAILED,
    RING_SLOTS,
    SERVED,
    Message,
    SharedArrays,
    first_count,
)
from a3c_core.worker import Episode


class Desk:
    """Where the master sits: it sees all lanes at once, and is woken only if it said that it sleeps."""

    def __init__(self, config: RunConfig, arrays: SharedArrays, crew: Crew):
        self._transport = config.exchange.transport
        self._arrays, self._crew = arrays, crew
        self._asleep, self._shown_room = arrays.desk["asleep"], arrays.desk["room"]
        lanes = arrays.lanes
        self._sent, self._accepted, self._served = lanes["sent"], lanes["accepted"], lanes["served"]
        self._waiting, self._finished_s = lanes["waiting"], arrays.messages["finished_s"]
        self._messages, self._episodes = arrays.messages.reshape(-1), arrays.episodes.reshape(-1)
        self._agents = arrays.episodes.shape[-1]
        self._mail_sent, self._mail_taken = lanes["mail_sent"], lanes["mail_taken"]
        self._taken: NDArray[np.int64] = np.zeros(len(lanes), np.int64)  # messages, by lane, as `accepted` says
        self._room = 0  # as the workers see it
        self.busy_s = 0.0  # since the last `count_busy`; all the time that the master was not asleep
        self._awake_since_s = time.monotonic()

    def clear(self, lane: int, generation: int) -> None:
        """Begin anew in `lane`, which is to have a new worker."""
        counts = (self._sent, self._accepted, self._served, self._mail_sent, self._mail_taken, self._taken)
        for count in counts:
            count[lane] = first_count(generation)

    # Waiting

    def wait(self, limit_s: float) -> NDArray[np.intp]:
        """Block until a worker says something or dies, or the limit has passed; return the lanes with messages."""
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
        self.busy_s += time.monotonic() - self._awake_since_s
        self._crew.wait(limit_s)
        self._awake_since_s = time.monotonic()

    def count_busy(self) -> float:
        """Return the seconds that the master has been awake since the last call."""
        now_s = time.monotonic()
        busy_s = self.busy_s + now_s - self._awake_since_s
        self.busy_s, self._awake_since_s = 0.0, now_s
        return busy_s

    def wake(self, lane: int, occasion: int) -> None:
        """Wake the worker of `lane` if this is what it waits for."""
        if self._waiting[lane] == occasion and lane in self._crew.hands:
            self._waiting[lane] = 0
            self._crew.wake(lane)

    # From the workers

    def pending(self) -> NDArray[np.intp]:
        """Return the lanes that hold messages."""
        self._crew.look()
        return (self._sent > self._taken).nonzero()[0]

    def holds(self, lane: int) -> bool:
        """Return whether `lane` holds a message."""
        return bool(self._sent[lane] > self._taken[lane])

    def oldest_first(self, pending: NDArray[np.intp]) -> list[int]:
        """Return lanes that hold messages, longest waiting first; those in pipes can't be seen, and take turns."""
        if pending.size > 1:
            taken = self._taken[pending]
            in_pipes = self._transport == "queue"
            waiting_since = taken % first_count(1) if in_pipes else self._finished_s[pending, taken % RING_SLOTS]
            pending = pending[waiting_since.argsort(kind="stable")]
        return pending.tolist()

    def receive(self, lane: int) -> tuple[Message, tuple[Episode, ...], Vector] | None:
        """Return the next (message, episodes, gradient) of a lane, or None if it was lost with its worker.

        The gradient stays valid until `accept`.
        """
        if self._transport != "queue":
            slot = self._taken.item(lane) % RING_SLOTS
            place = lane * RING_SLOTS + slot
            message = Message._make(self._messages.item(place))
            first = place * self._agents
            described = map(self._episodes.item, range(first, first + message.episodes))
            return message, tuple(map(Episode._make, described)), self._arrays.gradients[lane, slot]
        connection = self._crew.hands[lane].gradients
        assert connection is not None
        try:
            return connection.recv()
        except (EOFError, OSError):
            return None

    def accept(self, lane: int) -> None:
        """Say that the next message of `lane` has been taken over."""
        self._taken[lane] += 1
        self._accepted[lane] += 1
        self.wake(lane, ACCEPTED)

    def show_room(self, room: int) -> None:
        """Let workers see how many gradients the queue still takes: they wait when there is no room."""
        if room != self._room:
            self._shown_room[0] = self._room = room

    # To the workers

    def mark_served(self, lane: int) -> None:
        """Say that a gradient of the worker in `lane` was dealt with."""
        if lane in self._crew.hands:
            self._served[lane] += 1
            self.wake(lane, SERVED)

    def publish(self, master: Master) -> None:
        """Make the master's parameters the latest, or put them into all mailboxes that are empty."""
        if self._transport != "queue":
            self._arrays.publish(master.version, master.parameters)
            return
        for lane in (self._mail_sent == self._mail_taken).nonzero()[0].tolist():
            self.post(lane, master)

    def post(self, lane: int, master: Master) -> None:
        """Put the master's parameters into the mailbox of `lane`, if it has one."""
        if self._transport == "queue" and lane in self._crew.hands:
            self._arrays.put_mail(lane, master.version, master.parameters)
            self.wake(lane, MAILED)
