"""Train: one configuration in, records and a summary out, resumable from its last checkpoint."""

import time
from collections.abc import Callable
from pathlib import Path

from a3c_core import checkpoints
from a3c_core.config import RunConfig
from a3c_core.costs import CostProfile, load_profile
from a3c_core.engines import make_engine
from a3c_core.files import write_json
from a3c_core.interrupts import deferred_interrupts
from a3c_core.master import new_master
from a3c_core.models import MODELS
from a3c_core.records import EpisodeRecord, RecordWriter
from a3c_core.runtimes import snapshot
from a3c_core.runtimes.simulate import Simulation
from a3c_core.summary import Outcome, RunSummary, summarise

OnEpisode = Callable[[EpisodeRecord], None]
RESULTS_VERSION = 1  # raise it whenever equal settings give other results than before
_EVENTS_BETWEEN_LOOKS = 256  # at the real clock


class RunMismatch(Exception):
    """A run directory holds a run with other settings; the message is for the user."""


def train(
    config: RunConfig, directory: Path | None = None, on_episode: OnEpisode | None = None, run: str = "run"
) -> RunSummary:
    """Run `config` to its end and return its summary; with a `directory`, everything is kept there and can be resumed.

    >>> summary = train(RunConfig(workers="10", episodes=1000))  # doctest: +SKIP
    """
    return SimulatedRun(config, directory, on_episode, run).finish()


class SimulatedRun:
    """A run in virtual time: the simulation, its records and its checkpoints."""

    def __init__(
        self, config: RunConfig, directory: Path | None, on_episode: OnEpisode | None = None, run: str = "run"
    ):
        self._config, self._directory, self._on_episode = config, directory, on_episode
        self._profile = profile_of(config)
        self._model = MODELS[config.model]()
        self._master = new_master(config)
        self._writer = RecordWriter(directory)
        engine = make_engine(config.engine, self._model, config.environment, config.learner)
        self.simulation = Simulation(config, self._profile, engine, self._master, self._record, run)
        self._started = self._saved = time.monotonic()
        if directory is None or not self._resume(directory):
            self.simulation.start()

    def finish(self) -> RunSummary:
        """Play to the end; when interrupted, leave a checkpoint to go on from."""
        with deferred_interrupts() as interruption:
            while self.advance(_EVENTS_BETWEEN_LOOKS):
                if interruption.asked or time.monotonic() - self._saved > self._config.checkpoint_s:
                    self.checkpoint()
                if interruption.asked:
                    raise KeyboardInterrupt
        simulation = self.simulation
        outcome: Outcome = "overloaded" if simulation.overloaded else "finished"
        self.checkpoint()
        wall_s = time.monotonic() - self._started
        records = self._writer.finish()
        summary = summarise(outcome, records, simulation.totals, simulation.clock_s, wall_s, self._profile)
        if self._directory is not None:
            write_json(self._directory / "summary.json", summary._asdict())
        return summary

    def advance(self, events: int) -> bool:
        """Let up to `events` events happen; return whether the run goes on."""
        step = self.simulation.step
        return all(step() for _ in range(events))

    def checkpoint(self) -> None:
        """Bring the records and everything else that the run needs to disk."""
        if self._directory is None:
            return
        self._writer.flush()
        numbers, arrays = snapshot.take(self.simulation)
        checkpoints.save(
            self._directory / "checkpoints",
            self._config.model,
            self._model,
            self._master.parameters,
            self._master.optimizer,
            info={
                "config": self._config.model_dump(mode="json"),
                "records": [self._writer.parts_on_disk, self._writer.count],
                "simulation": numbers,
            },
            extra={"simulation": arrays},
            streams={"queue.f32": self.simulation.queue.write_gradients},
        )
        self._saved = time.monotonic()

    def _record(self, record: EpisodeRecord) -> None:
        self._writer.append(record)
        if self._on_episode is not None:
            self._on_episode(record)

    def _resume(self, directory: Path) -> bool:
        """Go on from the last checkpoint, if there is one; refuse that of a run with other settings."""
        if not (directory / "checkpoints").is_dir():
            self._writer.rewind(0, 0)
            return False
        checkpoint = checkpoints.load(directory)
        if checkpoint.info["config"] != self._config.model_dump(mode="json"):
            raise RunMismatch(f"{directory} holds a run with other settings: choose another directory or remove it")
        self._master.parameters[:] = checkpoint.parameters
        checkpoints.restore_optimizer(checkpoint, self._master.optimizer)
        numbers = checkpoint.info["simulation"]
        snapshot.restore(self.simulation, numbers, checkpoint.extra["simulation"])
        with (checkpoint.path / "queue.f32").open("rb") as file:
            self.simulation.queue.restore([snapshot.delivery_from(item) for item in numbers["queue"]], file)
        self._writer.rewind(*checkpoint.info["records"])
        return True


def profile_of(config: RunConfig) -> CostProfile:
    """Return the run's cost profile with its overrides."""
    overrides = {"slowdown": config.slowdown, "update_s": config.update_s}
    return load_profile(config.profile).model_copy(update={k: v for k, v in overrides.items() if v is not None})
