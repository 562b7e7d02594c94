"""What reaches a real master, and what becomes of it."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from a3c_core.episode_log import EpisodeLog, Parcel
from a3c_core.real.roster import Roster
from a3c_core.real.shared_memory import Message
from a3c_core.results.records import Status
from a3c_core.topologies.parcel_queue import ParcelQueue
from a3c_core.worker import Episode


class Arrival(NamedTuple):
    """A message that was taken over, and what it found."""

    slot: int
    message: Message
    episodes: tuple[Episode, ...]
    queue_length: int


class Dealt(NamedTuple):
    """What became of an arrival, still to be written up."""

    arrival: Arrival
    status: Status
    clock_s: float
    busy_s: float  # that the master had worked by then
    alive: int
    version: int
    staleness: int
    gradient_norm: float
    taken_s: float  # the run's clock when the master took it up
    statistics: Mapping[str, float]  # that the learner adds


def waiting_slots(queue: ParcelQueue, roster: Roster) -> set[int]:
    """Return the slots whose present workers have something in the queue."""
    return {one.slot for one in queue.items() if roster.is_current(one.slot, one.message.generation)}


def players(topology: Any, queue: ParcelQueue, roster: Roster) -> int:
    """Return how many workers will still hand something over, or just whether any will, as the topology wants it."""
    if topology.counts_players:
        return len(roster.at_work() - waiting_slots(queue, roster))
    return int(not roster.grants.are_done)


def write_up(
    dealt: Dealt, log: EpisodeLog, offset_s: float, episode_s: Callable[[Episode], float] | None
) -> tuple[Episode, ...]:
    """Enter what became of an arrival into the log; return the episodes that it ended.

    `offset_s`: from the monotonic clock to the run's; `episode_s`: an episode's length for the schedule, if it has one.
    """
    message, slot = dealt.arrival.message, dealt.arrival.slot
    episodes = tuple(episode._replace(started_s=episode.started_s + offset_s) for episode in dealt.arrival.episodes)
    arrived_s, found = message.finished_s + offset_s, dealt.arrival.queue_length
    log.totals.env_steps += message.env_steps
    log.totals.master_busy_s = dealt.busy_s
    log.enter(
        Parcel(slot, message.version_pulled, arrived_s, found, episodes, dealt.taken_s),
        dealt.status,
        dealt.clock_s,
        dealt.alive,
        dealt.version,
        dealt.staleness,
        dealt.gradient_norm,
        wall_s=dealt.clock_s,
        episode_s=episode_s,
        statistics=dealt.statistics,
    )
    return episodes
