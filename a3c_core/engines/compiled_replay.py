"""The `compiled` engine where actors hand over experience: it plays as value methods do, and serves the learners."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from a3c_core.algorithms.base import Trajectory
from a3c_core.algorithms.dqn import DQN
from a3c_core.engines import value_kernels
from a3c_core.engines.base import Play, Rollout, packed_rollouts
from a3c_core.engines.compiled import CompiledEngine, CompiledFlappy
from a3c_core.engines.packing import ExperiencePacking, Transitions
from a3c_core.games import flappy
from a3c_core.games.base import Game
from a3c_core.models.base import Model
from a3c_core.models.parameters import Vector
from a3c_core.progress import START, Progress


class CompiledReplay(CompiledEngine):
    """DQN by Numba kernels."""

    def __init__(self, game: Game, model: Model, algorithm: DQN):
        super().__init__(game, model, algorithm)
        self.play_share = 1.0
        self.packing = ExperiencePacking(game.spaces)
        settings = algorithm.settings
        self._replay_settings = value_kernels.ReplaySettings(
            np.float32(settings.gamma), settings.double, settings.value_loss == "huber"
        )
        self._replay_buffers = value_kernels.new_buffers(settings.minibatch or 1)

    def play(self, published: Vector, environment: CompiledFlappy, progress: Progress = START) -> Trajectory:
        """Play by the parameters alone; nothing is asked of a target network."""
        buffers = self.buffers
        self._prepare(environment, progress)
        played = environment.stream, self._steps_left(environment), self.settings, buffers
        steps, died = value_kernels.explore(published[: self._size], environment.game[0], *played)
        seen = buffers.observations[: steps + 1, : flappy.STATE_SIZE].copy()
        return Trajectory(
            observations=seen[:steps],
            actions=buffers.actions[:steps].copy(),
            rewards=buffers.rewards[:steps].copy(),
            values=np.zeros(steps, np.float32),
            bootstrap_value=0.0,
            terminated=died,
            truncated=self._advance(environment, steps, died),
            next_observation=None if died else seen[steps],
        )

    def rollout(self, published: Vector, environment: CompiledFlappy, progress: Progress = START) -> Rollout:
        parcel, (play,) = self.rollout_together(published, [environment], progress)
        return Rollout(**vars(play), gradient=parcel)

    def rollout_together(
        self, published: Vector, environments: Sequence[Any], progress: Progress = START
    ) -> tuple[Vector, Sequence[Play]]:
        trajectories = [self.play(published, environment, progress) for environment in environments]
        scores = [float(environment.game["score"][0]) for environment in environments]
        return packed_rollouts(self.packing, trajectories, scores)

    def replay_gradient(self, published: Vector, batch: Transitions) -> tuple[Vector, float]:
        if len(batch.actions) > len(self._replay_buffers.rewards):
            self._replay_buffers = value_kernels.new_buffers(len(batch.actions))
        gradient = np.empty(self._size, np.float32)
        settings, buffers = self._replay_settings, self._replay_buffers
        return gradient, value_kernels.replay_gradient(published, batch, settings, buffers, gradient)
