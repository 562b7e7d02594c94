"""What has reached a real master, and from whom more will."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from a3c_core.real.roster import Roster
from a3c_core.real.shared_memory import Message
from a3c_core.topologies.parcel_queue import ParcelQueue
from a3c_core.worker import Episode


class Arrival(NamedTuple):
    """A message that was taken over, and what it found."""

    slot: int
    message: Message
    episodes: tuple[Episode, ...]
    queue_length: int
    taken_s: float = math.nan  # the run's clock when the master took it up


def waiting_slots(arrivals: Iterable[Arrival], roster: Roster) -> set[int]:
    """Return the slots whose present workers have sent one of these."""
    return {one.slot for one in arrivals if roster.is_current(one.slot, one.message.generation)}


def players(topology: Any, queue: ParcelQueue, roster: Roster) -> int:
    """Return how many workers will still hand something over, or just whether any will, as the topology wants it."""
    if topology.counts_players:
        return len(roster.at_work() - waiting_slots(queue.items(), roster))
    return int(not roster.grants.are_done)
