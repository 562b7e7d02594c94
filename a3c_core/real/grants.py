"""Which worker may begin how many episodes, so that in all just as many are played as the run wants."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from a3c_core.system.jit import compilable, inner

_AHEAD = 16  # episodes granted to a worker in advance, so that it need not wait for the next grant


class Tally(NamedTuple):
    """What was granted, as arrays that compiled code may count on."""

    shown: NDArray[np.int64]  # [L], as the workers see it
    granted: NDArray[np.int64]  # [L], numbers of episodes below which all were granted
    under_way: NDArray[np.int64]  # [L], granted, and their last gradients not taken over
    left: NDArray[np.int64]  # [1], episodes that nobody has been granted


class Grants:
    """Hands out the run's episodes to its slots, and takes back what lost workers leave undone."""

    def __init__(self, slots: NDArray[np.void], agents: int):
        self._agents, self._slots = agents, len(slots)
        counts = np.zeros((2, len(slots)), np.int64)
        self.tally = Tally(slots["granted"], counts[0], counts[1], np.zeros(1, np.int64))
        views: list[memoryview] = [array.data for array in self.tally]  # which Python reads and writes faster
        self._shown, self.granted, self._under_way, self._left = views

    def open(self, granted: list[int], left: int) -> None:
        """Begin with `left` episodes to grant, in slots that have had numbers below `granted`."""
        self.tally.granted[:] = granted
        self._left[0] = left

    def grant(self, slot: int) -> bool:
        """Grant a worker one more episode, if there is one left and it has not enough; return whether."""
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
    """Return whether a worker with so many episodes under way may have another, when `left` are to be granted.

    Towards the end of the run fewer are granted in advance, so that no worker is left alone with many.
    """
    return left > 0 and under_way < agents * min(_AHEAD, 1 + left // (2 * agents * slots))


@inner
def end_and_grant(tally, slot, agents):
    """Note that an episode of `slot` has ended, and grant its worker another: `Grants.end` and `Grants.grant`."""
    tally.under_way[slot] -= 1
    if may_have_more(tally.left[0], tally.under_way[slot], tally.under_way.size, agents):
        tally.left[0] -= 1
        tally.under_way[slot] += 1
        tally.granted[slot] += 1
        tally.shown[slot] = tally.granted[slot]
