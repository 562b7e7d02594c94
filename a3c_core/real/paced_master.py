"""A real run at the costs of a profile: real processes, channels and queues, as busy as those that the profile is of.

The master takes a parcel up, goes on taking messages over while learning from it takes its time, and learns then, as in
virtual time. Workers do likewise (`pace.py`). The run's clock, and all of its records, are in the profile's seconds.
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from a3c_core.models.parameters import Vector
from a3c_core.real.master import LOOK_S, Arrival, RealRuntime
from a3c_core.real.pace import MOST_LAG_S, TOLERATED, crowding
from a3c_core.runtime import Arrays, Saved

_MASTER = 0  # its number among the streams of jitter; workers' are from 1 on


class PacedRuntime(RealRuntime):
    """One run on the real clock, paced to its profile."""

    write_up_after = 1  # a heap of records would make the master late

    def __init__(self, *parts: Any):
        super().__init__(*parts)
        self._under_way = False  # an update, of what the queue's `serving` holds
        self._due_s = 0.0  # when that, or else the last one, ends, by the run's clock
        self._service_s = 0.0  # that it takes
        self._taken_s = 0.0  # when it was really begun
        self._rested = False  # since then
        self._written_up = 0  # episodes that parcels ended which the master took up
        self._updates = self._late = 0
        self._late_s = 0.0

    def start(self, is_asked_to_stop: Callable[[], bool] = lambda: False) -> None:
        super().start(is_asked_to_stop)
        self._due_s = self.clock_s

    def step(self) -> bool:
        """Do what there is to do, or wait for it; return whether the run goes on."""
        if self._under_way and self.clock_s >= self._due_s:
            self._finish()
        return super().step()

    def stop(self) -> dict[str, float]:
        """Dismiss the pool; return where time went, and how well the pace was kept, which a warning may tell, too."""
        split = super().stop() | self._lateness()
        for who, what in {"worker": "the workers' pieces of work", "master": "the master's updates"}.items():
            share, late_s = split[f"{who}_late_share"], split[f"{who}_late_s"]
            if share > TOLERATED:
                warnings.warn(
                    f"the pace was not kept: {share:.0%} of {what} were late, by {late_s:.2g} s of the profile on"
                    f" average; a pace.speed below {self._speed:g} leaves them more time",
                    stacklevel=2,
                )
        return split

    def save(self) -> Saved:
        saved = super().save()
        under_way = sum(len(arrival.episodes) for arrival, _ in self._queue.serving)  # will be taken up again
        return saved._replace(numbers={**saved.numbers, "written_up": self._written_up - under_way})

    def restore(self, numbers: dict[str, Any], arrays: Arrays, folder: Path) -> None:
        super().restore(numbers, arrays, folder)
        self._written_up = numbers["written_up"]

    # The update under way

    def _may_take(self) -> int:
        return 0 if self._under_way else super()._may_take()

    def _has_rest(self) -> bool:
        return not self._under_way and super()._has_rest()

    def _take_up(self, taken: list[tuple[Arrival, Vector]]) -> None:
        """Begin an update: when the last one was to end, or when the parcel came, if the master was idle then."""
        self._taken_s, self._queue.serving = self.clock_s, taken
        came_s = max((arrival.message.finished_s for arrival, _ in taken), default=self._taken_s)
        was_idle = came_s > self._due_s
        begun_s = max(self._due_s, came_s, self._taken_s - MOST_LAG_S * self._speed)
        self._arrays.inbox["serving"] = 1
        self._service_s = self._cost_s(was_idle)
        self._due_s = begun_s + self._service_s
        self._under_way, self._rested = True, False

    def _cost_s(self, was_idle: bool) -> float:
        """Return what the update under way takes."""
        seconds = self._core_s(was_idle)
        if not self.profile.master_first:
            seconds *= crowding(self.profile, self._arrays)
        count = self.log.totals.served + len(self._queue.joined)
        return self.profile.jittered(seconds, self.config.seed, _MASTER, count)

    def _core_s(self, was_idle: bool) -> float:
        """Return the seconds of a core that the update under way takes, by the formulas of virtual time."""
        profile, version, serving = self.profile, self.master.version, self._queue.serving
        ages = [version - arrival.message.version_pulled for arrival, _ in serving]
        if serving and all(map(self._remedies.is_too_old, ages)):
            return profile.discard_s(was_idle, len(serving))
        effort = self.master.effort(serving[0][1] if serving else None)
        ended = sum(len(arrival.episodes) for arrival, _ in serving)
        bookkeeping_s = profile.bookkeeping_s(self._written_up, ended)
        self._written_up += ended
        if not effort.updates:
            return profile.discard_s(was_idle) + bookkeeping_s
        service_s = profile.service_s(self._empty_mailboxes(), was_idle, len(serving))
        return service_s + profile.learning_s(*effort) + bookkeeping_s

    def _empty_mailboxes(self) -> int:
        if self.config.gradients.channel != "mailbox":
            return 0
        are_empty = self._slots["mail_sent"] == self._slots["mail_taken"]  # columns: whole rows would be copied
        return int(are_empty[list(self.pool.members)].sum())

    def _wait(self) -> NDArray[np.intp]:
        """Wait for messages, but not beyond the end of the update under way; what comes meanwhile is taken over."""
        if not self._under_way:
            return super()._wait()
        left_s = (self._due_s - self.clock_s) / self._speed
        self._rested |= left_s > 0
        return self.inbox.wait(min(max(0.0, left_s), LOOK_S))

    def _finish(self) -> None:
        """Let the update under way happen."""
        self._updates += 1
        if not self._rested:
            self._late += 1
            self._late_s += self.clock_s - self._due_s
        serving, self._queue.serving, self._under_way = self._queue.serving, [], False
        self._arrays.inbox["serving"] = 0
        self._learn(serving, self._taken_s)

    def _count_busy(self) -> float:
        return self._service_s

    def _lateness(self) -> dict[str, float]:
        """Return what share was late, and by how many of the profile's seconds on average."""
        paced, late, late_s = (float(self._slots[name].sum()) for name in ("paced", "late", "late_s"))
        return {
            "worker_late_share": late / max(paced, 1.0),
            "worker_late_s": late_s / max(late, 1.0),
            "master_late_share": self._late / max(self._updates, 1),
            "master_late_s": self._late_s / max(self._late, 1),
        }
