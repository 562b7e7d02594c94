"""The `report` engine: the report's naive way, kept as the baseline of every speed claim.

Eager TensorFlow, one Keras call for every single step, and one gradient tape over the whole episode. What is computed
goes by the settings, as in all engines, so that their gradients can be compared (see docs/departures.md).
"""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from a3c_core.algorithms.base import Algorithm, Trajectory, has_target
from a3c_core.engines.base import OneAfterAnother, Rollout, rollout_of
from a3c_core.engines.python_rollout import play_steps
from a3c_core.games.base import Environment, Game
from a3c_core.models.base import Model, Outputs, heads_network, memory_shape_of
from a3c_core.models.parameters import Vector
from a3c_core.progress import START, Progress
from a3c_core.system.tensorflow import import_tensorflow


class ReportEngine(OneAfterAnother):
    """A Keras call a step, eagerly."""

    def __init__(self, game: Game, model: Model, algorithm: Algorithm):
        self.model = model
        self._game, self._algorithm = game, algorithm
        self.sample_times, self.play_share = False, 0.5
        self._tf = import_tensorflow()
        self._network = heads_network(model)
        self._outputs: list[list[Any]] = []  # [1, size] of each head, for each step since they were cleared

    @classmethod
    def why_not(cls, game: Game, model: Model | None, algorithm: Algorithm) -> str | None:
        if algorithm.hands_over != "gradient":
            return "its workers hand over gradients only"
        if memory_shape_of(model) is not None:
            return "it knows no networks that remember"
        return "it knows no target networks" if has_target(algorithm) else None

    def new_environment(self) -> Environment:
        environment: Environment = self._game.new_environment()
        return environment

    def rollout(self, parameters: Vector, environment: Environment, progress: Progress = START) -> Rollout:
        began = time.perf_counter()
        with self._tf.GradientTape() as tape:
            trajectory = self.play(parameters, environment, progress)
            played = time.perf_counter()
            loss, entropy = self._loss(trajectory)
        gradient = self._flat_gradient(tape, loss)
        self.play_share = (played - began) / (time.perf_counter() - began)
        return rollout_of(trajectory, environment.score, gradient, float(loss), float(entropy))

    def play(self, parameters: Vector, environment: Environment, progress: Progress = START) -> Trajectory:
        self._load(parameters)
        return play_steps(lambda shown: self._forward(shown.observation), self._algorithm, environment, progress)

    def gradient(self, parameters: Vector, trajectory: Trajectory) -> tuple[Vector, float, float]:
        self._load(parameters)
        with self._tf.GradientTape() as tape:
            for observation in trajectory.observations:
                self._forward(observation)
            loss, entropy = self._loss(trajectory)
        return self._flat_gradient(tape, loss), float(loss), float(entropy)

    def _load(self, parameters: Vector) -> None:
        self._network.set_weights(list(self.model.spec.views(parameters).values()))
        self._outputs.clear()

    def _forward(self, observation: NDArray[Any]) -> Outputs:
        outputs = self._tf.nest.flatten(self._network(self._tf.convert_to_tensor(observation[None])))
        self._outputs.append(outputs)
        return tuple(output[0].numpy() for output in outputs)

    def _loss(self, trajectory: Trajectory) -> tuple[Any, Any]:
        tf = self._tf
        outputs = self._outputs[: trajectory.env_steps]  # a bootstrap may have asked the network once more
        heads = tuple(tf.concat(column, axis=0) for column in zip(*outputs, strict=True))
        actions, targets = trajectory.actions.astype(np.int32), self._algorithm.targets(trajectory)
        losses, entropies = self._algorithm.losses(heads, actions, targets)
        return tf.reduce_sum(losses), tf.reduce_mean(entropies)

    def _flat_gradient(self, tape: Any, loss: Any) -> Vector:
        gradients = tape.gradient(loss, self._network.trainable_variables)
        return np.concatenate([gradient.numpy().ravel() for gradient in gradients])
