"""The learner of trajectories: parcels are collected to a batch, from which all of its updates are made at once."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from a3c_core.algorithms.trajectories import Batch, TrajectoryAlgorithm, batch_of
from a3c_core.engines.base import LearningEngine
from a3c_core.engines.packing import Packing
from a3c_core.learners.base import Effort
from a3c_core.models.parameters import Vector
from a3c_core.optimizers import Optimizer, UpdateResult
from a3c_core.progress import START, Progress
from a3c_core.streams import shuffle, stream_words

_ORDER_KEY = 2  # keeps the streams of minibatches apart from those of play and of costs


class TrajectoryLearner:
    """Owns the parameters, the optimizer and a batch that is being collected."""

    def __init__(
        self,
        parameters: Vector,
        optimizer: Optimizer,
        algorithm: TrajectoryAlgorithm,
        engine: LearningEngine,
        packing: Packing,
        parcel_size: int,
        seed: int,
    ):
        self.parameters, self.optimizer = parameters, optimizer
        self.parcel_size = parcel_size
        self._algorithm, self._engine, self._packing, self._seed = algorithm, engine, packing, seed
        self._parcels: list[Vector] = []  # of the batch that is being collected
        self._env_steps = 0  # in them
        self._statistics: dict[str, float] = {}  # of the latest batch

    @property
    def version(self) -> int:
        """Updates applied so far, each from a minibatch."""
        return self.optimizer.updates

    @property
    def publication(self) -> Vector:
        return self.parameters

    def effort(self, parcel: Vector | None) -> Effort:
        """Return what `receive` would do with this parcel; without one, what `learn_rest` would."""
        env_steps = self._env_steps + (0 if parcel is None else self._packing.env_steps(parcel))
        if parcel is not None and env_steps < self._algorithm.settings.batch_steps:
            return Effort(0, 0)
        return self._effort(env_steps)

    def effort_at(self, env_steps: float) -> tuple[int, Effort]:
        parcels = math.ceil(self._algorithm.settings.batch_steps / env_steps)
        return parcels, self._effort(round(parcels * env_steps))

    def _effort(self, env_steps: int) -> Effort:
        minibatches = min(self._algorithm.minibatches, env_steps)
        return Effort(self._algorithm.epochs * minibatches, self._algorithm.epochs * env_steps)

    def receive(self, parcel: Vector, progress: Progress = START, rate: float = 1.0) -> UpdateResult:
        """Let a parcel join the batch, and learn from that if it is complete; refuse one that is not finite.

        `rate`: what the learning rate is multiplied by for the batch, should this complete it.
        """
        parcel, learning_rate = self._packing.without_rest(parcel), self.optimizer.rate_at(progress.share) * rate
        if not self._packing.is_finite(parcel):
            self.optimizer.rejected += 1
            self._statistics = {}
            return UpdateResult(False, math.nan, learning_rate)
        self._parcels.append(parcel)
        self._env_steps += self._packing.env_steps(parcel)
        if self._env_steps < self._algorithm.settings.batch_steps:
            return UpdateResult(True, math.nan, learning_rate, settles="nothing")
        return self.learn_rest(progress, rate)

    def learn_rest(self, progress: Progress = START, rate: float = 1.0) -> UpdateResult:
        """Learn from the batch as it is, and begin another."""
        batch = batch_of([trajectory for parcel in self._parcels for trajectory in self._packing.unpack(parcel)])
        self.forget_batch()
        targets = self._targets(batch)
        log_probabilities = np.empty_like(batch.values)  # of the last epoch, each by the parameters before its update
        pace = progress.share, rate
        results = [self._update(batch, targets, rows, log_probabilities, *pace) for rows in self._minibatches(batch)]
        measured = self._algorithm.measured(log_probabilities, batch, targets)
        self._statistics = dict(zip(self._algorithm.statistics, measured, strict=True))
        norms = [result.gradient_norm for result in results if result.applied]
        return UpdateResult(
            applied=bool(norms),
            gradient_norm=float(np.mean(norms)) if norms else math.nan,
            learning_rate=results[0].learning_rate,
            settles="batch",
        )

    def statistics(self, progress: Progress = START) -> Mapping[str, float]:
        """Return what is to be recorded of the latest batch, by name; nothing of a parcel that was refused."""
        return self._statistics

    def follow(self, progress: Progress) -> bool:
        return False

    def forget_batch(self) -> None:
        """Begin another batch; what the last one held is played again, or was learned from."""
        self._parcels, self._env_steps = [], 0

    def save(self) -> tuple[dict[str, Any], dict[str, Vector]]:
        """Return (nothing, the batch that is being collected)."""
        return {}, {f"parcel{place}": parcel for place, parcel in enumerate(self._parcels)}

    def restore(self, numbers: dict[str, Any], arrays: dict[str, Vector]) -> None:
        self._parcels = [arrays[f"parcel{place}"] for place in range(len(arrays))]
        self._env_steps = sum(map(self._packing.env_steps, self._parcels))

    def _targets(self, batch: Batch) -> NDArray[np.float32]:
        return self._algorithm.batch_targets(batch, lambda: self._engine.evaluate(self.parameters, batch))

    def _minibatches(self, batch: Batch) -> list[NDArray[Any]]:
        """Return the steps of each update, in an order that belongs to (seed, version) alone."""
        rows = np.arange(batch.env_steps)
        if self._algorithm.minibatches == 1:
            return [rows] * self._algorithm.epochs
        stream = stream_words(self._seed, self.version, 0, _ORDER_KEY)[0]
        minibatches: list[NDArray[Any]] = []
        for _ in range(self._algorithm.epochs):
            shuffle(rows, stream)
            minibatches += np.array_split(rows.copy(), min(self._algorithm.minibatches, batch.env_steps))
        return minibatches

    def _update(
        self,
        batch: Batch,
        targets: NDArray[np.float32],
        rows: NDArray[Any],
        log_probabilities: Vector,
        share: float,
        rate: float,
    ) -> UpdateResult:
        gradient, log_probabilities[rows] = self._engine.batch_gradient(self.parameters, batch, targets, rows)
        if self._algorithm.averages:
            gradient = gradient / np.float32(len(rows))
        return self.optimizer.apply(self.parameters, gradient, share, rate)
