"""Who did what from when to when in a run: re-simulated in virtual time, or read from the records of a real run."""

from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from a3c_core.build import new_learner
from a3c_core.config import RunConfig
from a3c_core.records import checkpoints
from a3c_core.records.layout import CONFIG, ResultsError, read_json
from a3c_core.records.tables import UPDATE_TABLE, read_records
from a3c_core.saved_settings import upgraded
from a3c_core.trusted_modules import refuse_untrusted
from a3c_core.virtual.capacity import profile_of
from a3c_core.virtual.simulation import Simulation
from a3c_core.virtual.stations import Stations
from a3c_core.virtual.timeline import Event, Timeline

PLAYED, UPDATED = "played", "updated"  # the kinds of what a real run's records tell


class Span(NamedTuple):
    """A piece of work, or a wait."""

    role: str  # such as worker or master
    number: int  # among those of its role
    kind: str  # of the event that ends it
    start_s: float
    end_s: float


class Tracer(Timeline):
    """A timeline that remembers what happened."""

    topology: Stations  # whose stations these are

    def __init__(self, *parts: Any):
        super().__init__(*parts)
        self._spans: list[Span] = []
        self._under_way: dict[int, tuple[str, float, list[int]]] = {}  # station -> kind, since when, for whom it stands

    def work(self, seconds: float, station: int, kind: str, count: int, cores: int = 1) -> float:
        self._under_way[station] = kind, self.now_s, self.topology.together(station)
        return super().work(seconds, station, kind, count, cores)

    def at(self, time_s: float, station: int, kind: str) -> None:
        self._under_way[station] = kind, self.now_s, self.topology.together(station)
        super().at(time_s, station, kind)

    def next(self) -> Event:
        event = super().next()
        self._spans += self._ended(*self._under_way.pop(event.station))
        return event

    @property
    def spans(self) -> list[Span]:
        """What has happened, and what is under way."""
        return [*self._spans, *(span for one in self._under_way.values() for span in self._ended(*one))]

    def _ended(self, kind: str, start_s: float, stations: list[int]) -> list[Span]:
        if self.now_s <= start_s:
            return []
        return [Span(*self.topology.who(station), kind, start_s, self.now_s) for station in stations]


def settings_of(run: Path) -> RunConfig:
    """Return a run's settings, as its folder holds them."""
    settings = read_json(run / CONFIG)
    try:
        if settings is None:
            settings = checkpoints.load(run).info.get("config")
        if not isinstance(settings, dict):
            raise ResultsError(f"{run} does not hold a run's settings")
        refuse_untrusted(settings, (), str(run))
        return RunConfig.model_validate(upgraded(settings))
    except (checkpoints.CheckpointError, ValidationError, ValueError) as error:
        raise ResultsError(f"{run} is not a run whose settings can be read: {error}") from error


def spans_until(run: Path, config: RunConfig, end_s: float) -> list[Span]:
    """Return what happened in a run before `end_s`, and what was under way then."""
    return _simulated(config, end_s) if config.is_virtual else _recorded(run, end_s)


def _simulated(config: RunConfig, end_s: float) -> list[Span]:
    """Play the run again from its beginning: equal settings give equal bytes."""
    profile = profile_of(config)
    tracer = Tracer(profile, config.seed)
    simulation = Simulation(config, profile, new_learner(config), lambda record: None, timeline=tracer)
    tracer.topology = simulation.topology
    simulation.start()
    while tracer.now_s < end_s and simulation.step():
        pass
    return tracer.spans


def _recorded(run: Path, end_s: float) -> list[Span]:
    """Read what a real run's records tell: when episodes were played, and when the master was at work on gradients."""
    episodes = read_records(run).to_pandas()
    updates = read_records(run, UPDATE_TABLE).to_pandas()
    updates = updates[updates["service_s"] > 0].drop_duplicates("applied_s")
    if episodes.empty or updates.empty:
        raise ResultsError(f"{run} holds no records of gradients")
    played = zip(episodes["worker"], episodes["started_s"], episodes["finished_s"], strict=True)
    applied = zip(updates["applied_s"] - updates["service_s"], updates["applied_s"], strict=True)
    spans = [Span("worker", worker, PLAYED, start, end) for worker, start, end in played if start < end_s]
    return spans + [Span("master", 0, UPDATED, start, end) for start, end in applied if start < end_s]
