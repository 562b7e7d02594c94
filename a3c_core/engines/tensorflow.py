"""The `tensorflow` engine: the reference for every Keras model and environment, one graph call per gradient."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from a3c_core.config import EnvironmentConfig, LearnerConfig
from a3c_core.engines.base import Rollout, Trajectory, rollout_of
from a3c_core.engines.stepwise import GymEnvironment, play_steps, targets_of
from a3c_core.models import Model, Policy
from a3c_core.parameters import Vector
from a3c_core.tf import import_tensorflow

tf = import_tensorflow()


class TensorFlowEngine:
    """Acts through NumPy where the model allows it, else through one graph call; differentiates in TensorFlow."""

    def __init__(self, model: Model, environment: EnvironmentConfig, learner: LearnerConfig):
        self.model = model
        self._environment = environment
        self._learner = learner
        self.sample_times, self.play_share = False, 0.5
        self._steps_at_once = learner.t_max if learner.update_every == "t_max" else None
        self._network = logits_network(model.build())
        self._variables = self._network.trainable_variables
        flat = tf.TensorSpec([None], tf.float32)
        observations = tf.TensorSpec([None, *model.observation_shape], self._network.inputs[0].dtype)
        actions, returns = tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.float32)
        self._act = tf.function(self._act_graph, [flat, observations], autograph=False)
        self._gradient = tf.function(self._gradient_graph, [flat, observations, actions, returns], autograph=False)

    def new_environment(self) -> GymEnvironment:
        return GymEnvironment(self._environment)

    def rollout(self, parameters: Vector, environment: GymEnvironment) -> Rollout:
        began = time.perf_counter()
        trajectory = self.play(parameters, environment)
        played = time.perf_counter()
        rollout = rollout_of(trajectory, environment.score, *self.gradient(parameters, trajectory))
        self.play_share = (played - began) / (time.perf_counter() - began)
        return rollout

    def play(self, parameters: Vector, environment: GymEnvironment) -> Trajectory:
        return play_steps(self.policy(parameters), environment, self._steps_at_once)

    def policy(self, parameters: Vector) -> Policy:
        """Return the policy as a function of one observation."""
        return self.model.numpy_policy(parameters) or self._keras_policy(parameters)

    def gradient(self, parameters: Vector, trajectory: Trajectory) -> tuple[Vector, float, float]:
        returns = targets_of(trajectory, self._learner)
        gradient, loss, entropy = self._gradient(
            parameters, trajectory.observations, trajectory.actions.astype(np.int32), returns
        )
        return gradient.numpy(), float(loss), float(entropy)

    def _keras_policy(self, parameters: Vector) -> Policy:
        def policy(observation: NDArray[Any]) -> tuple[NDArray[np.float32], float]:
            probabilities, value = self._act(parameters, observation[None])
            return probabilities[0].numpy(), float(value[0])

        return policy

    def _load_graph(self, flat: Any) -> None:
        for variable, place in zip(self._variables, self.model.spec.slices.values(), strict=True):
            variable.assign(tf.reshape(flat[place], variable.shape))

    def _act_graph(self, flat: Any, observations: Any) -> tuple[Any, Any]:
        self._load_graph(flat)
        policy_logits, values = self._network(observations)
        return tf.nn.softmax(policy_logits), values[:, 0]

    def _gradient_graph(self, flat: Any, observations: Any, actions: Any, returns: Any) -> tuple[Any, Any, Any]:
        self._load_graph(flat)
        with tf.GradientTape() as tape:
            policy_logits, values = self._network(observations)
            loss, entropy = a3c_loss(policy_logits, values[:, 0], actions, returns, self._learner)
        gradients = tape.gradient(loss, self._variables)
        return tf.concat([tf.reshape(gradient, [-1]) for gradient in gradients], axis=0), loss, entropy


def a3c_loss(policy_logits: Any, values: Any, actions: Any, returns: Any, learner: LearnerConfig) -> tuple[Any, Any]:
    """Return (loss summed over the trajectory, mean entropy), given logits [T, actions] and values, returns [T].

    loss = sum of -log policy(action) * advantage + value_coefficient * value loss - entropy_coefficient * entropy,
    where the advantage, returns - values, is a constant for the policy, and the value loss is half the squared error
    or Huber's.
    """
    log_policy = tf.nn.log_softmax(policy_logits)  # [T, actions]
    log_chosen = tf.gather(log_policy, actions, batch_dims=1)  # [T]
    entropies = -tf.reduce_sum(tf.exp(log_policy) * log_policy, axis=1)  # [T]
    errors = returns - values
    sizes = tf.abs(errors)
    squared = 0.5 * tf.square(errors)
    value_losses = tf.where(sizes > 1.0, sizes - 0.5, squared) if learner.value_loss == "huber" else squared
    losses = (
        -log_chosen * tf.stop_gradient(errors)
        + learner.value_coefficient * value_losses
        - learner.entropy_coefficient * entropies
    )
    return tf.reduce_sum(losses), tf.reduce_mean(entropies)


def logits_network(model: Any) -> Any:
    """Return `model` up to its logits: their logarithmic softmax is exact where that of probabilities is -inf."""
    import keras

    return keras.Model(model.inputs, [model.get_layer("policy_logits").output, model.get_layer("value").output])
