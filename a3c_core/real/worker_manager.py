"""The workers of a real run: how many run, how many episodes each may play, how many gradients may be in flight."""

import math
import time
from collections.abc import Iterator, Set
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from a3c_core.config import RunConfig
from a3c_core.learners.base import Learner
from a3c_core.real.shared_memory import AFTER_THIS_EPISODE, GRANTED, PERMITTED, SLOT
from a3c_core.real.transport import Inbox
from a3c_core.real.worker_pool import Loss, Pool
from a3c_core.system.jit import compilable, inner
from a3c_core.topologies.base import Topology

_AHEAD = 16  # episodes granted to a worker in advance, so that it need not wait for the next grant
TIME_SPLIT = ("play_s", "act_s", "gradient_s", "pull_s", "wait_s", "apply_s", "cpu_s")  # of all workers of a slot
PACE_KEPT = ("paced", "late", "late_s")  # the same, of paced workers


class QuotaCounts(NamedTuple):
    """The counts of granted episodes, as arrays that Python and compiled code share."""

    shown: NDArray[np.int64]  # [L], what the workers see of `granted`
    granted: NDArray[np.int64]  # [L], all episodes with lower numbers were granted
    under_way: NDArray[np.int64]  # [L], episodes granted whose last gradient the master has not received
    left: NDArray[np.int64]  # [1], episodes granted to no worker yet


class EpisodeQuota:
    """Grants the run's episodes to the workers, so that exactly as many are played as the run asks for.

    Episodes that a lost worker was granted and did not finish are granted to other workers.
    """

    def __init__(self, slots: NDArray[np.void], agents: int):
        self._agents, self._slots = agents, len(slots)
        counts = np.zeros((2, len(slots)), np.int64)
        self.counts = QuotaCounts(slots["granted"], counts[0], counts[1], np.zeros(1, np.int64))
        views: list[memoryview] = [array.data for array in self.counts]  # which Python reads and writes faster
        self._shown, self.granted, self._under_way, self._left = views

    def open(self, granted: list[int], left: int) -> None:
        """Begin with `left` episodes to grant; slot i was granted all numbers below `granted[i]` before."""
        self.counts.granted[:] = granted
        self._left[0] = left

    def grant(self, slot: int) -> bool:
        """Grant a worker one more episode and return True, unless none is left or the worker has enough."""
        if not may_have_more(self._left[0], self._under_way[slot], self._slots, self._agents):
            return False
        self._left[0] -= 1
        self._under_way[slot] += 1
        self.granted[slot] += 1
        self._shown[slot] = self.granted[slot]
        return True

    def end(self, slot: int, episodes: int = 1) -> None:
        """Note that episodes of `slot` have ended."""
        self._under_way[slot] -= episodes

    def is_idle(self, slot: int) -> bool:
        """Return whether the worker of `slot` has nothing to play."""
        return not self._under_way[slot]

    @property
    def are_done(self) -> bool:
        """Whether nothing is left to play, and all that was played has been taken over."""
        return not self._left[0] and not any(self._under_way)

    def show(self, slot: int) -> None:
        """Let a new worker of `slot` see what was granted there."""
        self._shown[slot] = self.granted[slot]

    def take_back(self, slot: int) -> None:
        """Let others play what the lost worker of `slot` was granted, but left undone."""
        self._left[0] += self._under_way[slot]
        self._under_way[slot] = 0


@compilable
def may_have_more(left, under_way, slots, agents):
    """Return whether a worker with `under_way` episodes may be granted another while `left` are not granted yet.

    Near the end of the run fewer episodes are granted in advance, so that the last ones are spread over all workers.
    """
    return left > 0 and under_way < agents * min(_AHEAD, 1 + left // (2 * agents * slots))


@inner
def end_and_grant(counts, slot, agents):
    """Note that an episode of `slot` has ended, and grant its worker another: `end` and `grant` of `EpisodeQuota`."""
    counts.under_way[slot] -= 1
    if may_have_more(counts.left[0], counts.under_way[slot], counts.under_way.size, agents):
        counts.left[0] -= 1
        counts.under_way[slot] += 1
        counts.granted[slot] += 1
        counts.shown[slot] = counts.granted[slot]


class RunFailed(Exception):
    """More workers were lost than the run may replace; the message says why."""


class WorkerManager:
    """Starts, replaces and dismisses the workers of a run, and grants them episodes.

    Each worker has a slot. A slot counts the generations of its workers, and messages of a replaced one are ignored.
    """

    def __init__(self, config: RunConfig, slots: NDArray[np.void], pool: Pool, inbox: Inbox, learner: Learner):
        self._config, self._slots = config, slots
        self._pool, self._inbox, self._learner = pool, inbox, learner
        self._generations = [0] * len(slots)  # workers lost or dismissed so far
        self._leaving: set[int] = set()  # slots whose workers were told to go
        self.quota = EpisodeQuota(slots, config.agents_per_worker)

    @property
    def alive(self) -> int:
        """Number of workers that were started and not told to leave."""
        return len(self._pool.members) - len(self._leaving)

    @property
    def up(self) -> int:
        """Number of workers that have reported that they are ready."""
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
        self.quota.show(slot)
        self._pool.spawn(slot, self.quota.granted[slot])
        self._inbox.post(slot, self._learner)

    def grant_next(self, slot: int) -> bool:
        """Let a worker begin one more episode, unless it leaves or has enough; return whether."""
        if slot in self._leaving or not self.quota.grant(slot):
            return False
        self._inbox.wake(slot, GRANTED)
        return True

    def grant_all(self) -> None:
        """Grant episodes in advance to all workers that are up, among them those that lost workers did not finish."""
        slots = [slot for slot in self._pool.members if self._slots["ready"][slot]]
        while slots := [slot for slot in slots if self.grant_next(slot)]:
            pass

    def at_work(self) -> set[int]:
        """Return the slots whose workers are up and have episodes to play."""
        return {slot for slot in self._pool.members if self._slots["ready"][slot] and not self.quota.is_idle(slot)}

    def lost(self, waiting: Set[int] = frozenset()) -> Iterator[Loss]:
        """Yield workers that have ended, or deliver nothing although they neither are idle nor wait for the master.

        Args:
            waiting: slots whose workers wait for the master to apply their gradient.
        """
        for slot, member in self._pool.members.items():
            row = self._slots[slot]
            if slot in waiting or row["waiting"] == PERMITTED or (row["ready"] and self.quota.is_idle(slot)):
                member.heard_s = time.monotonic()  # who has nothing to play is not stuck
        yield from self._pool.lost()

    def replace(self, loss: Loss) -> bool:
        """Clear the slot of a lost worker; return whether the run needs another worker in its place.

        Raises:
            RunFailed: the worker failed before it was up, and others would fail alike.
        """
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
        """Reset a slot for another worker. Should the last one still run, its messages are of an old generation."""
        self._generations[slot] += 1
        self._slots["generation"][slot] = self._generations[slot]
        for name in set(SLOT.names or ()) - {"generation", "updates", *TIME_SPLIT, *PACE_KEPT}:
            self._slots[name][slot] = 0
        self._inbox.clear(slot, self._generations[slot])
        self.quota.take_back(slot)


class StalenessThrottle:
    """Limits in-flight gradients to bound + 1, so that the mean staleness is at most `bound`.

    A worker needs a permit to take parameters and spends it on one gradient. Permits are counted per slot, as messages
    are, so that those of a lost worker end with its generation.
    """

    def __init__(self, rules: Topology, slots: NDArray[np.void], inbox: Inbox, worker_manager: WorkerManager):
        self._most, self._given = rules.most_under_way, slots["permits"]
        self._inbox, self._worker_manager = inbox, worker_manager
        self._turns: list[int] = []  # slots whose workers wait for a permit, longest first

    def give(self, waiting: int) -> None:
        """Give permits to idle workers, longest waiting first, as many as fit beside `waiting` gradients."""
        if self._most == math.inf:
            return
        spent = self._inbox.taken
        idle = {slot for slot in self._worker_manager.at_work() if self._given[slot] == spent[slot]}
        turns = [slot for slot in self._turns if slot in idle]
        turns += sorted(idle.difference(turns))
        room = max(0, int(self._most) - waiting - int((self._given - spent).sum()))
        self._turns = turns[room:]
        for slot in turns[:room]:
            self._given[slot] += 1
            self._inbox.wake(slot, PERMITTED)
