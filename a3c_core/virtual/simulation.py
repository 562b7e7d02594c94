"""The `simulate` runtime: the real learner on a virtual clock.

What happens is the stations' business; here their events are taken in the order of their time. Nothing depends on the
real clock or on other processes, so that equal settings give equal bytes.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from a3c_core import topologies
from a3c_core.algorithms import statistics_of
from a3c_core.build import make_engine
from a3c_core.config import RunConfig
from a3c_core.engines.base import Engine
from a3c_core.episode_log import EpisodeLog, Totals
from a3c_core.learners.base import Learner
from a3c_core.records.tables import EpisodeRecord, UpdateRow
from a3c_core.registry import Registry
from a3c_core.runtime import Arrays, Saved
from a3c_core.virtual.costs import CostProfile
from a3c_core.virtual.stations import Stations
from a3c_core.virtual.timeline import Timeline

STATIONS = Registry(
    "simulation of a topology",
    {
        "master": "a3c_core.virtual.master:MasterStations",
        "synchronous": "a3c_core.virtual.synchronous:RoundStations",
        "sharded": "a3c_core.virtual.sharded:ShardStations",
        "gorila": "a3c_core.virtual.gorila:GorilaStations",
        "ga3c": "a3c_core.virtual.ga3c:GA3CStations",
        "hogwild": "a3c_core.virtual.hogwild:HogwildStations",
    },
)


class Simulation:
    """One run in virtual time."""

    steps_between_looks = 256  # at the real clock, and at whether we were interrupted

    def __init__(
        self,
        config: RunConfig,
        profile: CostProfile,
        learner: Learner,
        on_episode: Callable[[EpisodeRecord], None],
        run: str = "run",
        engine: Engine | None = None,
        on_update: Callable[[UpdateRow], None] | None = None,
        timeline: Timeline | None = None,
    ):
        """`engine`: what plays and differentiates, if not the one that the settings name; `timeline`: a new one."""
        self.config, self.profile, self.learner = config, profile, learner
        statistics = statistics_of(config.algorithm) + topologies.statistics_of(config.topology)
        self.log = EpisodeLog(config.span, config.schedule, on_episode, run, on_update, statistics)
        self._timeline = Timeline(profile, config.seed) if timeline is None else timeline
        engine = engine or make_engine(config)
        rules = topologies.rules_of(config.topology, config.exchange)
        parts = config, rules, profile, engine, learner, self._timeline, self.log
        self.topology: Stations = STATIONS.get(rules.simulated_as)(*parts)
        self._restored = False

    @property
    def clock_s(self) -> float:
        """Virtual seconds since the run began."""
        return self._timeline.now_s

    @property
    def overloaded(self) -> bool:
        return self.topology.overloaded

    @property
    def totals(self) -> Totals:
        """What happened so far."""
        return self.log.totals

    def start(self, is_asked_to_stop: Callable[[], bool] = lambda: False) -> None:
        """Push the first events, unless there are some from a checkpoint."""
        if not self._restored:
            self.topology.start()

    def step(self) -> bool:
        """Let the next event happen; return whether there was one."""
        timeline, topology = self._timeline, self.topology
        if not timeline or topology.overloaded:
            topology.end()
            return False
        topology.handle(timeline.next())
        self.log.totals.master_busy_s += timeline.share_cores()
        return True

    def advance(self, steps: int) -> bool:
        """Let `steps` events happen, or as many as there are; return whether there were so many."""
        return all(self.step() for _ in range(steps))

    def stop(self) -> dict[str, float]:
        """End the run, of which nothing is left to end; no worker's real time was counted."""
        return self.topology.worked()

    def save(self) -> Saved:
        """Return all that the run needs in order to go on to the same bytes."""
        numbers, arrays, streams = self.topology.save()
        state = {"timeline": self._timeline.save(), "log": self.log.save(), "topology": numbers}
        return Saved(state, arrays, streams)

    def restore(self, numbers: dict[str, Any], arrays: Arrays, folder: Path) -> None:
        """Bring a fresh simulation to the state that `save` saw; `folder` holds the streams' files."""
        self._timeline.restore(numbers["timeline"])
        self.log.restore(numbers["log"])
        self.topology.restore(numbers["topology"], arrays, folder)
        self._restored = True
