"""What every topology is: an explicit state machine over events, each with a station, a kind and a time.

A topology says who is there and who hands what to whom. It knows the clock only through its timeline, what things cost
through the profile, and how parcels become updates through the learner. All of its state can be saved.
"""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

from a3c_core.algorithms.base import HandsOver
from a3c_core.engines.base import Engine
from a3c_core.episode_log import EpisodeLog
from a3c_core.learners.base import Learner
from a3c_core.progress import Progress, worker_draw
from a3c_core.runtime import Arrays, Saved
from a3c_core.schedules import Span
from a3c_core.section import Section
from a3c_core.topologies.exchange import ExchangeConfig
from a3c_core.virtual.costs import CostProfile
from a3c_core.virtual.timeline import MASTER, Event, Timeline


class RunSettings(Protocol):
    """What a topology may know of a run's settings: a part of RunConfig, which needs the topologies."""

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
        """The settings that this very topology declares."""
        ...

    @property
    def gradients(self) -> ExchangeConfig:
        """How gradients come to a master."""
        ...


class Arrow(NamedTuple):
    """What goes from one kind of station to another."""

    sender: str
    receiver: str
    what: str


class Description(NamedTuple):
    """A topology in a few words, for pages and drawings."""

    stations: tuple[str, ...]  # in the order in which a gradient passes them
    arrows: tuple[Arrow, ...]


class Topology(ABC):
    """One run's stations, and what happens between them."""

    description: ClassVar[Description] = Description((), ())
    Settings: ClassVar[type[Section]]  # the section `exchange:` of a run
    takes: ClassVar[tuple[HandsOver, ...]] = ("gradient",)  # what workers may hand over; not inherited
    statistics: ClassVar[tuple[str, ...]] = ()  # numbers that it adds to the record of each update
    has_master: ClassVar[bool] = True  # or else workers apply their gradients themselves
    learns_at_arrival: ClassVar[bool] = True  # a worker's parcel is work for the master, or only food for others
    has_predictors: ClassVar[bool] = False  # workers have no model, but ask for their actions
    has_limit: ClassVar[bool] = True  # one master's pace bounds how many workers there can be
    overloaded = False  # more waits for a station than the run may bear

    def __init_subclass__(cls) -> None:
        """Let a class that says nothing take gradients: one that averages them, say, can't do so with trajectories."""
        super().__init_subclass__()
        cls.takes = cls.__dict__.get("takes", ("gradient",))

    def __init__(
        self,
        config: RunSettings,
        profile: CostProfile,
        engine: Engine,
        learner: Learner,
        timeline: Timeline,
        log: EpisodeLog,
    ):
        self.config, self.profile, self.engine, self.learner = config, profile, engine, learner
        self.timeline, self.log = timeline, log
        self._seed, self._episodes_in_all, self._env_steps_in_all = config.seed, config.episodes, config.env_steps

    @classmethod
    def why_not(cls, config: Any) -> tuple[str, str] | None:
        """Return the first of a run's settings that the topology can't go with, and why not; or None."""
        return None

    @classmethod
    def service_s(cls, exchange: Any, learning_s: float, writing_s: float) -> float:
        """Return how long the busiest of those who learn is at work for a parcel.

        One master would learn from it in `learning_s`, and write up its episodes in `writing_s`.
        """
        return learning_s + writing_s

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
        """Let an event happen that this topology pushed."""

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
        """Bring a topology that has not started to the state that `save` saw; `folder` holds its streams' files."""
