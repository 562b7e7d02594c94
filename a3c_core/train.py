"""Train: one configuration in, records and a summary out, resumable from its last checkpoint."""

import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

from a3c_core import checkpoints
from a3c_core.config import RunConfig
from a3c_core.costs import CostProfile, load_profile
from a3c_core.engines import make_engine
from a3c_core.files import remove_directory, write_json
from a3c_core.interrupts import Interruption, deferred_interrupts
from a3c_core.master import new_master
from a3c_core.models import MODELS
from a3c_core.records import EpisodeRecord, RecordWriter
from a3c_core.results.layout import CHECKPOINTS, SUMMARY
from a3c_core.results.settings import differences
from a3c_core.results.whole import setback
from a3c_core.runtimes import snapshot
from a3c_core.runtimes.real import RealRuntime
from a3c_core.runtimes.simulate import Simulation
from a3c_core.summary import Outcome, RunSummary, summarise

OnEpisode = Callable[[EpisodeRecord], None]
RESULTS_VERSION = 2  # raise it whenever equal settings give other results than before


class RunMismatch(Exception):
    """A run directory holds a run with other settings; the message is for the user."""


def train(
    config: RunConfig, directory: Path | None = None, on_episode: OnEpisode | None = None, run: str = "run"
) -> RunSummary:
    """Run `config` to its end and return its summary; with a `directory`, everything is kept there and can be resumed.

    >>> summary = train(RunConfig(workers="10", episodes=1000))  # doctest: +SKIP
    """
    kind = SimulatedRun if config.runtime == "simulate" else RealRun
    return kind(config, directory, on_episode, run).finish()


class Run(ABC):
    """A runtime with its records and its checkpoints."""

    runtime: Simulation | RealRuntime
    _steps_between_looks: int  # at the clock, and at whether we were interrupted

    def __init__(
        self, config: RunConfig, directory: Path | None, on_episode: OnEpisode | None = None, run: str = "run"
    ):
        self._config, self._directory, self._on_episode = config, directory, on_episode
        self._profile = profile_of(config)
        self._model = MODELS[config.model]()
        self._master = new_master(config)
        self._writer = RecordWriter(directory)
        self.runtime = self._new_runtime(run)
        self._began = self._saved = time.monotonic()
        self._resumed = directory is not None and self._resume(directory)

    def finish(self) -> RunSummary:
        """Play to the end; when interrupted, leave a checkpoint to go on from."""
        time_split: dict[str, float] = {}
        with deferred_interrupts() as interruption:
            try:
                self._start(interruption)
                self._saved = time.monotonic()
                while self.advance(self._steps_between_looks):
                    if interruption.asked or time.monotonic() - self._saved > self._config.checkpoint_s:
                        self.checkpoint()
                    if interruption.asked:
                        raise KeyboardInterrupt
                clock_s = self.runtime.clock_s
            finally:
                time_split = self._stop()
        self.checkpoint()
        return self._summarise(clock_s, time_split)

    def advance(self, steps: int) -> bool:
        """Let the runtime take up to `steps` steps; return whether the run goes on."""
        step = self.runtime.step
        return all(step() for _ in range(steps))

    def checkpoint(self) -> None:
        """Bring the records and everything else that the run needs to disk."""
        if self._directory is None:
            return
        numbers, arrays = self._state()
        self._writer.flush()
        checkpoints.save(
            self._directory / CHECKPOINTS,
            self._config.model,
            self._model,
            self._master.parameters,
            self._master.optimizer,
            info={
                "config": self._config.model_dump(mode="json"),
                "records": [self._writer.parts_on_disk, self._writer.count],
                "runtime": numbers,
            },
            extra={"runtime": arrays},
            streams=self._streams(),
        )
        self._saved = time.monotonic()

    @abstractmethod
    def _new_runtime(self, run: str) -> Simulation | RealRuntime: ...

    @abstractmethod
    def _state(self) -> tuple[dict[str, Any], snapshot.Arrays]:
        """Return what the runtime needs in order to go on, as numbers for JSON and as arrays."""

    @abstractmethod
    def _restore(self, checkpoint: checkpoints.Checkpoint) -> None: ...

    def _streams(self) -> dict[str, Any]:
        """Return further files of a checkpoint: {name: what writes it}."""
        return {}

    @abstractmethod
    def _start(self, interruption: Interruption) -> None:
        """Bring up the workers, unless they are already there."""

    def _stop(self) -> dict[str, float]:
        """End what runs in the background; return where the workers' time went."""
        return {}

    def _record(self, record: EpisodeRecord) -> None:
        self._writer.append(record)
        if self._on_episode is not None:
            self._on_episode(record)

    def _resume(self, directory: Path) -> bool:
        """Go on from the newest checkpoint that the records support, if any; refuse a run with other settings."""
        lost, checkpoint = setback(directory), self._newest(directory)
        if lost is not None:
            warnings.warn(f"{directory}: {lost.words}", stacklevel=2)
            for path in lost.checkpoints:
                remove_directory(path)
            checkpoint = self._newest(directory)
        (directory / SUMMARY).unlink(missing_ok=True)  # it is not finished until it says so again
        self._writer.rewind(checkpoints.records_of(checkpoint.path) or 0 if checkpoint else 0)
        if checkpoint is not None:
            self._take_over(checkpoint)
        return checkpoint is not None

    def _newest(self, directory: Path) -> checkpoints.Checkpoint | None:
        """Return the newest sound checkpoint, if there are any; refuse that of a run with other settings."""
        if not checkpoints.found(directory):
            return None
        checkpoint = checkpoints.load(directory)
        saved = checkpoint.info.get("config")
        if not isinstance(saved, dict):
            raise checkpoints.CheckpointError(f"{checkpoint.path} is not of a run: its manifest has no settings")
        if checkpoints.records_of(checkpoint.path) is None:
            raise checkpoints.CheckpointError(f"{checkpoint.path} does not say how many records it rests on")
        if differences(saved, self._config.model_dump(mode="json")):
            raise RunMismatch(f"{directory} holds a run with other settings: choose another directory or remove it")
        return checkpoint

    def _take_over(self, checkpoint: checkpoints.Checkpoint) -> None:
        self._master.parameters[:] = checkpoint.parameters
        checkpoints.restore_optimizer(checkpoint, self._master.optimizer)
        try:
            self._restore(checkpoint)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OSError) as error:
            problem = f"{checkpoint.path} does not hold what this run needs to go on: {type(error).__name__} {error}"
            raise checkpoints.CheckpointError(problem) from error

    def _summarise(self, clock_s: float, time_split: dict[str, float]) -> RunSummary:
        records = self._writer.finish()
        outcome: Outcome = "overloaded" if self.runtime.overloaded else "finished"
        wall_s = time.monotonic() - self._began
        totals = self.runtime.ledger.totals
        summary = summarise(outcome, records, totals, clock_s, wall_s, self._profile, self._config, time_split)
        if self._directory is not None:
            write_json(self._directory / SUMMARY, summary._asdict())
        return summary


class SimulatedRun(Run):
    """A run in virtual time; it resumes to the same bytes."""

    runtime: Simulation
    _steps_between_looks = 256

    def _start(self, interruption: Interruption) -> None:
        if not self._resumed:
            self.runtime.start()

    def _new_runtime(self, run: str) -> Simulation:
        engine = make_engine(self._config.engine, self._model, self._config.environment, self._config.learner)
        return Simulation(self._config, self._profile, engine, self._master, self._record, run)

    def _state(self) -> tuple[dict[str, Any], snapshot.Arrays]:
        return snapshot.take(self.runtime)

    def _streams(self) -> dict[str, Any]:
        return {"queue.f32": self.runtime.queue.write_gradients}

    def _restore(self, checkpoint: checkpoints.Checkpoint) -> None:
        numbers = checkpoint.info["runtime"]
        snapshot.restore(self.runtime, numbers, checkpoint.extra["runtime"])
        with (checkpoint.path / "queue.f32").open("rb") as file:
            self.runtime.queue.restore([snapshot.delivery_from(item) for item in numbers["queue"]], file)


class RealRun(Run):
    """A run with real workers; a resumed one plays again what was under way, and counts no episode twice."""

    runtime: RealRuntime
    _steps_between_looks = 1

    def _new_runtime(self, run: str) -> RealRuntime:
        return RealRuntime(self._config, self._profile, self._master, self._record, run)

    def _start(self, interruption: Interruption) -> None:
        self.runtime.start(lambda: interruption.asked)

    def _stop(self) -> dict[str, float]:
        return self.runtime.stop()

    def _state(self) -> tuple[dict[str, Any], snapshot.Arrays]:
        self.runtime.settle()
        return snapshot.take_real(self.runtime), {}

    def _restore(self, checkpoint: checkpoints.Checkpoint) -> None:
        snapshot.restore_real(self.runtime, checkpoint.info["runtime"])


def profile_of(config: RunConfig) -> CostProfile:
    """Return the run's cost profile with its overrides."""
    overrides = {"slowdown": config.slowdown, "update_s": config.update_s}
    return load_profile(config.profile).model_copy(update={k: v for k, v in overrides.items() if v is not None})
