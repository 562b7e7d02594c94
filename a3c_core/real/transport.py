"""How parameters and gradients travel between a worker (`SharedChannel` and others) and the master (`Inbox`).

Both ends wait without polling.

`SharedChannel` and `QueueChannel` differ in how the numbers travel: through shared memory, or as the report sent them,
as pickled messages through a pipe, with a mailbox for one model. `HogwildChannel` has no master to deliver to (Recht et
al. 2011; Mnih et al. 2016): it updates the shared parameters itself, without a lock.
"""

import contextlib
import os
import select
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from a3c_core.build import new_optimizer
from a3c_core.config import RunConfig
from a3c_core.learners.base import Learner
from a3c_core.models.parameters import Vector
from a3c_core.real.shared_memory import (
    ACCEPTED,
    ANSWERED,
    AT_ONCE,
    GRANTED,
    MAILED,
    NO_ROOM,
    PERMITTED,
    RING_SIZE,
    SERVED,
    UNWANTED,
    Message,
    SharedArrays,
    first_count,
    message_of,
)
from a3c_core.real.worker_pool import Pool
from a3c_core.worker import Episode, Work

_WAKE_LIMIT_S = 0.2  # a wake-up that was missed costs no more than this
_FITS_BYTES = 12_000  # a gradient that any pipe holds whole


class Stopped(Exception):
    """The master wants this worker to leave, now or before its next episode."""


class SharedChannel:
    """Parameters from the latest buffer, gradients into a ring of shared slots."""

    def __init__(
        self, config: RunConfig, slot: int, arrays: SharedArrays, doorbell: int, wake: int, generation: int = 0
    ):
        """`doorbell`: descriptor whose other end wakes the master; `wake`: one whose other end the master writes to."""
        self._arrays = arrays
        self._inbox = arrays.inbox[0]
        self._slot = arrays.slots[slot]
        self._slot_number, self._generation = slot, generation
        self.sent = first_count(generation)  # messages
        self._doorbell, self._wake = doorbell, wake
        self._poll = select.poll()
        self._poll.register(wake, select.POLLIN)
        self._parameters = np.empty(arrays.parameters.shape[1], np.float32)
        exchange = config.gradients
        self._until_applied = exchange.pull == "after_apply"
        self._until_accepted = exchange.queue == "bounded"
        self._until_permitted = exchange.makes_workers_wait

    def come_up(self) -> None:
        """Say that this worker is up."""
        self._slot["ready"] = 1
        self._ring()

    def settings(self) -> dict[str, int]:
        """Return what a worker must know to do the channel's work itself, in compiled code."""
        waits = {name: getattr(self, f"_{name}") for name in ("until_applied", "until_accepted", "until_permitted")}
        return {**waits, "doorbell": self._doorbell, "wake": self._wake, "generation": self._generation}

    def await_need(self, need: int, next_episode: int) -> None:
        """Wait for what keeps a worker from going on: NOTHING, NO_ROOM, UNWANTED or what it is to be woken for."""
        if need == UNWANTED:
            raise Stopped
        if need == GRANTED:
            self.may_begin(next_episode, has_work=False)
        elif need == PERMITTED:
            self._await_permit()
        elif need == ACCEPTED:
            self._await_place()
        elif need == SERVED:
            self._await_service()
        elif need == NO_ROOM:
            self._await_acceptance()

    def may_begin(self, next_episode: int, has_work: bool) -> int:
        """Return how many episodes from this number on may begin now; who has nothing else to do waits for one."""
        slot = self._slot
        if not has_work:
            self._wait(GRANTED, lambda: slot["granted"] > next_episode or slot["stop"])
        may_begin = 0 if slot["stop"] else max(0, int(slot["granted"]) - next_episode)
        if not may_begin and not has_work:  # looked at once: it may have been told to stop this very moment
            raise Stopped
        return may_begin

    def pull(self) -> tuple[int, Vector]:
        """Return (version, what was published with it) to play with; it stays valid until the next pull."""
        if self._until_permitted:
            self._await_permit()
        began = time.monotonic()
        version = self._take_parameters()
        self._slot["pull_s"] += time.monotonic() - began
        return version, self._parameters

    def deliver(self, work: Work, version: int) -> None:
        """Hand over one gradient and the episodes that it ends; wait where the exchange's settings say so."""
        self._await_place()
        self.heed_stop()
        self._hand_over(message_of(work, version, time.monotonic(), self._generation), work)
        if self._until_applied:
            self._await_service()
        elif self._until_accepted and self._inbox["room"] <= 0:
            self._await_acceptance()

    def _await_permit(self) -> None:
        self._wait(PERMITTED, lambda: self._slot["permits"] > self.sent)

    def _await_place(self) -> None:
        """Wait until the ring has room for another message."""
        self._wait(ACCEPTED, lambda: self.sent - self._slot["accepted"] < RING_SIZE)

    def _await_service(self) -> None:
        self._wait(SERVED, lambda: self._slot["served"] == self.sent)

    def _await_acceptance(self) -> None:
        """Wait until the master has taken over all that was sent."""
        self._wait(ACCEPTED, lambda: self._slot["accepted"] == self.sent)

    def _take_parameters(self) -> int:
        return self._arrays.read_latest(self._parameters)

    def _hand_over(self, message: Message, work: Work) -> None:
        gradient = work.gradient
        self._arrays.gradients[self._slot_number, self.sent % RING_SIZE, : gradient.size] = gradient
        self._put(message, work.episodes)

    def _put(self, message: Message, episodes: tuple[Episode, ...]) -> None:
        place = self._slot_number, self.sent % RING_SIZE
        self._arrays.messages[place] = message
        for number, episode in enumerate(episodes):
            self._arrays.episodes[(*place, number)] = episode
        self._announce()  # last: only now is the slot the master's

    def _announce(self) -> None:
        self.sent += 1
        self._slot["sent"] = self.sent
        self._ring()

    def _ring(self) -> None:
        if not self._inbox["asleep"]:
            return
        self._inbox["asleep"] = 0
        with contextlib.suppress(BlockingIOError):  # full: the master has been rung for long enough
            os.write(self._doorbell, b"!")

    def _wait(self, occasion: int, condition: Callable[[], bool]) -> None:
        if condition():
            return
        began = time.monotonic()
        slot = self._slot
        while not self._is_unwanted():
            slot["waiting"] = occasion  # the master clears it when it wakes us, so that it does so once
            if condition():
                break
            if self._poll.poll(_WAKE_LIMIT_S * 1000):
                os.read(self._wake, 4096)
        slot["waiting"] = 0
        if occasion != ANSWERED:  # to ask a predictor is a part of playing
            slot["wait_s"] += time.monotonic() - began
        if self._is_unwanted():
            raise Stopped

    def heed_stop(self) -> None:
        """Raise Stopped if nobody wants what this worker is doing any more."""
        if self._is_unwanted():
            raise Stopped

    def _is_unwanted(self) -> bool:
        """Return whether nobody takes anything from this worker any more: the run is over, or another has its slot."""
        slot = self._slot
        return slot["stop"] == AT_ONCE or slot["generation"] != self._generation


class QueueChannel(SharedChannel):
    """The report's way: gradients as pickled messages, models, pickled too, from a mailbox with one slot."""

    def __init__(self, *channel: Any, gradients: Connection):
        super().__init__(*channel)
        self._gradients = gradients
        self._version = -1
        self._mail_taken = first_count(self._generation)

    def _take_parameters(self) -> int:
        slot = self._slot
        if self._version < 0:
            # the first model; later ones are not waited for
            self._wait(MAILED, lambda: slot["mail_sent"] > self._mail_taken)
        if slot["mail_sent"] > self._mail_taken:
            self._version, self._parameters = self._arrays.take_mail(self._slot_number)
            self._mail_taken += 1
            slot["mail_taken"] = self._mail_taken  # last: only now is the slot the master's
        return self._version

    def _hand_over(self, message: Message, work: Work) -> None:
        letter = letter_of(message, work.episodes, work.gradient)
        if work.gradient.nbytes <= _FITS_BYTES:
            self._gradients.send(letter)  # first, so that the master finds it when it comes
            self._announce()
        else:
            self._announce()  # first: it only fits through the pipe while the master reads
            self._gradients.send(letter)


def letter_of(message: Message, episodes: tuple[Episode, ...], gradient: Vector) -> tuple[Any, ...]:
    """Return what goes through a pipe: plain tuples, since named ones take pickle half as long again."""
    return tuple(message), tuple(map(tuple, episodes)), gradient


class HogwildChannel(SharedChannel):
    """No master: parameters and the optimizer's averages are shared, and everyone updates them without a lock."""

    def __init__(self, config: RunConfig, *channel: Any):
        super().__init__(config, *channel)
        self._until_applied = self._until_accepted = False
        self._size = self._arrays.averages.shape[1]
        self._optimizer = new_optimizer(config, self._size)
        self._optimizer.slots = self._arrays.averages

    def _take_parameters(self) -> int:
        self._parameters[:] = self._arrays.parameters[0]  # perhaps amid another's update: that is the point
        return self._version()

    def _hand_over(self, message: Message, work: Work) -> None:
        began_s = time.monotonic()
        self._optimizer.updates = self._version()
        parameters, share = self._arrays.parameters[0, : self._size], self._arrays.progress().share
        result = self._optimizer.apply(parameters, work.gradient, share)
        self._slot["updates"] += result.applied
        self._slot["apply_s"] += time.monotonic() - began_s
        message = message._replace(rejected=int(not result.applied), gradient_norm=result.gradient_norm)
        self._put(message._replace(version_applied=self._version()), work.episodes)

    def _version(self) -> int:
        return int(self._arrays.slots["updates"].sum())


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
