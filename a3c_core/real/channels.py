"""The worker's end of the channel to the master: pull parameters, deliver gradients, wait without polling.

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

from a3c_core.build import new_optimizer
from a3c_core.config import RunConfig
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
