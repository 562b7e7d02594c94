"""Who is at work in a real run: workers are spawned, granted episodes, replaced when lost, and dismissed."""

import time
from collections.abc import Iterator, Set

import numpy as np
from numpy.typing import NDArray

from a3c_core.config import RunConfig
from a3c_core.learners.base import Learner
from a3c_core.real.grants import Grants
from a3c_core.real.inbox import Inbox
from a3c_core.real.pool import Loss, Pool
from a3c_core.real.shared_memory import AFTER_THIS_EPISODE, GRANTED, PERMITTED, SLOT

TIME_SPLIT = ("play_s", "act_s", "gradient_s", "pull_s", "wait_s", "apply_s", "cpu_s")  # a slot's, of all its workers
PACE_KEPT = ("paced", "late", "late_s")  # the same, of paced workers


class RunFailed(Exception):
    """More workers were lost than the run may replace; the message says why."""


class Roster:
    """The workers of a run by slot, each with a generation, so that one that was given up is not listened to."""

    def __init__(self, config: RunConfig, slots: NDArray[np.void], pool: Pool, inbox: Inbox, learner: Learner):
        self._config, self._slots = config, slots
        self._pool, self._inbox, self._learner = pool, inbox, learner
        self._generations = [0] * len(slots)  # workers lost or dismissed so far
        self._leaving: set[int] = set()  # slots whose workers were told to go
        self.grants = Grants(slots, config.agents_per_worker)

    @property
    def alive(self) -> int:
        """Workers at work, those on their way out left aside."""
        return len(self._pool.members) - len(self._leaving)

    @property
    def up(self) -> int:
        """Workers that have said that they are up."""
        return int(self._slots["ready"].sum())

    def is_current(self, slot: int, generation: int) -> bool:
        """Return whether a worker of that generation has the slot now."""
        return generation == self._generations[slot]

    def change(self, target: int) -> None:
        """Spawn or dismiss workers until there are `target`."""
        alive = self.alive
        if target > alive:
            free = [slot for slot in range(len(self._slots)) if slot not in self._pool.members]
            for slot in free[: target - alive]:
                self.spawn(slot)
        for slot in sorted(self._pool.members.keys() - self._leaving)[target:]:
            self._leaving.add(slot)
            self._slots["stop"][slot] = AFTER_THIS_EPISODE
            self._pool.wake(slot)

    def spawn(self, slot: int) -> None:
        """Start a worker in a free slot."""
        self.grants.show(slot)
        self._pool.spawn(slot, self.grants.granted[slot])
        self._inbox.post(slot, self._learner)

    def grant_next(self, slot: int) -> bool:
        """Let a worker begin one more episode, unless it leaves or has enough; return whether."""
        if slot in self._leaving or not self.grants.grant(slot):
            return False
        self._inbox.wake(slot, GRANTED)
        return True

    def grant_all(self) -> None:
        """Grant in advance to all who are up: to new ones, and what lost or dismissed workers have left undone."""
        slots = [slot for slot in self._pool.members if self._slots["ready"][slot]]
        while slots := [slot for slot in slots if self.grant_next(slot)]:
            pass

    def at_work(self) -> set[int]:
        """Return the slots whose workers are up and have something to play."""
        return {slot for slot in self._pool.members if self._slots["ready"][slot] and not self.grants.is_idle(slot)}

    def lost(self, waiting: Set[int] = frozenset()) -> Iterator[Loss]:
        """Yield workers that have ended or deliver nothing; those of the slots `waiting` wait for the master."""
        for slot, member in self._pool.members.items():
            row = self._slots[slot]
            if slot in waiting or row["waiting"] == PERMITTED or (row["ready"] and self.grants.is_idle(slot)):
                member.heard_s = time.monotonic()  # who has nothing to play is not stuck
        yield from self._pool.lost()

    def replace(self, loss: Loss) -> bool:
        """Make an end of a lost worker and spawn another; return False if it was to leave anyway."""
        slot = loss.slot
        self._pool.remove(slot)
        self._vacate(slot)
        if slot in self._leaving:
            self._leaving.discard(slot)
            return False
        if loss.hopeless:
            raise RunFailed(f"worker {slot} can't start: {loss.reason}")
        return True

    def _vacate(self, slot: int) -> None:
        """Make a slot ready for another worker. Should the last one live all the same, nobody listens to it."""
        self._generations[slot] += 1
        self._slots["generation"][slot] = self._generations[slot]
        for name in set(SLOT.names or ()) - {"generation", "updates", *TIME_SPLIT, *PACE_KEPT}:
            self._slots[name][slot] = 0
        self._inbox.clear(slot, self._generations[slot])
        self.grants.take_back(slot)
