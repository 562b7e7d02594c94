"""The models: Keras networks with a softmax policy head and a linear value head, seen as flat parameter vectors.

A model is added by writing a class with the members of `Model` and naming it in MODELS.
Keras is imported only where a network is really built: the compiled engine runs without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from a3c_core.glorot import glorot_uniform
from a3c_core.parameters import ParameterSpec, Vector

if TYPE_CHECKING:
    import keras

# One observation in, (probabilities float32 [actions], value) out.
Policy = Callable[[NDArray[np.float32]], tuple[NDArray[np.float32], float]]


class Model(Protocol):
    """What engines need to know of a network."""

    @property
    def observation_shape(self) -> tuple[int, ...]: ...

    @property
    def actions(self) -> int: ...

    @property
    def spec(self) -> ParameterSpec:
        """Names and shapes of the parameters, in Keras's order."""
        ...

    def build(self) -> keras.Model:
        """Return the Keras model: observations [B, ...] -> (policy [B, actions], value [B, 1])."""
        ...

    def initial_parameters(self, seed: int) -> Vector:
        """Return Keras's own initialisation, drawn from `seed` alone."""
        ...

    def numpy_policy(self, parameters: Vector) -> Policy | None:
        """Return the policy as a plain NumPy function, or None where Keras is the better way."""
        ...


@dataclass(frozen=True)
class DenseModel:
    """The report's network: 128 ReLU units shared by both heads."""

    observation_shape: tuple[int, ...] = (8,)
    actions: int = 2
    units: int = 128

    @property
    def spec(self) -> ParameterSpec:
        inputs = self.observation_shape[0]
        return ParameterSpec(
            {
                "hidden/kernel": (inputs, self.units),
                "hidden/bias": (self.units,),
                "policy_logits/kernel": (self.units, self.actions),
                "policy_logits/bias": (self.actions,),
                "value/kernel": (self.units, 1),
                "value/bias": (1,),
            }
        )

    def build(self) -> keras.Model:
        from keras import Model, layers

        observations = layers.Input(self.observation_shape, name="observations")
        hidden = layers.Dense(self.units, activation="relu", name="hidden")(observations)
        policy_logits = layers.Dense(self.actions, name="policy_logits")(hidden)
        policy = layers.Softmax(name="policy")(policy_logits)
        value = layers.Dense(1, name="value")(hidden)
        return Model(observations, [policy, value], name="dense")

    def initial_parameters(self, seed: int) -> Vector:
        flat = np.zeros(self.spec.size, np.float32)
        layer_seeds = np.random.SeedSequence(seed, spawn_key=(0,)).generate_state(len(self.spec.shapes))
        for layer_seed, (name, view) in zip(layer_seeds, self.spec.views(flat).items(), strict=True):
            if name.endswith("kernel"):
                view[...] = glorot_uniform(view.shape, int(layer_seed) >> 2)  # Keras takes seeds below 2**31 - 1
        return flat

    def numpy_policy(self, parameters: Vector) -> Policy:
        kernel, bias, policy_kernel, policy_bias, value_kernel, value_bias = self.spec.views(parameters).values()

        def policy(observation: NDArray[np.float32]) -> tuple[NDArray[np.float32], float]:
            hidden = np.maximum(observation @ kernel + bias, 0)  # [units]
            policy_logits = hidden @ policy_kernel + policy_bias  # [actions]
            exponentials = np.exp(policy_logits - policy_logits.max())
            return exponentials / exponentials.sum(), (hidden @ value_kernel + value_bias).item()

        return policy


MODELS: dict[str, type[DenseModel]] = {"dense": DenseModel}
