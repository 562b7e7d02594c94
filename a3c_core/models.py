"""The models: Keras networks with a softmax policy head and a linear value head, seen as flat parameter vectors.

A model is added by writing a class with the members of `Model` and naming it in MODELS.
Keras is imported only where a network is really built: the compiled engine runs without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

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
                **_head_shapes(self.units, self.actions),
            }
        )

    def build(self) -> keras.Model:
        from keras import layers

        observations = layers.Input(self.observation_shape, name="observations")
        hidden = layers.Dense(self.units, activation="relu", name="hidden")(observations)
        return _with_heads("dense", observations, hidden, self.actions)

    def initial_parameters(self, seed: int) -> Vector:
        return _initial_parameters(self.spec, seed)

    def numpy_policy(self, parameters: Vector) -> Policy:
        kernel, bias, policy_kernel, policy_bias, value_kernel, value_bias = self.spec.views(parameters).values()

        def policy(observation: NDArray[np.float32]) -> tuple[NDArray[np.float32], float]:
            hidden = np.maximum(observation @ kernel + bias, 0)  # [units]
            policy_logits = hidden @ policy_kernel + policy_bias  # [actions]
            exponentials = np.exp(policy_logits - policy_logits.max())
            return exponentials / exponentials.sum(), (hidden @ value_kernel + value_bias).item()

        return policy


# Grey levels from 0 to 255 hide a small bird in a bright sky: centred on the sky, everything else stands out of zero.
_SKY, _CONTRAST = 173, 64


@dataclass(frozen=True)
class ConvModel:
    """The report's network for frames: the two convolutions of the A3C paper, then 128 ReLU units and both heads."""

    observation_shape: tuple[int, ...] = (84, 84, 4)
    actions: int = 2
    units: int = 128

    @property
    def spec(self) -> ParameterSpec:
        height, width, channels = self.observation_shape
        flat = 32 * _sides_left(height) * _sides_left(width)
        return ParameterSpec(
            {
                "conv_1/kernel": (8, 8, channels, 16),
                "conv_1/bias": (16,),
                "conv_2/kernel": (4, 4, 16, 32),
                "conv_2/bias": (32,),
                "hidden/kernel": (flat, self.units),
                "hidden/bias": (self.units,),
                **_head_shapes(self.units, self.actions),
            }
        )

    def build(self) -> keras.Model:
        from keras import layers

        frames = layers.Input(self.observation_shape, dtype="uint8", name="observations")
        x = layers.Rescaling(1 / _CONTRAST, offset=-_SKY / _CONTRAST, name="scale")(frames)
        x = layers.Conv2D(16, 8, strides=4, activation="relu", name="conv_1")(x)
        x = layers.Conv2D(32, 4, strides=2, activation="relu", name="conv_2")(x)
        hidden = layers.Dense(self.units, activation="relu", name="hidden")(layers.Flatten(name="flat")(x))
        return _with_heads("conv", frames, hidden, self.actions)

    def initial_parameters(self, seed: int) -> Vector:
        return _initial_parameters(self.spec, seed)

    def numpy_policy(self, parameters: Vector) -> None:
        return None


def _head_shapes(units: int, actions: int) -> dict[str, tuple[int, ...]]:
    return {
        "policy_logits/kernel": (units, actions),
        "policy_logits/bias": (actions,),
        "value/kernel": (units, 1),
        "value/bias": (1,),
    }


def _with_heads(name: str, observations: Any, hidden: Any, actions: int) -> keras.Model:
    """Return the model that ends in a policy and a value, both from the same hidden units."""
    from keras import Model, layers

    policy_logits = layers.Dense(actions, name="policy_logits")(hidden)
    policy = layers.Softmax(name="policy")(policy_logits)
    value = layers.Dense(1, name="value")(hidden)
    return Model(observations, [policy, value], name=name)


def _sides_left(side: int) -> int:
    """Return how many of `side` pixels a row or column has after both convolutions."""
    after_first = (side - 8) // 4 + 1
    return (after_first - 4) // 2 + 1


def _initial_parameters(spec: ParameterSpec, seed: int) -> Vector:
    """Return Keras's default initialisation: Glorot's for kernels, zeros for biases."""
    flat = np.zeros(spec.size, np.float32)
    layer_seeds = np.random.SeedSequence(seed, spawn_key=(0,)).generate_state(len(spec.shapes))
    for layer_seed, (name, view) in zip(layer_seeds, spec.views(flat).items(), strict=True):
        if name.endswith("kernel"):
            view[...] = glorot_uniform(view.shape, int(layer_seed) >> 2)  # Keras takes seeds below 2**31 - 1
    return flat


MODELS: dict[str, type[DenseModel] | type[ConvModel]] = {"dense": DenseModel, "conv": ConvModel}
