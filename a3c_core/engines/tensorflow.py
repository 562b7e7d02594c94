"""The `tensorflow` engine: the reference for every algorithm, Keras model and game, one graph call per gradient."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from a3c_core.algorithms.actor_critic import log_chosen
from a3c_core.algorithms.base import Algorithm, Trajectory
from a3c_core.algorithms.trajectories import Batch, Column, TrajectoryAlgorithm
from a3c_core.engines.base import Play, Rollout, packed_rollouts, play_of, rollout_of
from a3c_core.engines.stepwise import play_steps, play_together
from a3c_core.games.base import Environment, Game
from a3c_core.learners.parcels import Packing
from a3c_core.machine.tf import import_tensorflow
from a3c_core.models.base import Forward, Model, Outputs, heads_network
from a3c_core.models.parameters import Vector


class TensorFlowEngine:
    """Acts through NumPy where the model allows it, else through one graph call; differentiates in TensorFlow."""

    def __init__(self, game: Game, model: Model, algorithm: Algorithm):
        self.model = model
        self._game, self._algorithm = game, algorithm
        self.sample_times, self.play_share = False, 0.5
        self._tf = tf = import_tensorflow()
        self._network = heads_network(model)
        self._variables = self._network.trainable_variables
        flat = tf.TensorSpec([None], tf.float32)
        observations = tf.TensorSpec([None, *game.spaces.observation_shape], self._network.inputs[0].dtype)
        self._packing = Packing(game.spaces) if isinstance(algorithm, TrajectoryAlgorithm) else None
        columns: list[int] = [algorithm.target_columns] if isinstance(algorithm, TrajectoryAlgorithm) else []
        actions, targets = tf.TensorSpec([None], tf.int32), tf.TensorSpec([None, *columns], tf.float32)
        self._load = tf.function(self._load_graph, [flat], autograph=False)
        self._act = tf.function(self._act_graph, [observations], autograph=False)
        self._gradient = tf.function(self._gradient_graph, [observations, actions, targets], autograph=False)

    @classmethod
    def why_not(cls, game: Game, model: Model | None, algorithm: Algorithm) -> str | None:
        return None

    def new_environment(self) -> Environment:
        environment: Environment = self._game.new_environment()
        return environment

    def rollout(self, parameters: Vector, environment: Environment, progress: float = 0.0) -> Rollout:
        if self._packing is not None:
            parcel, (play,) = self.rollout_together(parameters, [environment], progress)
            return Rollout(**vars(play), gradient=parcel)
        began = time.perf_counter()
        trajectory = self.play(parameters, environment, progress)
        played = time.perf_counter()
        rollout = rollout_of(trajectory, environment.score, *self.gradient(parameters, trajectory))
        self.play_share = (played - began) / (time.perf_counter() - began)
        return rollout

    def rollout_together(
        self, parameters: Vector, environments: Sequence[Environment], progress: float = 0.0
    ) -> tuple[Vector, Sequence[Play]]:
        """Act for all agents in one call a step, and differentiate all that they played in one call."""
        if self._packing is not None:
            return self._handed_over(self._packing, parameters, environments, progress)
        began = time.perf_counter()
        trajectories = self.play_together(parameters, environments, progress)
        played = time.perf_counter()
        gradient, losses, entropies = self._gradient(
            np.concatenate([trajectory.observations for trajectory in trajectories]),
            np.concatenate([trajectory.actions for trajectory in trajectories]).astype(np.int32),
            np.concatenate([self._algorithm.targets(trajectory) for trajectory in trajectories]),
        )
        ends = np.cumsum([trajectory.env_steps for trajectory in trajectories])[:-1]
        parts = zip(np.split(losses.numpy(), ends), np.split(entropies.numpy(), ends), strict=True)
        plays = [
            play_of(trajectory, environment.score, float(loss.sum()), float(entropy.mean()))
            for trajectory, environment, (loss, entropy) in zip(trajectories, environments, parts, strict=True)
        ]
        self.play_share = (played - began) / (time.perf_counter() - began)
        return gradient.numpy(), plays

    def _handed_over(
        self, packing: Packing, parameters: Vector, environments: Sequence[Environment], progress: float
    ) -> tuple[Vector, Sequence[Play]]:
        """Act for all agents, and pack what they played."""
        self.play_share = 1.0
        if len(environments) == 1:
            trajectories = [self.play(parameters, environments[0], progress)]
        else:
            trajectories = self.play_together(parameters, environments, progress)
        return packed_rollouts(packing, trajectories, [environment.score for environment in environments])

    def evaluate(self, parameters: Vector, batch: Batch) -> tuple[Column, Column]:
        self._load(parameters)
        policy_logits, values = self._forward(batch.observations)
        return log_chosen(policy_logits, batch.actions), values[:, 0]

    def batch_gradient(
        self, parameters: Vector, batch: Batch, targets: NDArray[np.float32], rows: NDArray[Any]
    ) -> tuple[Vector, Column]:
        self._load(parameters)
        gradient, *_, log_probabilities = self._gradient(batch.observations[rows], batch.actions[rows], targets[rows])
        return gradient.numpy(), log_probabilities.numpy()

    def play(self, parameters: Vector, environment: Environment, progress: float = 0.0) -> Trajectory:
        return play_steps(self.forward(parameters), self._algorithm, environment, progress)

    def play_together(
        self, parameters: Vector, environments: Sequence[Environment], progress: float = 0.0
    ) -> list[Trajectory]:
        """Let several agents play side by side, with one call for all of them a step."""
        self._load(parameters)
        return play_together(self._forward, self._algorithm, environments, progress)

    def forward(self, parameters: Vector) -> Forward:
        """Return the network as a function of one observation, good until the engine is given other parameters."""
        return self.model.numpy_forward(parameters) or self._keras_forward(parameters)

    def gradient(self, parameters: Vector, trajectory: Trajectory) -> tuple[Vector, float, float]:
        self._load(parameters)
        gradient, losses, entropies = self._gradient(
            trajectory.observations, trajectory.actions.astype(np.int32), self._algorithm.targets(trajectory)
        )
        return gradient.numpy(), float(losses.numpy().sum()), float(entropies.numpy().mean())

    def _keras_forward(self, parameters: Vector) -> Forward:
        self._load(parameters)
        return lambda observation: tuple(output[0] for output in self._forward(observation[None]))

    def _forward(self, observations: NDArray[Any]) -> Outputs:
        """Return the outputs, [B, size] of each head, of the parameters that were loaded last."""
        return tuple(output.numpy() for output in self._act(observations))

    def _load_graph(self, flat: Any) -> None:
        for variable, place in zip(self._variables, self.model.spec.slices.values(), strict=True):
            variable.assign(self._tf.reshape(flat[place], variable.shape))

    def _act_graph(self, observations: Any) -> list[Any]:
        return self._tf.nest.flatten(self._network(observations))  # of one head, Keras gives no list

    def _gradient_graph(self, observations: Any, actions: Any, targets: Any) -> tuple[Any, ...]:
        """Return the gradient, and what the algorithm's losses give: these themselves, entropies and so on [T]."""
        tf = self._tf
        with tf.GradientTape() as tape:
            losses, *others = self._algorithm.losses(tuple(self._act_graph(observations)), actions, targets)
            loss = tf.reduce_sum(losses)
        gradients = tape.gradient(loss, self._variables)
        return tf.concat([tf.reshape(gradient, [-1]) for gradient in gradients], axis=0), losses, *others
