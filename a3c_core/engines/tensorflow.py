"""The `tensorflow` engine: the reference for every Keras model and environment, one graph call per gradient."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from a3c_core.config import EnvironmentConfig, LearnerConfig
from a3c_core.engines.base import Play, Rollout, Trajectory, play_of, rollout_of
from a3c_core.engines.stepwise import GymEnvironment, play_steps, play_together, targets_of
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
        self._load = tf.function(self._load_graph, [flat], autograph=False)
        self._act = tf.function(self._act_graph, [observations], autograph=False)
        self._gradient = tf.function(self._gradient_graph, [observations, actions, returns], autograph=False)

    def new_environment(self) -> GymEnvironment:
        return GymEnvironment(self._environment)

    def rollout(self, parameters: Vector, environment: GymEnvironment) -> Rollout:
        began = time.perf_counter()
        trajectory = self.play(parameters, environment)
        played = time.perf_counter()
        rollout = rollout_of(trajectory, environment.score, *self.gradient(parameters, trajectory))
        self.play_share = (played - began) / (time.perf_counter() - began)
        return rollout

    def rollout_together(
        self, parameters: Vector, environments: Sequence[GymEnvironment]
    ) -> tuple[Vector, Sequence[Play]]:
        """Act for all agents in one call a step, and differentiate all that they played in one call."""
        began = time.perf_counter()
        trajectories = self.play_together(parameters, environments)
        played = time.perf_counter()
        gradient, losses, entropies = self._gradient(
            np.concatenate([trajectory.observations for trajectory in trajectories]),
            np.concatenate([trajectory.actions for trajectory in trajectories]).astype(np.int32),
            np.concatenate([targets_of(trajectory, self._learner) for trajectory in trajectories]),
        )
        ends = np.cumsum([trajectory.env_steps for trajectory in trajectories])[:-1]
        parts = zip(np.split(losses.numpy(), ends), np.split(entropies.numpy(), ends), strict=True)
        plays = [
            play_of(trajectory, environment.score, float(loss.sum()), float(entropy.mean()))
            for trajectory, environment, (loss, entropy) in zip(trajectories, environments, parts, strict=True)
        ]
        self.play_share = (played - began) / (time.perf_counter() - began)
        return gradient.numpy(), plays

    def play(self, parameters: Vector, environment: GymEnvironment) -> Trajectory:
        return play_steps(self.policy(parameters), environment, self._steps_at_once)

    def play_together(self, parameters: Vector, environments: Sequence[GymEnvironment]) -> list[Trajectory]:
        """Let several agents play side by side, with one call for all of them a step."""
        self._load(parameters)
        return play_together(self._act_on, environments, self._steps_at_once)

    def policy(self, parameters: Vector) -> Policy:
        """Return the policy as a function of one observation, good until the engine is given other parameters."""
        return self.model.numpy_policy(parameters) or self._keras_policy(parameters)

    def gradient(self, parameters: Vector, trajectory: Trajectory) -> tuple[Vector, float, float]:
        self._load(parameters)
        returns = targets_of(trajectory, self._learner)
        gradient, losses, entropies = self._gradient(
            trajectory.observations, trajectory.actions.astype(np.int32), returns
        )
        return gradient.numpy(), float(losses.numpy().sum()), float(entropies.numpy().mean())

    def _keras_policy(self, parameters: Vector) -> Policy:
        self._load(parameters)

        def policy(observation: NDArray[Any]) -> tuple[NDArray[np.float32], float]:
            policies, values = self._act_on(observation[None])
            return policies[0], float(values[0])

        return policy

    def _act_on(self, observations: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return (policies [B, actions], values [B]) of the parameters that were loaded last."""
        policies, values = self._act(observations)
        return policies.numpy(), values.numpy()

    def _load_graph(self, flat: Any) -> None:
        for variable, place in zip(self._variables, self.model.spec.slices.values(), strict=True):
            variable.assign(tf.reshape(flat[place], variable.shape))

    def _act_graph(self, observations: Any) -> tuple[Any, Any]:
        policy_logits, values = self._network(observations)
        return tf.nn.softmax(policy_logits), values[:, 0]

    def _gradient_graph(self, observations: Any, actions: Any, returns: Any) -> tuple[Any, Any, Any]:
        with tf.GradientTape() as tape:
            policy_logits, values = self._network(observations)
            losses, entropies = a3c_losses(policy_logits, values[:, 0], actions, returns, self._learner)
            loss = tf.reduce_sum(losses)
        gradients = tape.gradient(loss, self._variables)
        return tf.concat([tf.reshape(gradient, [-1]) for gradient in gradients], axis=0), losses, entropies


def a3c_losses(policy_logits: Any, values: Any, actions: Any, returns: Any, learner: LearnerConfig) -> tuple[Any, Any]:
    """Return (losses [T], entropies [T]), given logits [T, actions] and values, returns [T].

    loss = -log policy(action) * advantage + value_coefficient * value loss - entropy_coefficient * entropy,
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
    return losses, entropies


def logits_network(model: Any) -> Any:
    """Return `model` up to its logits: their logarithmic softmax is exact where that of probabilities is -inf."""
    import keras

    return keras.Model(model.inputs, [model.get_layer("policy_logits").output, model.get_layer("value").output])
