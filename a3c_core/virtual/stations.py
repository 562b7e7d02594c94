"""What virtual time plays a topology with: an explicit state machine over events, each of a station, with a time.

It knows the clock only through its timeline, what things cost through the profile, what is decided through the rules of
its topology, and how parcels become updates through the learner. All of its state can be saved.
"""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Protocol

from a3c_core.engines.base import Engine
from a3c_core.episode_log import EpisodeLog
from a3c_core.learners.base import Learner
from a3c_core.progress import Progress, worker_draw
from a3c_core.runtime import Arrays, Saved
from a3c_core.schedules import Span
from a3c_core.virtual.costs import CostProfile
from a3c_core.virtual.timeline import MASTER, Event, Timeline


class RunSettings(Protocol):
    """What stations may know of a run's settings."""

    @property
    def seed(self) -> int: ...

    @property
    def episodes(self) -> int: ...

    @property
    def env_steps(self) -> int | None: ...

    @property
    def agents_per_worker(self) -> int: ...

    @property
    def span(self) -> Span: ...

    @property
    def environment(self) -> Any: ...

    @property
    def learner(self) -> Any:
        """The settings that the algorithm declares."""
        ...

    @property
    def exchange(self) -> Any:
        """The settings that the topology declares."""
        ...


class Stations(ABC):
    """One run's stations, and what happens between them. What they decide, the rules of their topology say."""

    overloaded = False  # more waits for a station than the run may bear

    def __init__(
        self,
        config: RunSettings,
        rules: Any,
        profile: CostProfile,
        engine: Engine,
        learner: Learner,
        timeline: Timeline,
        log: EpisodeLog,
    ):
        """`rules`: of the topology, with the settings of the run."""
        self.config, self.rules, self.profile = config, rules, profile
        self.engine, self.learner, self.timeline, self.log = engine, learner, timeline, log
        self._seed, self._episodes_in_all, self._env_steps_in_all = config.seed, config.episodes, config.env_steps

    @property
    def waiting(self) -> int:
        """Parcels that wait for a station."""
        return 0

    def progress(self, worker: int) -> Progress:
        """Return how far the run has come, for a worker or for the learner of its parcel."""
        env_steps, most = self.log.totals.env_steps, self._env_steps_in_all
        share = self.log.episodes / self._episodes_in_all if most is None else min(1.0, env_steps / most)
        return Progress(share, env_steps, worker_draw(self._seed, worker))

    @property
    def may_begin(self) -> int:
        """Episodes that may still begin."""
        totals, most = self.log.totals, self._env_steps_in_all
        if most is not None and totals.env_steps >= most:
            return 0
        return self._episodes_in_all - totals.episodes_begun

    @abstractmethod
    def start(self) -> None:
        """Push the first events."""

    @abstractmethod
    def handle(self, event: Event) -> None:
        """Let an event happen that was pushed here."""

    def end(self) -> None:  # noqa: B027, most have nothing to do here
        """Write down what became of parcels that still wait when nothing more will happen."""

    def worked(self) -> dict[str, float]:
        """Return how long those beside workers and master have worked, in the clock's seconds, for the summary."""
        return {}

    def who(self, station: int) -> tuple[str, int]:
        """Return a station's role and its number among those of that role, for pictures."""
        return ("worker", station) if station > MASTER else ("master", MASTER - station)

    def together(self, station: int) -> list[int]:
        """Return the stations for which an event of `station` stands, if not for itself alone."""
        return [station]

    @abstractmethod
    def save(self) -> Saved: ...

    @abstractmethod
    def restore(self, numbers: dict[str, Any], arrays: Arrays, folder: Path) -> None:
        """Bring stations that have not started to the state that `save` saw; `folder` holds their streams' files."""
