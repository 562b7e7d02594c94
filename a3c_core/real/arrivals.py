"""What has reached a real master, and from whom more will."""

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from a3c_core.real.roster import Roster
from a3c_core.real.shared_memory import Message
from a3c_core.topologies.base import Topology
from a3c_core.topologies.parcel_queue import ParcelQueue
from a3c_core.worker import Episode

_NOBODY = -1  # a generation that no worker has


class Arrival(NamedTuple):
    """A message that was taken over, and what it found; its times are those of the run's clock."""

    slot: int
    message: Message
    episodes: tuple[Episode, ...]
    queue_length: int
    taken_s: float = math.nan  # when the master took it up

    def at(self, taken_s: float) -> "Arrival":
        """Return the same, taken up: `_replace` takes twice as long, and others wait for the master."""
        return Arrival(self.slot, self.message, self.episodes, self.queue_length, taken_s)


def arrival_at(
    clock_at: Callable[[float], float], slot: int, message: Message, episodes: tuple[Episode, ...], queue_length: int
) -> Arrival:
    """Return what has arrived, its times on the run's clock: the monotonic one ends with the machine's session."""
    placed = tuple([episode._replace(started_s=clock_at(episode.started_s)) for episode in episodes])
    return Arrival(slot, message._replace(finished_s=clock_at(message.finished_s)), placed, queue_length)


def arrival_from(saved: list[Any]) -> Arrival:
    """Return the arrival that JSON made lists of; its worker is gone, so it is of no present one's generation."""
    slot, message, episodes, *found = saved
    message = Message(*message)._replace(generation=_NOBODY)
    return Arrival(slot, message, tuple(Episode(*episode) for episode in episodes), *found)


def waiting_slots(arrivals: Iterable[Arrival], roster: Roster) -> set[int]:
    """Return the slots whose present workers have sent one of these."""
    return {one.slot for one in arrivals if roster.is_current(one.slot, one.message.generation)}


def takeable(rules: Topology, queue: ParcelQueue, roster: Roster) -> int:
    """Return of how many of the waiting parcels an update is made now."""
    waiting = len(queue)
    return rules.take(waiting, _players(rules, queue, roster)) if waiting else 0


def _players(rules: Topology, queue: ParcelQueue, roster: Roster) -> int:
    """Return how many workers will still hand something over, or just whether any will, as the rules need it."""
    if rules.counts_players:
        return len(roster.at_work() - waiting_slots(queue.items(), roster))
    return int(not roster.grants.are_done)
