"""The model `conv`: the report's network for frames, the two convolutions of the A3C paper and a hidden layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from a3c_core.games.base import FLAPPY_SKY
from a3c_core.models.base import POLICY_AND_VALUE, Heads, head_layers, layer, with_heads
from a3c_core.models.parameters import ParameterSpec, Slice, Vector
from a3c_core.section import Section

if TYPE_CHECKING:
    import keras

_SMALLEST = 20  # pixels that a side must have for both convolutions to leave one


class ConvSettings(Section):
    """The network `conv`."""

    units: int = Field(128, ge=1, le=65_536, description="ReLU units of the hidden layer")


@dataclass(frozen=True)
class ConvModel:
    """Two convolutions, then 128 ReLU units, unless told otherwise."""

    observation_shape: tuple[int, ...] = (84, 84, 4)
    heads: Heads = POLICY_AND_VALUE
    units: int = 128
    scaling: tuple[float, float] = FLAPPY_SKY  # of grey levels, as the game declares it

    Settings: ClassVar[type[Section]] = ConvSettings
    onednn: ClassVar[bool] = True

    def why_not(self) -> str | None:
        if are_large_enough(self.observation_shape):
            return None
        return (
            f"conv needs pictures of at least {_SMALLEST} x {_SMALLEST} pixels: model: conv and"
            " environment.observation: frames need each other"
        )

    @property
    def spec(self) -> ParameterSpec:
        return ParameterSpec({**conv_slices(self.observation_shape, self.units), **head_layers(self.units, self.heads)})

    def build(self) -> keras.Model:
        from keras import layers

        frames = layers.Input(self.observation_shape, dtype="uint8", name="observations")
        return with_heads("conv", frames, conv_layers(frames, self.units, self.scaling), self.heads)

    def initial_parameters(self, seed: int) -> Vector:
        return self.spec.initial(seed)

    def numpy_forward(self, parameters: Vector) -> None:
        return None


def are_large_enough(observation_shape: tuple[int, ...]) -> bool:
    """Return whether observations are pictures that both convolutions leave something of."""
    return len(observation_shape) == 3 and min(observation_shape[:2]) >= _SMALLEST


def conv_slices(observation_shape: tuple[int, ...], units: int) -> dict[str, Slice]:
    """Return the slices of the convolutions and of the hidden layer upon them."""
    height, width, channels = observation_shape
    return {
        **layer("conv_1", 8, 8, channels, 16),
        **layer("conv_2", 4, 4, 16, 32),
        **layer("hidden", 32 * _sides_left(height) * _sides_left(width), units),
    }


def conv_layers(frames: Any, units: int, scaling: tuple[float, float]) -> Any:
    """Return the hidden units [B, units] upon `frames`, uint8 [B, height, width, channels]."""
    from keras import layers

    zero, unit = scaling
    x = layers.Rescaling(1 / unit, offset=-zero / unit, name="scale")(frames)
    x = layers.Conv2D(16, 8, strides=4, activation="relu", name="conv_1")(x)
    x = layers.Conv2D(32, 4, strides=2, activation="relu", name="conv_2")(x)
    return layers.Dense(units, activation="relu", name="hidden")(layers.Flatten(name="flat")(x))


def _sides_left(side: int) -> int:
    """Return how many of `side` pixels a row or column has after both convolutions."""
    after_first = (side - 8) // 4 + 1
    return (after_first - 4) // 2 + 1
