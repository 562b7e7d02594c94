"""The worker's end of the line to the master: pull parameters, deliver gradients, wait without polling.

`SharedLine` and `QueueLine` differ in how the numbers travel: through shared memory, or as the report sent them, as
pickled messages through a pipe, with a one-slot mailbox for models. `HogwildLine` has no master to deliver to (Recht
et al. 2011; Mnih et al. 2016): it updates the shared parameters itself, without a lock.
"""

import contextlib
import os
import select
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from a3c_core.config import RunConfig
from a3c_core.master import new_optimizer
from a3c_core.parameters import Vector
from a3c_core.runtimes.shared_memory import ACCEPTED, GRANTED, MAILED, RING_SLOTS, SERVED, Message, SharedArrays
from a3c_core.worker import Episode, Work

_WAKE_LIMIT_S = 0.2  # a wake-up that was missed costs no more than this
_FITS_BYTES = 12_000  # a gradient that any pipe holds whole


class Stopped(Exception):
    """The master wants this worker to leave."""


class SharedLine:
    """Parameters from the latest buffer, gradients into a ring of shared slots."""

    def __init__(self, config: RunConfig, lane: int, arrays: SharedArrays, doorbell: int, wake: int):
        """`doorbell`: descriptor whose other end wakes the master; `wake`: one whose other end the master writes to."""
        self._arrays = arrays
        self._desk = arrays.desk[0]
        self._lane = arrays.lanes[lane]
        self._lane_number = lane
        self._doorbell, self._wake = doorbell, wake
        self._poll = select.poll()
        self._poll.register(wake, select.POLLIN)
        self._parameters = np.empty(arrays.parameters.shape[1], np.float32)
        exchange = config.exchange
        self._until_applied = exchange.pull == "after_apply"
        self._until_accepted = exchange.queue == "bounded"

    def announce(self) -> None:
        """Say that this worker is up."""
        self._lane["ready"] = 1
        self._ring()

    def await_grant(self, episode: int) -> None:
        """Wait until the episode of this number may begin."""
        self._wait(GRANTED, lambda: self._lane["granted"] > episode)
        if self._lane["stop"]:
            raise Stopped

    def pull(self) -> tuple[int, Vector]:
        """Return (version, parameters [P]) to play with; they stay valid until the next pull."""
        began = time.monotonic()
        version = self._take_parameters()
        self._lane["pull_s"] += time.monotonic() - began
        return version, self._parameters

    def deliver(self, work: Work, version: int, started_s: float) -> None:
        """Hand over one gradient and what is known of its episode; wait where the exchange's settings say so."""
        lane = self._lane
        self._wait(ACCEPTED, lambda: lane["sent"] - lane["accepted"] < RING_SLOTS)
        self._hand_over(_describe(work, version, started_s), work.rollout.gradient)
        if self._until_applied:
            self._wait(SERVED, lambda: lane["served"] == lane["sent"])
        elif self._until_accepted and self._desk["room"] <= 0:
            self._wait(ACCEPTED, lambda: lane["accepted"] == lane["sent"])

    def _take_parameters(self) -> int:
        return self._arrays.read_latest(self._parameters)

    def _hand_over(self, message: Message, gradient: Vector) -> None:
        self._arrays.gradients[self._lane_number, int(self._lane["sent"]) % RING_SLOTS] = gradient
        self._put(message)

    def _put(self, message: Message) -> None:
        self._arrays.messages[self._lane_number, int(self._lane["sent"]) % RING_SLOTS] = message
        self._lane["sent"] += 1  # last: only now is the slot the master's
        self._ring()

    def _ring(self) -> None:
        if not self._desk["asleep"]:
            return
        self._desk["asleep"] = 0
        with contextlib.suppress(BlockingIOError):  # full: the master has been rung for long enough
            os.write(self._doorbell, b"!")

    def _wait(self, occasion: int, condition: Callable[[], bool]) -> None:
        if condition():
            return
        began = time.monotonic()
        lane = self._lane
        while not lane["stop"]:
            lane["waiting"] = occasion  # the master clears it when it wakes us, so that it does so once
            if condition():
                break
            if self._poll.poll(_WAKE_LIMIT_S * 1000):
                os.read(self._wake, 4096)
        lane["waiting"] = 0
        lane["wait_s"] += time.monotonic() - began


class QueueLine(SharedLine):
    """The report's way: gradients as pickled messages, models from a mailbox with one slot."""

    def __init__(self, *line: Any, gradients: Connection, mailbox: Connection):
        super().__init__(*line)
        self._gradients, self._mailbox = gradients, mailbox
        self._version = -1

    def _take_parameters(self) -> int:
        lane = self._lane
        if self._version < 0:
            # the first model; later ones are not waited for
            self._wait(MAILED, lambda: lane["mail_sent"] > lane["mail_taken"])
        if lane["mail_sent"] > lane["mail_taken"]:
            self._version, self._parameters = self._mailbox.recv()
            lane["mail_taken"] += 1
        return self._version

    def _hand_over(self, message: Message, gradient: Vector) -> None:
        if gradient.nbytes <= _FITS_BYTES:
            self._gradients.send((message, gradient))  # first, so that the master finds it when it comes
            self._announce()
        else:
            self._announce()  # first: it only fits through the pipe while the master reads
            self._gradients.send((message, gradient))

    def _announce(self) -> None:
        self._lane["sent"] += 1
        self._ring()


class HogwildLine(SharedLine):
    """No master: parameters and the optimizer's averages are shared, and everyone updates them without a lock."""

    def __init__(self, config: RunConfig, *line: Any):
        super().__init__(config, *line)
        self._until_applied = self._until_accepted = False
        self._optimizer = new_optimizer(config, self._parameters.size)
        self._optimizer.slots = self._arrays.slots

    def _take_parameters(self) -> int:
        self._parameters[:] = self._arrays.parameters[0]  # perhaps amid another's update: that is the point
        return self._version()

    def _hand_over(self, message: Message, gradient: Vector) -> None:
        began_s = time.monotonic()
        self._optimizer.updates = self._version()
        result = self._optimizer.apply(self._arrays.parameters[0], gradient)
        self._lane["updates"] += result.applied
        self._lane["apply_s"] += time.monotonic() - began_s
        message = message._replace(rejected=int(not result.applied), gradient_norm=result.gradient_norm)
        self._put(message._replace(version_applied=self._version()))

    def _version(self) -> int:
        return int(self._arrays.lanes["updates"].sum())


def _describe(work: Work, version: int, started_s: float) -> Message:
    message = Message(version, work.rollout.env_steps, started_s, time.monotonic())
    if work.episode is None:
        return message
    episode = work.episode
    return message._replace(
        ends_episode=1,
        episode=episode.number,
        score=episode.score,
        reward=episode.reward,
        steps=episode.steps,
        truncated=int(episode.truncated),
        loss=episode.loss,
        entropy=episode.entropy,
    )


def episode_of(message: Message) -> Episode | None:
    """Return the episode that a message describes, if it ends one."""
    if not message.ends_episode:
        return None
    return Episode(
        number=message.episode,
        score=message.score,
        reward=message.reward,
        steps=message.steps,
        truncated=bool(message.truncated),
        loss=message.loss,
        entropy=message.entropy,
    )
