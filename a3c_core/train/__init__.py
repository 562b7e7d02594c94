"""Train: one configuration in, records and a summary out, resumable from its last checkpoint.

`python -m a3c_core.train --help` (__main__.py) does so from the command line.
"""

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from a3c_core import topologies
from a3c_core.algorithms import statistics_of
from a3c_core.build import new_learner, parts_of
from a3c_core.config import RunConfig
from a3c_core.models.base import Model
from a3c_core.models.parameters import Vector
from a3c_core.optimizers import Optimizer
from a3c_core.records import checkpoints
from a3c_core.records.blocks import RecordBlock
from a3c_core.records.completeness import setback
from a3c_core.records.digests import digest_of, sealed
from a3c_core.records.files import remove_directory, write_json
from a3c_core.records.layout import CHECKPOINTS, DIGESTS, SEAL, SETTINGS, SNAPSHOTS, SUMMARY
from a3c_core.records.tables import EpisodeRecord, RecordWriter, update_table_with
from a3c_core.runtime import Runtime
from a3c_core.saved_settings import differences
from a3c_core.system.signals import deferred_interrupts
from a3c_core.train.snapshots import Snapshots
from a3c_core.train.summary import Outcome, RunSummary, summarise
from a3c_core.virtual.capacity import profile_of
from a3c_core.virtual.simulation import Simulation

OnEpisode = Callable[[EpisodeRecord], None]
OnBlock = Callable[[RecordBlock], None]
RESULTS_VERSION = 3  # raise it whenever equal settings give other results than before
_UNTOLD_VERSION = 2  # of checkpoints that do not tell it


class RunMismatch(Exception):
    """A run directory holds a run with other settings, or of another version; the message is for the user."""


def train(
    config: RunConfig,
    directory: Path | None = None,
    on_episode: OnEpisode | None = None,
    run: str = "run",
    on_block: OnBlock | None = None,
) -> RunSummary:
    """Run `config` to its end and return its summary.

    Args:
        config: all settings of the run.
        directory: where records, checkpoints and the summary are kept. If it holds an interrupted run with the same
            settings, that run goes on from its last checkpoint. None: nothing is kept.
        on_episode: called with the record of every episode, in the order of their numbers.
        run: the name of the run in its records.
        on_block: called with blocks of records instead of `on_episode`, where the runtime makes blocks.

    Returns:
        The numbers of the whole run: score, staleness, updates, use of the master, and others.

    Raises:
        ValueError: the parts of the run do not fit each other; the message names the setting.
        RunMismatch: `directory` holds a run with other settings, or of another version of the program.
        CheckpointError: a checkpoint in `directory` can't be used.
        RunFailed: more workers were lost than `config.restarts` allows.
        KeyboardInterrupt: the run was interrupted, and left a checkpoint in `directory`.

    Example:
        >>> summary = train(RunConfig(workers="10", episodes=1000), Path("results/run"))  # doctest: +SKIP
        >>> summary.score_mean, summary.staleness_mean  # doctest: +SKIP
    """
    with deferred_interrupts() as interruption:  # what is imported here could swallow a KeyboardInterrupt
        made = Run(config, directory, on_episode, run, on_block)
    if interruption.asked:
        raise KeyboardInterrupt
    return made.finish()


class Run:
    """A runtime with its records and its checkpoints."""

    def __init__(
        self,
        config: RunConfig,
        directory: Path | None,
        on_episode: OnEpisode | None = None,
        run: str = "run",
        on_block: OnBlock | None = None,
    ):
        self._config, self._directory = config, directory
        self._on_episode, self._on_block = on_episode, on_block
        self._profile = profile_of(config)
        game, self._model, _ = parts_of(config)
        self.learner = new_learner(config)
        self._writer = RecordWriter(directory, game.score.whole)
        updates = update_table_with(statistics_of(config.algorithm) + topologies.statistics_of(config.topology))
        self._updates = None if directory is None else RecordWriter(directory, table=updates)
        self._began = self._saved = time.monotonic()
        checkpoint = None if directory is None else self._rewind(directory)
        self.runtime = self._new_runtime(run)
        if checkpoint is not None:
            self._take_over(checkpoint)
        folder = (directory or Path()) / SNAPSHOTS
        wanted = config.snapshots if directory is not None else 0
        self._snapshots = Snapshots(folder, wanted, config.episodes, self._writer.count)

    def finish(self) -> RunSummary:
        """Play to the end; when interrupted, leave a checkpoint to go on from."""
        time_split: dict[str, float] = {}
        with deferred_interrupts() as interruption:
            try:
                self.runtime.start(lambda: interruption.asked)
                self._saved = time.monotonic()
                self._keep_snapshot()
                while self.advance(self._snapshots.steps(self.runtime.steps_between_looks)):
                    self._keep_snapshot()
                    if interruption.asked or time.monotonic() - self._saved > self._config.checkpoint_s:
                        self.checkpoint()
                    if interruption.asked:
                        raise KeyboardInterrupt
                clock_s = self.runtime.clock_s
            finally:
                time_split = self.runtime.stop()
        self._keep_snapshot()
        self.checkpoint()
        return self._summarise(clock_s, time_split)

    def advance(self, steps: int) -> bool:
        """Let the runtime take up to `steps` steps; return whether the run goes on."""
        return self.runtime.advance(steps)

    def checkpoint(self) -> None:
        """Bring the records and everything else that the run needs to disk."""
        if self._directory is None:
            return
        numbers, arrays, streams = self.runtime.save()
        learner_numbers, learner_arrays = self.learner.save()
        for writer in self._written().values():
            writer.flush()
        checkpoints.save(
            self._directory / CHECKPOINTS,
            *self._learned(),
            info={
                **self._info(),
                **self._vouched(),
                "runtime": numbers,
                **({"learner": learner_numbers} if learner_numbers else {}),
            },
            extra={"runtime": arrays, **({"learning": learner_arrays} if learner_arrays else {})},
            streams=streams,
        )
        self._saved = time.monotonic()

    def _keep_snapshot(self) -> None:
        """Keep what was learned so far, if a part of the run has ended: to look at, not to go on from."""
        if self._directory is not None and self._snapshots.is_due(self._writer.count):
            checkpoints.save(self._directory / SNAPSHOTS, *self._learned(), info=self._info(), keep_all=True)

    def _learned(self) -> tuple[str, Model, Vector, Optimizer]:
        return self._config.model, self._model, self.learner.parameters, self.learner.optimizer

    def _info(self) -> dict[str, Any]:
        """Return what a checkpoint tells of the run: its settings, and how many records it rests on."""
        written = self._written()
        return {
            "config": self._config.model_dump(mode="json"),
            "results_version": RESULTS_VERSION,
            **{name: [writer.parts_on_disk, writer.count] for name, writer in written.items()},
        }

    def _vouched(self) -> dict[str, Any]:
        """Return the digests of the parts of records that a checkpoint rests on."""
        return {checkpoints.PART_DIGESTS: {name: writer.part_digests for name, writer in self._written().items()}}

    def _written(self) -> dict[str, RecordWriter]:
        return {"records": self._writer, **({"updates": self._updates} if self._updates is not None else {})}

    def _new_runtime(self, run: str) -> Runtime:
        """Return a runtime that has not started; what is not needed for it is not imported."""
        parts, updates = (self._config, self._profile, self.learner), self._updates
        on_update = None if updates is None else updates.append
        if self._config.is_paced:
            from a3c_core.real.paced_master import PacedRuntime

            return PacedRuntime(*parts, self._record, run, on_update)
        if not self._config.is_virtual:
            from a3c_core.real.direct import DirectRuntime, is_direct
            from a3c_core.real.master import RealRuntime

            if is_direct(self._config, self.learner):
                return DirectRuntime(*parts, self._record_block, run, None if updates is None else updates.extend)
            return RealRuntime(*parts, self._record, run, on_update)
        return Simulation(*parts, self._record, run, on_update=on_update)

    def _record(self, record: EpisodeRecord) -> None:
        self._writer.append(record)
        if self._on_episode is not None:
            self._on_episode(record)

    def _record_block(self, block: RecordBlock) -> None:
        self._writer.extend(block.table(self._writer.schema))
        if self._on_block is not None:
            self._on_block(block)
        elif self._on_episode is not None:
            for record in block.records():
                self._on_episode(record)

    def _rewind(self, directory: Path) -> checkpoints.Checkpoint | None:
        """Return the newest checkpoint that the records support, if any, and forget what came after it."""
        lost, checkpoint = setback(directory), self._newest(directory)
        if lost is not None:
            warnings.warn(f"{directory}: {lost.words}", stacklevel=2)
            for path in lost.checkpoints:
                remove_directory(path)
            checkpoint = self._newest(directory)
        rows = checkpoints.records_of(checkpoint.path) or 0 if checkpoint else 0
        self._writer.rewind(rows, checkpoints.vouched_parts(checkpoint.path) if checkpoint else ())
        updates = checkpoints.records_of(checkpoint.path, "updates") if checkpoint else 0
        if updates is None:  # it began before there were any: all of its updates, or none
            self._updates = None
        elif self._updates is not None:
            self._updates.rewind(updates, checkpoints.vouched_parts(checkpoint.path, "updates") if checkpoint else ())
        (directory / SUMMARY).unlink(missing_ok=True)  # not before: it vouches for the files that are gone now
        return checkpoint

    def _newest(self, directory: Path) -> checkpoints.Checkpoint | None:
        """Return the newest sound checkpoint, if there are any; refuse that of a run with other settings."""
        if not checkpoints.found(directory):
            return None
        try:
            checkpoint = checkpoints.load(directory)
        except checkpoints.Damaged as error:
            warnings.warn(f"{directory}: {error}: it starts over", stacklevel=3)
            return None
        saved = checkpoint.info.get("config")
        if not isinstance(saved, dict):
            raise checkpoints.CheckpointError(f"{checkpoint.path} is not of a run: its manifest has no settings")
        if checkpoints.records_of(checkpoint.path) is None:
            raise checkpoints.CheckpointError(f"{checkpoint.path} does not say how many records it rests on")
        if differences(saved, self._config.model_dump(mode="json")):
            raise RunMismatch(f"{directory} holds a run with other settings: choose another directory or remove it")
        version = checkpoint.info.get("results_version", _UNTOLD_VERSION)
        if version != RESULTS_VERSION:
            raise RunMismatch(
                f"{directory} holds a run of results version {version}, and this program makes version"
                f" {RESULTS_VERSION}: choose another directory or remove it"
            )
        return checkpoint

    def _take_over(self, checkpoint: checkpoints.Checkpoint) -> None:
        self.learner.parameters[:] = checkpoint.parameters
        checkpoints.restore_optimizer(checkpoint, self.learner.optimizer)
        try:
            self.learner.restore(checkpoint.info.get("learner", {}), checkpoint.extra.get("learning", {}))
            self.runtime.restore(checkpoint.info["runtime"], checkpoint.extra["runtime"], checkpoint.path)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OSError) as error:
            problem = f"{checkpoint.path} does not hold what this run needs to go on: {type(error).__name__} {error}"
            raise checkpoints.CheckpointError(problem) from error

    def _summarise(self, clock_s: float, time_split: dict[str, float]) -> RunSummary:
        digests = {writer.file: writer.finish() for writer in self._written().values()}
        outcome: Outcome = "overloaded" if self.runtime.overloaded else "finished"
        wall_s = time.monotonic() - self._began
        totals = self.runtime.log.totals
        summary = summarise(
            outcome, self._writer.column, totals, self.learner.version, clock_s, wall_s, self._config, time_split
        )._replace(results_version=RESULTS_VERSION)
        if self._directory is not None:
            summary = summary._replace(update_rows=self._updates.count if self._updates else 0)
            digests[SETTINGS] = digest_of(self._config.model_dump(mode="json"))
            write_json(self._directory / SUMMARY, sealed({**summary._asdict(), DIGESTS: digests}, SEAL))
            for writer in self._written().values():
                writer.remove_parts()
        return summary
