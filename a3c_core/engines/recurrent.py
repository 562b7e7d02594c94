"""The `tensorflow` engine for networks that remember: backpropagation through time, truncated where play was cut.

A piece of play is unrolled from the memory that was held as it began, which is a constant for its gradient.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from a3c_core.algorithms.base import Algorithm, Trajectory
from a3c_core.engines.remembering import Remembering
from a3c_core.engines.tensorflow import TensorFlowEngine
from a3c_core.games.base import Environment, Game
from a3c_core.models.base import Forward, Outputs
from a3c_core.models.lstm import CELL, LstmModel
from a3c_core.models.parameters import Vector
from a3c_core.progress import START, Progress


class RecurrentEngine(TensorFlowEngine):
    """Looks at all observations of a batch at once, and then remembers step by step, side by side for all agents."""

    def __init__(self, game: Game, model: LstmModel, algorithm: Algorithm):
        super().__init__(game, model, algorithm)
        import keras

        tf, (observations, *_) = self._tf, self._network.inputs
        self._shape = model.memory_shape
        self._below = keras.Model(observations, self._network.get_layer("hidden").output)
        self._cell = self._network.get_layer(CELL)
        self._heads = [self._network.get_layer(head) for head, _ in model.heads]
        seen = tf.TensorSpec([None, *game.spaces.observation_shape], observations.dtype)
        whole, column = tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.float32)
        memory, places = tf.TensorSpec([None, *self._shape], tf.float32), tf.TensorSpec([None, None], tf.int32)
        experience = [seen, whole, column, memory, places, whole]
        self._act = tf.function(self._remember_graph, [seen, memory], autograph=False)
        self._gradient = tf.function(self._gradient_graph, experience, autograph=False)

    def new_environment(self) -> Any:
        return Remembering(super().new_environment(), self._shape)

    def play(self, published: Vector, environment: Environment, progress: Progress = START) -> Trajectory:
        (trajectory,) = self.play_together(published, [environment], progress)
        return trajectory

    def forward(self, parameters: Vector) -> Forward:
        """Return the network as a function of an episode's observations, one after the other."""
        self._load(parameters)
        memory = np.zeros((1, *self._shape), np.float32)

        def forward(observation: NDArray[Any]) -> Outputs:
            nonlocal memory
            *outputs, memory = self._act(observation[None], memory)
            return tuple(output[0].numpy() for output in outputs)

        return forward

    def _look_at_all(self, environments: Sequence[Any]) -> Outputs:
        observations = np.stack([environment.observation for environment in environments])
        *outputs, memories = self._act(observations, np.stack([environment.memory for environment in environments]))
        for environment, memory in zip(environments, memories.numpy(), strict=True):
            environment.next_memory = memory
        return tuple(output.numpy() for output in outputs)

    def _experience(self, trajectories: Sequence[Trajectory]) -> tuple[NDArray[Any], ...]:
        """Return observations, actions and targets [N], the memories [B, ...], and the order of steps."""
        memories = np.stack([np.asarray(trajectory.memory) for trajectory in trajectories])
        lengths = [trajectory.env_steps for trajectory in trajectories]
        return (*super()._experience(trajectories), memories, *side_by_side(lengths))

    def _remember_graph(self, observations: Any, memory: Any) -> list[Any]:
        """Return the outputs [B, size] of each head, and the memory after these observations [B, ...]."""
        remembered = self._remember(memory, self._below(observations))
        return [*self._outputs(remembered[:, 0]), remembered]

    def _learning_graph(self, observations: Any, *order: Any) -> list[Any]:
        tf, (memory, places, rows) = self._tf, order
        hidden = tf.gather(self._below(observations), places)  # [T, B, units]
        memories = tf.scan(self._remember, hidden, memory)  # [T, B, 2, units]
        return self._outputs(tf.gather(tf.reshape(memories[:, :, 0], [-1, self._shape[1]]), rows))

    def _remember(self, memory: Any, hidden: Any) -> Any:
        """Return what is remembered [B, 2, units] once the hidden layer has been looked at."""
        _, kept = self._cell(hidden, self._tf.unstack(memory, axis=1))
        return self._tf.stack(kept, axis=1)

    def _outputs(self, remembered: Any) -> list[Any]:
        return [head(remembered) for head in self._heads]


def side_by_side(lengths: Sequence[int]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return (places [T, B], rows [N]) for B trajectories of these lengths, whose N steps stand one after the other.

    places: where step t of trajectory b stands; that of any step, which leads nowhere, once b is over.
    rows: where each of the N steps stands in [T * B].
    """
    count, longest = len(lengths), max(lengths)
    rows = np.concatenate([np.arange(length) * count + b for b, length in enumerate(lengths)])
    places = np.zeros(longest * count, np.int32)
    places[rows] = np.arange(rows.size)
    return places.reshape(longest, count), rows.astype(np.int32)
