"""The `compiled` engine where trajectories are handed over: it plays as for A3C, and serves the learner."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from a3c_core.algorithms.a3c import A3C, A3CSettings
from a3c_core.algorithms.base import Algorithm, Trajectory
from a3c_core.algorithms.ppo import PPO
from a3c_core.algorithms.trajectories import Batch, Column, TrajectoryAlgorithm
from a3c_core.algorithms.vtrace import VTrace
from a3c_core.engines import actor_critic_kernels
from a3c_core.engines.actor_critic_kernels import new_buffers
from a3c_core.engines.base import Play, Rollout, packed_rollouts
from a3c_core.engines.compiled import CompiledEngine, CompiledFlappy
from a3c_core.engines.packing import Packing
from a3c_core.games.base import Game
from a3c_core.models.base import Model
from a3c_core.models.parameters import Vector
from a3c_core.progress import START, Progress


class CompiledTrajectories(CompiledEngine):
    """PPO and V-trace by Numba kernels."""

    def __init__(self, game: Game, model: Model, algorithm: TrajectoryAlgorithm):
        super().__init__(game, model, _player(algorithm.settings.horizon))
        self.play_share = 1.0
        self._packing = Packing(game.spaces)
        self._learning_settings = _learning_settings(algorithm)
        self._learning_buffers = new_buffers(1)

    @classmethod
    def why_not(cls, game: Game, model: Model | None, algorithm: Algorithm) -> str | None:
        if type(algorithm) not in (PPO, VTrace):
            return "of the algorithms that learn from trajectories it computes ppo and vtrace only"
        return super().why_not(game, model, _player(1))  # what holds for A3C's game and model holds here

    def play(self, published: Vector, environment: CompiledFlappy, progress: Progress = START) -> Trajectory:
        trajectory = super().play(published, environment, progress)
        log_probabilities = np.empty_like(trajectory.values)
        actor_critic_kernels.write_log_probabilities(self.buffers.preferences, trajectory.actions, log_probabilities)
        return replace(trajectory, log_probabilities=log_probabilities)

    def rollout(self, published: Vector, environment: CompiledFlappy, progress: Progress = START) -> Rollout:
        parcel, (play,) = self.rollout_together(published, [environment], progress)
        return Rollout(**vars(play), gradient=parcel)

    def rollout_together(
        self, published: Vector, environments: Sequence[Any], progress: Progress = START
    ) -> tuple[Vector, Sequence[Play]]:
        trajectories = [self.play(published, environment, progress) for environment in environments]
        scores = [float(environment.game["score"][0]) for environment in environments]
        return packed_rollouts(self._packing, trajectories, scores)

    def evaluate(self, parameters: Vector, batch: Batch) -> tuple[Column, Column]:
        log_probabilities, values = np.empty_like(batch.values), np.empty_like(batch.values)
        actor_critic_kernels.evaluate_batch(
            parameters, batch.observations, batch.actions, self._learning_buffers, log_probabilities, values
        )
        return log_probabilities, values

    def batch_gradient(
        self, parameters: Vector, batch: Batch, targets: NDArray[np.float32], rows: NDArray[Any]
    ) -> tuple[Vector, Column]:
        if len(rows) > len(self._learning_buffers.actions):
            self._learning_buffers = new_buffers(len(rows))
        gradient, log_probabilities = np.empty_like(parameters), np.empty(len(rows), np.float32)
        actor_critic_kernels.batch_gradient(
            parameters,
            batch.observations,
            batch.actions,
            targets,
            rows,
            self._learning_settings,
            self._learning_buffers,
            gradient,
            log_probabilities,
        )
        return gradient, log_probabilities


def _player(horizon: int) -> A3C:
    """Return an algorithm that plays alike, in pieces of the same length."""
    return A3C(A3CSettings(t_max=horizon, update_every="t_max", standardise=False))


def _learning_settings(algorithm: TrajectoryAlgorithm) -> actor_critic_kernels.LearningSettings:
    settings = algorithm.settings
    return actor_critic_kernels.LearningSettings(
        clips=isinstance(algorithm, PPO),
        clip=np.float32(getattr(settings, "clip", 0.0)),
        huber=settings.value_loss == "huber",
        value_coefficient=np.float32(settings.value_coefficient),
        entropy_coefficient=np.float32(settings.entropy_coefficient),
    )
