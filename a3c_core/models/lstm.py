"""The model `lstm`: memory for what one observation does not show (Hochreiter & Schmidhuber 1997; Mnih et al. 2016).

Keras sees the network of one step: an observation and the memory go in, the heads and the next memory come out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from a3c_core.games.base import FLAPPY_SKY
from a3c_core.models.base import POLICY_AND_VALUE, Heads, head_layers, layer, with_heads
from a3c_core.models.conv import are_large_enough, conv_layers, conv_slices
from a3c_core.models.initialisers import glorot_uniform, orthogonal, unit_forget
from a3c_core.models.parameters import ParameterSpec, Slice, Vector
from a3c_core.section import Section

if TYPE_CHECKING:
    import keras

CELL = "lstm"  # the layer that remembers; `hidden` is the one that it looks at


class LstmSettings(Section):
    """The network `lstm`."""

    units: int = Field(256, ge=1, le=16_384, description="LSTM cells")
    hidden: int = Field(256, ge=1, le=65_536, description="ReLU units below them, upon the convolutions of pictures")


@dataclass(frozen=True)
class LstmModel:
    """One hidden layer, after two convolutions where pictures are seen, then LSTM cells, which all heads share."""

    observation_shape: tuple[int, ...] = (8,)
    heads: Heads = POLICY_AND_VALUE
    units: int = 256
    hidden: int = 256
    scaling: tuple[float, float] = FLAPPY_SKY  # of grey levels, as the game declares it

    Settings: ClassVar[type[Section]] = LstmSettings

    @property
    def onednn(self) -> bool:
        return self._sees_pictures

    @property
    def memory_shape(self) -> tuple[int, int]:
        return 2, self.units  # what the cells put out, and what they keep

    def why_not(self) -> str | None:
        if len(self.observation_shape) == 1 or are_large_enough(self.observation_shape):
            return None
        return "lstm needs a row of numbers, or pictures that are large enough for the model conv"

    @property
    def spec(self) -> ParameterSpec:
        cells = {
            f"{CELL}/kernel": Slice((self.hidden, 4 * self.units), glorot_uniform),
            f"{CELL}/recurrent_kernel": Slice((self.units, 4 * self.units), orthogonal),
            f"{CELL}/bias": Slice((4 * self.units,), unit_forget),
        }
        return ParameterSpec({**self._below(), **cells, **head_layers(self.units, self.heads)})

    def build(self) -> keras.Model:
        from keras import layers

        observations, hidden = self._built_below()
        memory = [layers.Input((self.units,), name=name) for name in ("output", "cells")]
        output, kept = layers.LSTMCell(self.units, name=CELL)(hidden, memory)
        return with_heads("lstm", [observations, *memory], output, self.heads, kept)

    def initial_parameters(self, seed: int) -> Vector:
        return self.spec.initial(seed)

    def numpy_forward(self, parameters: Vector) -> None:
        return None

    @property
    def _sees_pictures(self) -> bool:
        return len(self.observation_shape) == 3

    def _below(self) -> dict[str, Slice]:
        """Return the slices of the layers below the cells."""
        if self._sees_pictures:
            return conv_slices(self.observation_shape, self.hidden)
        return layer("hidden", self.observation_shape[0], self.hidden)

    def _built_below(self) -> tuple[Any, Any]:
        """Return (the network's observations, the layers upon them) as Keras's tensors."""
        from keras import layers

        if self._sees_pictures:
            frames = layers.Input(self.observation_shape, dtype="uint8", name="observations")
            return frames, conv_layers(frames, self.hidden, self.scaling)
        observations = layers.Input(self.observation_shape, name="observations")
        return observations, layers.Dense(self.hidden, activation="relu", name="hidden")(observations)
