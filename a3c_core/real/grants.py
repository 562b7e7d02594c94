"""Which worker may begin how many episodes, so that in all just as many are played as the run wants."""

import numpy as np
from numpy.typing import NDArray

_AHEAD = 16  # episodes granted to a worker in advance, so that it need not wait for the next grant


class Grants:
    """Hands out the run's episodes to its slots, and takes back what lost workers leave undone."""

    def __init__(self, slots: NDArray[np.void], agents: int):
        self._shown = slots["granted"]  # as the workers see it
        self._agents = agents
        self.granted = [0] * len(slots)  # numbers of episodes below which all were granted, by slot
        self._under_way = [0] * len(slots)  # granted, and their last gradients not taken over, by slot
        self._left = 0  # episodes that nobody has been granted

    def open(self, granted: list[int], left: int) -> None:
        """Begin with `left` episodes to grant, in slots that have had numbers below `granted`."""
        self.granted, self._left = list(granted), left

    def grant(self, slot: int) -> bool:
        """Grant a worker one more episode, if there is one left and it has not enough; return whether.

        Towards the end of the run fewer are granted in advance, so that no worker is left alone with many.
        """
        agents = self._agents
        ahead = agents * min(_AHEAD, 1 + self._left // (2 * agents * len(self.granted)))
        if not self._left or self._under_way[slot] >= ahead:
            return False
        self._left -= 1
        self._under_way[slot] += 1
        self.granted[slot] += 1
        self._shown[slot] = self.granted[slot]
        return True

    def end(self, slot: int, episodes: int = 1) -> None:
        """Note that episodes of `slot` have ended."""
        self._under_way[slot] -= episodes

    def runs_low(self, slot: int) -> bool:
        """Return whether the worker of `slot` has used up half of what it can be granted in advance."""
        return 2 * self._under_way[slot] <= _AHEAD * self._agents

    def is_idle(self, slot: int) -> bool:
        """Return whether the worker of `slot` has nothing to play."""
        return not self._under_way[slot]

    @property
    def are_done(self) -> bool:
        """Whether nothing is left to play, and all that was played has been taken over."""
        return not self._left and not any(self._under_way)

    def show(self, slot: int) -> None:
        """Let a new worker of `slot` see what was granted there."""
        self._shown[slot] = self.granted[slot]

    def take_back(self, slot: int) -> None:
        """Let others play what the lost worker of `slot` was granted, but left undone."""
        self._left += self._under_way[slot]
        self._under_way[slot] = 0
