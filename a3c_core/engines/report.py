"""The `report` engine: the report's naive way, kept as the baseline of every speed claim.

Eager TensorFlow, one Keras call for every single step, and one gradient tape over the whole episode. Only the
report's two mistakes are mended (see `a3c_core.returns`), so that its gradients can be compared with those of the
other engines.
"""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from a3c_core.config import EnvironmentConfig, LearnerConfig
from a3c_core.engines.base import OneAfterAnother, Rollout, Trajectory, rollout_of
from a3c_core.engines.stepwise import GymEnvironment, play_steps, targets_of
from a3c_core.engines.tensorflow import a3c_losses, logits_network, tf
from a3c_core.models import Model
from a3c_core.parameters import Vector


class ReportEngine(OneAfterAnother):
    """A Keras call a step, eagerly."""

    def __init__(self, model: Model, environment: EnvironmentConfig, learner: LearnerConfig):
        self.model = model
        self._environment = environment
        self._learner = learner
        self.sample_times, self.play_share = False, 0.5
        self._steps_at_once = learner.t_max if learner.update_every == "t_max" else None
        self._network = logits_network(model.build())
        self._outputs: list[tuple[Any, Any]] = []  # (logits [actions], value []) of each step since they were cleared

    def new_environment(self) -> GymEnvironment:
        return GymEnvironment(self._environment)

    def rollout(self, parameters: Vector, environment: GymEnvironment) -> Rollout:
        began = time.perf_counter()
        with tf.GradientTape() as tape:
            trajectory = self.play(parameters, environment)
            played = time.perf_counter()
            loss, entropy = self._loss(trajectory)
        gradient = self._flat_gradient(tape, loss)
        self.play_share = (played - began) / (time.perf_counter() - began)
        return rollout_of(trajectory, environment.score, gradient, float(loss), float(entropy))

    def play(self, parameters: Vector, environment: GymEnvironment) -> Trajectory:
        self._load(parameters)
        return play_steps(self._policy, environment, self._steps_at_once)

    def gradient(self, parameters: Vector, trajectory: Trajectory) -> tuple[Vector, float, float]:
        self._load(parameters)
        with tf.GradientTape() as tape:
            for observation in trajectory.observations:
                self._policy(observation)
            loss, entropy = self._loss(trajectory)
        return self._flat_gradient(tape, loss), float(loss), float(entropy)

    def _load(self, parameters: Vector) -> None:
        self._network.set_weights(list(self.model.spec.views(parameters).values()))
        self._outputs.clear()

    def _policy(self, observation: NDArray[Any]) -> tuple[NDArray[np.float32], float]:
        logits, value = self._network(tf.convert_to_tensor(observation[None]))
        self._outputs.append((logits[0], value[0, 0]))
        return tf.nn.softmax(logits[0]).numpy(), float(value[0, 0])

    def _loss(self, trajectory: Trajectory) -> tuple[Any, Any]:
        outputs = self._outputs[: trajectory.env_steps]  # a bootstrap may have asked the policy once more
        logits, values = (tf.stack(column) for column in zip(*outputs, strict=True))
        returns = targets_of(trajectory, self._learner)
        losses, entropies = a3c_losses(logits, values, trajectory.actions.astype(np.int32), returns, self._learner)
        return tf.reduce_sum(losses), tf.reduce_mean(entropies)

    def _flat_gradient(self, tape: Any, loss: Any) -> Vector:
        gradients = tape.gradient(loss, self._network.trainable_variables)
        return np.concatenate([gradient.numpy().ravel() for gradient in gradients])
