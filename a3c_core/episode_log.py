"""What every runtime writes down: totals, one record per episode, and what the schedule may know."""

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from a3c_core.histogram import Histogram
from a3c_core.records.tables import EpisodeRecord, Status, UpdateRow
from a3c_core.schedules import Measured, ScheduleConfig, Span, may_change, rule_of, wanted
from a3c_core.worker import UNMEASURED, Episode

NO_STATISTICS = UNMEASURED


@dataclass(slots=True)
class Parcel:
    """What travels with a gradient from its worker to where it is applied. Times are those of the run's clock."""

    worker: int
    version_pulled: int
    arrived_s: float = 0.0
    queue_length: int = 0  # that it found
    episodes: tuple[Episode, ...] = ()  # that this gradient ends
    taken_s: float = 0.0  # whoever applies it took it up
    measured: Mapping[str, float] = field(default_factory=lambda: NO_STATISTICS)  # by the worker that computed it

    def save(self) -> list[Any]:
        """Return it for JSON."""
        return [
            self.worker,
            self.version_pulled,
            self.arrived_s,
            self.queue_length,
            [episode.save() for episode in self.episodes],
            self.taken_s,
            self.measured,
        ]

    @classmethod
    def restored(cls, saved: list[Any]) -> "Parcel":
        """Return the parcel that JSON made a list of."""
        parcel = cls(*saved)
        parcel.episodes = tuple([Episode.restored(episode) for episode in parcel.episodes])
        return parcel


class Moment(NamedTuple):
    """When an episode was recorded, how long the master had worked by then, and how long the episode took."""

    clock_s: float
    master_busy_s: float
    episode_s: float


@dataclass
class Totals:
    """What happened so far, over all gradients."""

    episodes_begun: int = 0
    env_steps: int = 0
    sent: int = 0
    applied: int = 0
    dropped: int = 0
    rejected: int = 0
    lost: int = 0  # with their worker
    crashes: int = 0
    queue_peak: int = 0
    master_busy_s: float = 0.0
    last_arrival_s: float = 0.0
    staleness: Histogram = field(default_factory=Histogram)  # of gradients applied

    @property
    def served(self) -> int:
        """Gradients that the master has dealt with."""
        return self.applied + self.rejected

    @property
    def outcomes(self) -> int:
        """Gradients of which it is known what became of them."""
        return self.served + self.dropped + self.lost

    def count(self, status: Status, staleness: int) -> None:
        """Count one gradient by what became of it."""
        if status == "applied":
            self.applied += 1
            self.staleness.add(staleness)
        elif status == "dropped":
            self.dropped += 1
        else:
            self.rejected += 1


class EpisodeLog:
    """Counts gradients, makes episodes' records, and asks the schedule how many workers there should be."""

    def __init__(
        self,
        span: Span,
        schedule: ScheduleConfig,
        on_episode: Callable[[EpisodeRecord], None],
        run: str,
        on_update: Callable[[UpdateRow], None] | None = None,
        statistics: tuple[str, ...] = (),
    ):
        """`statistics`: names of the numbers that the algorithm adds to the record of each update."""
        self.totals = Totals()
        self.episodes = 0  # recorded
        self.window: deque[Moment] = deque(maxlen=schedule.window)  # the last recorded episodes
        self.changed_at = 0  # episodes recorded when the worker count last changed
        self._rule = rule_of(span, schedule)
        self._is_fixed = self._rule.start == self._rule.end  # nobody asks how long episodes take
        self._on_episode, self._on_update, self.statistics = on_episode, on_update, statistics
        self._run = run

    def enter(
        self,
        parcel: Parcel,
        status: Status,
        clock_s: float,
        alive: int,
        version: int,
        staleness: int = 0,
        gradient_norm: float = math.nan,
        wall_s: float = math.nan,
        episode_s: Callable[[Episode], float] | None = None,
        statistics: Mapping[str, float] = NO_STATISTICS,
    ) -> None:
        """Enter one gradient that the master has dealt with, and make records of the episodes that it ends.

        `episode_s`: gives an episode's length for the schedule, where that is not its length on the run's clock.
        """
        totals = self.totals
        totals.count(status, staleness)
        if self._on_update is not None:
            # The fields of an UpdateRecord. A plain tuple is made faster, and this is on a busy master's way.
            row: UpdateRow = (
                totals.applied + totals.rejected + totals.dropped - 1,
                parcel.worker,
                parcel.version_pulled,
                version,
                staleness,
                parcel.queue_length,
                parcel.arrived_s,
                clock_s,
                0.0 if status == "dropped" else clock_s - parcel.taken_s,
                gradient_norm,
                status,
            )
            if self.statistics:
                row += tuple([statistics.get(name, math.nan) for name in self.statistics])
            self._on_update(row)
        if parcel.episodes:
            self.enter_episodes(parcel, status, clock_s, alive, version, staleness, gradient_norm, wall_s, episode_s)

    def enter_episodes(
        self,
        parcel: Parcel,
        status: Status,
        clock_s: float,
        alive: int,
        version: int,
        staleness: int = 0,
        gradient_norm: float = math.nan,
        wall_s: float = math.nan,
        episode_s: Callable[[Episode], float] | None = None,
    ) -> None:
        """Make records of the episodes that a parcel ends; it need not be a gradient."""
        for episode in parcel.episodes:
            if not self._is_fixed:
                length_s = parcel.arrived_s - episode.started_s if episode_s is None else episode_s(episode)
                self.window.append(Moment(clock_s, self.totals.master_busy_s, length_s))
            # by position: names take three times as long, and there is one for every episode
            record = EpisodeRecord(
                self._run,
                self.episodes,
                parcel.worker,
                episode.number,
                alive,
                episode.score,
                episode.reward,
                episode.steps,
                episode.truncated,
                episode.started_s,
                parcel.arrived_s,
                clock_s,
                wall_s,
                parcel.version_pulled,
                version,
                staleness,
                parcel.queue_length,
                clock_s - parcel.arrived_s,
                self.totals.master_busy_s,
                episode.loss,
                episode.entropy,
                gradient_norm,
                status,
            )
            self.episodes += 1
            self._on_episode(record)

    def target_workers(self, alive: int, queue_length: int) -> int:
        """Return how many workers the schedule wants now; a change is remembered."""
        since_change = self.episodes - self.changed_at
        if self._is_fixed or not self.window or not may_change(self._rule, alive, since_change):
            return alive
        first, last = self.window[0], self.window[-1]
        elapsed_s, busy_s = last.clock_s - first.clock_s, last.master_busy_s - first.master_busy_s
        measured = Measured(
            workers=alive,
            mean_episode_s=self._mean_episode_s(),
            episodes_since_change=since_change,
            utilisation=min(1.0, busy_s / elapsed_s) if elapsed_s > 0 else 0.0,
            queue_length=queue_length,
        )
        target = wanted(self._rule, measured)
        if target != alive:
            self.changed_at = self.episodes
        return target

    def _mean_episode_s(self) -> float:
        """Return the mean length of the window's episodes, or 0 before it is full."""
        if len(self.window) != self.window.maxlen:
            return 0.0
        total_s = 0.0
        for moment in self.window:  # not sum(), which rounds differently from Python 3.12 on
            total_s += moment.episode_s
        return total_s / len(self.window)

    def save(self) -> dict[str, Any]:
        """Return the log as numbers for JSON."""
        return {
            "totals": {**vars(self.totals), "staleness": self.totals.staleness.save()},
            "episodes": self.episodes,
            "window": list(self.window),
            "changed_at": self.changed_at,
        }

    def restore(self, numbers: dict[str, Any]) -> None:
        """Bring a fresh log to the state that `save` saw."""
        staleness = Histogram()
        staleness.restore(numbers["totals"]["staleness"])
        self.totals = Totals(**{**numbers["totals"], "staleness": staleness})
        self.episodes, self.changed_at = numbers["episodes"], numbers["changed_at"]
        self.window.extend(Moment(*moment) for moment in numbers["window"])
