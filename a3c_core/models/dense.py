"""The model `dense`: the report's network, one hidden layer that all heads share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from a3c_core.models.base import POLICY_AND_VALUE, Forward, Heads, Outputs, head_layers, layer, with_heads
from a3c_core.models.parameters import ParameterSpec, Vector
from a3c_core.section import Section

if TYPE_CHECKING:
    import keras


class DenseSettings(Section):
    """The network `dense`."""

    units: int = Field(128, ge=1, le=65_536, description="ReLU units of the hidden layer")


@dataclass(frozen=True)
class DenseModel:
    """128 ReLU units, unless told otherwise."""

    observation_shape: tuple[int, ...] = (8,)
    heads: Heads = POLICY_AND_VALUE
    units: int = 128

    Settings: ClassVar[type[Section]] = DenseSettings
    onednn: ClassVar[bool] = False

    def why_not(self) -> str | None:
        if len(self.observation_shape) == 1:
            return None
        return "dense needs a row of numbers: model: conv and environment.observation: frames need each other"

    @property
    def spec(self) -> ParameterSpec:
        hidden = layer("hidden", self.observation_shape[0], self.units)
        return ParameterSpec({**hidden, **head_layers(self.units, self.heads)})

    def build(self) -> keras.Model:
        from keras import layers

        observations = layers.Input(self.observation_shape, name="observations")
        hidden = layers.Dense(self.units, activation="relu", name="hidden")(observations)
        return with_heads("dense", observations, hidden, self.heads)

    def initial_parameters(self, seed: int) -> Vector:
        return self.spec.initial(seed)

    def numpy_forward(self, parameters: Vector) -> Forward:
        kernel, bias, *heads = self.spec.views(parameters).values()
        pairs = list(zip(heads[::2], heads[1::2], strict=True))  # kernel and bias of each

        def forward(observation: NDArray[np.float32]) -> Outputs:
            hidden = np.maximum(observation @ kernel + bias, 0)  # [units]
            return tuple(hidden @ head_kernel + head_bias for head_kernel, head_bias in pairs)

        return forward
