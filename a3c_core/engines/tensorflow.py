"""The `tensorflow` engine: the reference for every algorithm, Keras model and game, one graph call per gradient."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from a3c_core.algorithms.actor_critic import log_chosen
from a3c_core.algorithms.base import Algorithm, Trajectory
from a3c_core.algorithms.trajectories import Batch, Column, TrajectoryAlgorithm
from a3c_core.engines.base import Play, Rollout, packed_rollouts, play_of, rollout_of
from a3c_core.engines.packing import ExperiencePacking, Packing, Transitions
from a3c_core.engines.python_rollout import judged, play_steps, play_together
from a3c_core.games.base import Environment, Game
from a3c_core.models.base import Forward, Model, Outputs, heads_network
from a3c_core.models.parameters import Vector
from a3c_core.progress import START, Progress
from a3c_core.system.tensorflow import import_tensorflow

_PACKINGS = {"trajectory": Packing, "experience": ExperiencePacking}


class TensorFlowEngine:
    """Acts through NumPy where the model allows it, else through one graph call; differentiates in TensorFlow."""

    def __init__(self, game: Game, model: Model, algorithm: Algorithm):
        self.model = model
        self._size = model.spec.size
        self._game, self._algorithm = game, algorithm
        self.sample_times, self.play_share, self.act_share = False, 0.5, 0.0
        self._acted_s = 0.0  # spent on choosing actions, since a rollout began
        self._tf = tf = import_tensorflow()
        self._network = heads_network(model)
        self._variables = self._network.trainable_variables
        flat = tf.TensorSpec([None], tf.float32)
        observations = tf.TensorSpec([None, *game.spaces.observation_shape], self._network.inputs[0].dtype)
        self.packing = _PACKINGS[algorithm.hands_over](game.spaces) if algorithm.hands_over in _PACKINGS else None
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

    def rollout(self, published: Vector, environment: Environment, progress: Progress = START) -> Rollout:
        if self.packing is not None:
            parcel, (play,) = self.rollout_together(published, [environment], progress)
            return Rollout(**vars(play), gradient=parcel)
        began, self._acted_s = time.perf_counter(), 0.0
        trajectory = self.play(published, environment, progress)
        played = time.perf_counter()
        rollout = rollout_of(trajectory, environment.score, *self.gradient(published[: self._size], trajectory))
        self._note_shares(began, played)
        return rollout

    def rollout_together(
        self, published: Vector, environments: Sequence[Environment], progress: Progress = START
    ) -> tuple[Vector, Sequence[Play]]:
        """Act for all agents in one call a step, and differentiate all that they played in one call."""
        if self.packing is not None:
            return self._handed_over(self.packing, published, environments, progress)
        began, self._acted_s = time.perf_counter(), 0.0
        trajectories = self.play_together(published, environments, progress)
        played = time.perf_counter()
        gradient, losses, entropies = self._gradient(*self._experience(trajectories))
        ends = np.cumsum([trajectory.env_steps for trajectory in trajectories])[:-1]
        parts = zip(np.split(losses.numpy(), ends), np.split(entropies.numpy(), ends), strict=True)
        plays = [
            play_of(trajectory, environment.score, float(loss.sum()), float(entropy.mean()))
            for trajectory, environment, (loss, entropy) in zip(trajectories, environments, parts, strict=True)
        ]
        self._note_shares(began, played)
        return gradient.numpy(), plays

    def _handed_over(
        self, packing: Packing, published: Vector, environments: Sequence[Environment], progress: Progress
    ) -> tuple[Vector, Sequence[Play]]:
        """Act for all agents, and pack what they played."""
        began, self._acted_s = time.perf_counter(), 0.0
        if len(environments) == 1:
            trajectories = [self.play(published, environments[0], progress)]
        else:
            trajectories = self.play_together(published, environments, progress)
        self._note_shares(began, time.perf_counter())
        self.play_share = 1.0  # gradients are the learner's business
        return packed_rollouts(packing, trajectories, [environment.score for environment in environments])

    def _note_shares(self, began: float, played: float) -> None:
        total = time.perf_counter() - began
        self.play_share, self.act_share = (played - began) / total, self._acted_s / total

    def outputs(self, parameters: Vector, observations: NDArray[Any]) -> Outputs:
        """Return the outputs, [B, size] of each head, for observations [B, ...]."""
        self._load(parameters)
        return self._forward(observations)

    def evaluate(self, parameters: Vector, batch: Batch) -> tuple[Column, Column]:
        policy_logits, values = self.outputs(parameters, batch.observations)
        return log_chosen(policy_logits, batch.actions), values[:, 0]

    def batch_gradient(
        self, parameters: Vector, batch: Batch, targets: NDArray[np.float32], rows: NDArray[Any]
    ) -> tuple[Vector, Column]:
        self._load(parameters)
        gradient, *_, log_probabilities = self._gradient(batch.observations[rows], batch.actions[rows], targets[rows])
        return gradient.numpy(), log_probabilities.numpy()

    def replay_gradient(self, published: Vector, batch: Transitions) -> tuple[Vector, float]:
        algorithm: Any = self._algorithm
        (target_values,) = self.outputs(published[self._size :], batch.next_observations)
        (own_values,) = self.outputs(published[: self._size], batch.next_observations)
        targets = algorithm.replay_targets(batch.rewards, batch.goes_on, target_values, own_values)
        gradient, losses, _ = self._gradient(batch.observations, batch.actions, targets)
        return gradient.numpy(), float(losses.numpy().sum(dtype=np.float64))

    def play(self, published: Vector, environment: Environment, progress: Progress = START) -> Trajectory:
        parameters = published[: self._size]  # NumPy's way takes hardly longer than looking at the clock
        forward = self.model.numpy_forward(parameters) or self._timed(self._keras_forward(parameters))
        played = play_steps(lambda shown: forward(shown.observation), self._algorithm, environment, progress)
        return self._judged([played], published)[0]

    def play_together(
        self, published: Vector, environments: Sequence[Environment], progress: Progress = START
    ) -> list[Trajectory]:
        """Let several agents play side by side, with one call for all of them a step."""
        self._load(published[: self._size])
        look_at_all = self._timed(self._look_at_all)
        return self._judged(play_together(look_at_all, self._algorithm, environments, progress), published)

    def _timed(self, look: Callable[[Any], Outputs]) -> Callable[[Any], Outputs]:
        """Return `look`, whose time is added up."""

        def timed(at: Any) -> Outputs:
            began = time.perf_counter()
            outputs = look(at)
            self._acted_s += time.perf_counter() - began
            return outputs

        return timed

    def forward(self, parameters: Vector) -> Forward:
        """Return the network as a function of one observation, good until the engine is given other parameters."""
        return self.model.numpy_forward(parameters) or self._keras_forward(parameters)

    def gradient(self, parameters: Vector, trajectory: Trajectory) -> tuple[Vector, float, float]:
        self._load(parameters)
        gradient, losses, entropies = self._gradient(*self._experience([trajectory]))
        return gradient.numpy(), float(losses.numpy().sum()), float(entropies.numpy().mean())

    def gradient_together(self, parameters: Vector, trajectories: Sequence[Trajectory]) -> Vector:
        """Return the gradient [P] of the loss summed over several trajectories, in one call."""
        self._load(parameters)
        gradient: Vector = self._gradient(*self._experience(trajectories))[0].numpy()
        return gradient

    def _experience(self, trajectories: Sequence[Trajectory]) -> tuple[NDArray[Any], ...]:
        """Return what the gradient of several trajectories is computed from: observations, actions, targets [N]."""
        return (
            np.concatenate([trajectory.observations for trajectory in trajectories]),
            np.concatenate([trajectory.actions for trajectory in trajectories]).astype(np.int32),
            np.concatenate([self._algorithm.targets(trajectory) for trajectory in trajectories]),
        )

    def _judged(self, trajectories: list[Trajectory], published: Vector) -> list[Trajectory]:
        """Return the trajectories with values by the target network, if one is published beside the parameters."""
        if published.size == self._size:
            return trajectories
        self._load(published[self._size :])
        seen = [_seen(trajectory) for trajectory in trajectories]
        ends = np.cumsum([len(observations) for observations in seen])[:-1]
        heads = [np.split(head, ends) for head in self._forward(np.concatenate(seen))]
        self._load(published[: self._size])  # what will be differentiated
        each = zip(trajectories, zip(*heads, strict=True), strict=True)
        return [judged(trajectory, outputs, self._algorithm) for trajectory, outputs in each]

    def _keras_forward(self, parameters: Vector) -> Forward:
        self._load(parameters)
        return lambda observation: tuple(output[0] for output in self._forward(observation[None]))

    def _look_at_all(self, environments: Sequence[Environment]) -> Outputs:
        return self._forward(np.stack([environment.observation for environment in environments]))

    def _forward(self, observations: NDArray[Any]) -> Outputs:
        """Return the outputs, [B, size] of each head, of the parameters that were loaded last."""
        return tuple(output.numpy() for output in self._act(observations))

    def _load_graph(self, flat: Any) -> None:
        for variable, place in zip(self._variables, self.model.spec.slices.values(), strict=True):
            variable.assign(self._tf.reshape(flat[place], variable.shape))

    def _act_graph(self, observations: Any) -> list[Any]:
        return self._tf.nest.flatten(self._network(observations))  # of one head, Keras gives no list

    def _learning_graph(self, observations: Any, *order: Any) -> list[Any]:
        """Return what losses are measured at, [N, size] of each head; the order of steps is for those who remember."""
        return self._act_graph(observations)

    def _gradient_graph(self, observations: Any, actions: Any, targets: Any, *order: Any) -> tuple[Any, ...]:
        """Return the gradient, and what the algorithm's losses give: these themselves, entropies and so on [T]."""
        tf = self._tf
        with tf.GradientTape() as tape:
            losses, *others = self._algorithm.losses(
                tuple(self._learning_graph(observations, *order)), actions, targets
            )
            loss = tf.reduce_sum(losses)
        gradients = tape.gradient(loss, self._variables)
        return tf.concat([tf.reshape(gradient, [-1]) for gradient in gradients], axis=0), losses, *others


def _seen(trajectory: Trajectory) -> NDArray[Any]:
    """Return all observations of a trajectory [T + 1, ...], or [T, ...] if it ended the game."""
    if trajectory.next_observation is None:
        return trajectory.observations
    return np.concatenate([trajectory.observations, trajectory.next_observation[None]])
