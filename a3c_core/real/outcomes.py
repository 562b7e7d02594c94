"""What became of a real run's parcels: noted at once, but written up later, together: others wait for the master."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from a3c_core.algorithms import make_algorithm
from a3c_core.algorithms.base import gradients_of_play
from a3c_core.config import RunConfig
from a3c_core.episode_log import NO_STATISTICS, EpisodeLog, Parcel
from a3c_core.learners.base import Learner
from a3c_core.progress import Progress, worker_draw
from a3c_core.real.arrivals import Arrival
from a3c_core.records.tables import Status
from a3c_core.virtual.costs import CostProfile
from a3c_core.worker import Episode


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
    statistics: Mapping[str, float] = NO_STATISTICS  # that the learner adds


class Outcomes:
    """All that was dealt with: how far that brings the run, and what of it is not in the log yet."""

    def __init__(self, config: RunConfig, log: EpisodeLog, learner: Learner, profile: CostProfile):
        self._config, self._log, self._learner = config, log, learner
        changes = config.span.start != config.span.end  # or else nobody asks how long episodes take
        by_profile = changes and config.schedule.clock == "profile" and not config.is_paced
        self._repeats = gradients_of_play(make_algorithm(config.algorithm, config.learner)) - 1
        self._profile = profile
        self._episode_s = self._by_profile if by_profile else None
        self._dealt: list[Dealt] = []
        self._ended = 0  # episodes that end with those
        self.env_steps = 0  # of all that was dealt with

    def __len__(self) -> int:
        return len(self._dealt)

    def progress(self, slot: int = 0) -> Progress:
        """Return how far the run has come, with what sets the worker of `slot` apart."""
        share = (self._log.episodes + self._ended) / self._config.episodes
        return Progress(share, self.env_steps, worker_draw(self._config.seed, slot))

    def _by_profile(self, episode: Episode) -> float:
        """Return how long an episode takes a worker at the costs of the profile, were it one piece of play."""
        first_s = self._profile.cycle_s(episode.steps)
        return first_s + self._repeats * self._profile.cycle_s(0, resets=0, repeated=episode.steps)

    def note(self, dealt: Dealt) -> None:
        """Note what became of an arrival, with what the learner has to say of it."""
        arrival = dealt.arrival
        self.env_steps += arrival.message.env_steps
        if self._log.statistics and dealt.status != "dropped":
            learned = self._learner.statistics(self.progress(arrival.slot))
            dealt = dealt._replace(statistics={**learned, **arrival.message.measured})
        self._dealt.append(dealt)
        self._ended += len(arrival.episodes)

    def write_up(self) -> Iterator[tuple[int, tuple[Episode, ...]]]:
        """Enter what was noted into the log, one by one; yield the slots and the episodes that ended there."""
        dealt, self._dealt, self._ended = self._dealt, [], 0
        for one in dealt:
            _enter(one, self._log, self._config.pace.speed, self._episode_s)
            yield one.arrival.slot, one.arrival.episodes


def _enter(dealt: Dealt, log: EpisodeLog, speed: float, episode_s: Callable[[Episode], float] | None) -> None:
    """Enter what became of an arrival into the log.

    `speed`: seconds of the run's clock in a real one; `episode_s`: an episode's length for the schedule, if that is
    not its length on the run's clock.
    """
    slot, message, episodes, found, taken_s = dealt.arrival
    log.totals.env_steps += message.env_steps
    log.totals.master_busy_s = dealt.busy_s
    log.enter(
        Parcel(slot, message.version_pulled, message.finished_s, found, episodes, taken_s),
        dealt.status,
        dealt.clock_s,
        dealt.alive,
        dealt.version,
        dealt.staleness,
        dealt.gradient_norm,
        wall_s=dealt.clock_s / speed,
        episode_s=episode_s,
        statistics=dealt.statistics,
    )
