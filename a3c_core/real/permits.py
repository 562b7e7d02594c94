"""Which worker may begin now, so that no more gradients are under way than a bound on staleness allows.

A worker takes parameters only with a permit, which it spends on one gradient. Permits that a lost worker had go with
its slot, so there is nothing to take back.
"""

import math

import numpy as np
from numpy.typing import NDArray

from a3c_core.real.inbox import Inbox
from a3c_core.real.roster import Roster
from a3c_core.real.shared_memory import PERMITTED
from a3c_core.topologies.base import Topology


class Permits:
    """At most `bound` others are under way, played or waiting, while one is: so the mean staleness is at most that."""

    def __init__(self, rules: Topology, slots: NDArray[np.void], inbox: Inbox, roster: Roster):
        self._most, self._given = rules.most_under_way, slots["permits"]
        self._inbox, self._roster = inbox, roster
        self._turns: list[int] = []  # slots whose workers wait for a permit, longest first

    def give(self, waiting: int) -> None:
        """Let workers begin in their turn, as many as there is room for beside the `waiting` gradients."""
        if self._most == math.inf:
            return
        spent = self._inbox.taken
        idle = {slot for slot in self._roster.at_work() if self._given[slot] == spent[slot]}
        turns = [slot for slot in self._turns if slot in idle]
        turns += sorted(idle.difference(turns))
        room = max(0, int(self._most) - waiting - int((self._given - spent).sum()))
        self._turns = turns[room:]
        for slot in turns[:room]:
            self._given[slot] += 1
            self._inbox.wake(slot, PERMITTED)
