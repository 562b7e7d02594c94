"""Which worker may begin how many episodes, so that in all just as many are played as the run wants."""

import numpy as np
from numpy.typing import NDArray

_AHEAD = 16  # episodes granted to a worker in advance, so that it need not wait for the next grant


class Grants:
    """Hands out the run's episodes to its lanes, and takes back what lost workers leave undone."""

    def __init__(self, lanes: NDArray[np.void], agents: int):
        self._shown = lanes["granted"]  # as the workers see it
        self._agents = agents
        self.granted = [0] * len(lanes)  # numbers of episodes below which all were granted, by lane
        self._under_way = [0] * len(lanes)  # granted, and their last gradients not taken over, by lane
        self._left = 0  # episodes that nobody has been granted

    def open(self, granted: list[int], left: int) -> None:
        """Begin with `left` episodes to grant, in lanes that have had numbers below `granted`."""
        self.granted, self._left = list(granted), left

    def grant(self, lane: int) -> bool:
        """Grant a worker one more episode, if there is one left and it has not enough; return whether.

        Towards the end of the run fewer are granted in advance, so that no worker is left alone with many.
        """
        agents = self._agents
        ahead = agents * min(_AHEAD, 1 + self._left // (2 * agents * len(self.granted)))
        if not self._left or self._under_way[lane] >= ahead:
            return False
        self._left -= 1
        self._under_way[lane] += 1
        self.granted[lane] += 1
        self._shown[lane] = self.granted[lane]
        return True

    def end_one(self, lane: int) -> None:
        """Note that an episode of `lane` has ended."""
        self._under_way[lane] -= 1

    def is_idle(self, lane: int) -> bool:
        """Return whether the worker of `lane` has nothing to play."""
        return not self._under_way[lane]

    def show(self, lane: int) -> None:
        """Let a new worker of `lane` see what was granted there."""
        self._shown[lane] = self.granted[lane]

    def take_back(self, lane: int) -> None:
        """Let others play what the lost worker of `lane` was granted, but left undone."""
        self._left += self._under_way[lane]
        self._under_way[lane] = 0
