"""What reaches a real master, and what becomes of it."""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from a3c_core.episode_log import EpisodeLog, Parcel
from a3c_core.real.shared_memory import Message
from a3c_core.results.records import Status
from a3c_core.worker import Episode


class Arrival(NamedTuple):
    """A message that was taken over, and what it found."""

    slot: int
    message: Message
    episodes: tuple[Episode, ...]
    queue_length: int
    taken_s: float = math.nan  # the run's clock when the master took it up


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
    statistics: Mapping[str, float]  # that the learner adds

    def write_up(
        self, log: EpisodeLog, offset_s: float, episode_s: Callable[[Episode], float] | None
    ) -> tuple[Episode, ...]:
        """Enter it into the log, whose clock is `offset_s` ahead of the workers'; return the episodes that it ends."""
        slot, message, its_episodes, queue_length, taken_s = self.arrival
        episodes = tuple(episode._replace(started_s=episode.started_s + offset_s) for episode in its_episodes)
        arrived_s = message.finished_s + offset_s
        parcel = Parcel(slot, message.version_pulled, arrived_s, queue_length, episodes, taken_s)
        log.totals.env_steps += message.env_steps
        log.totals.master_busy_s = self.busy_s
        log.enter(
            parcel,
            self.status,
            self.clock_s,
            self.alive,
            self.version,
            self.staleness,
            self.gradient_norm,
            wall_s=self.clock_s,
            episode_s=episode_s,
            statistics=self.statistics,
        )
        return episodes
