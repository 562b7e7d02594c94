"""A model of one's own: `model: package.module:build`, a function from spaces and outputs to a Keras model."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from a3c_core.games.base import Spaces
from a3c_core.models.base import Heads
from a3c_core.models.parameters import ParameterSpec, Slice, Vector
from a3c_core.registry import load
from a3c_core.section import Section
from a3c_core.system.tensorflow import import_tensorflow

if TYPE_CHECKING:
    import keras


@dataclass(frozen=True)
class OwnModel:
    """What `build(spaces, outputs)` returns, with `outputs` = {head: size}; each head is a layer of that name."""

    reference: str  # package.module:build
    spaces: Spaces
    heads: Heads

    Settings: ClassVar[type[Section]] = Section  # none: they can stand in the function itself
    onednn: ClassVar[bool] = False

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return Spaces(*self.spaces).observation_shape

    def why_not(self) -> str | None:
        return None if callable(load(self.reference)) else f"{self.reference} is no function that builds a model"

    @cached_property
    def spec(self) -> ParameterSpec:
        variables = self.build().trainable_variables  # their paths would differ from one building to the next
        slices = [(variable.name, Slice(tuple(variable.shape), _by_keras)) for variable in variables]
        return ParameterSpec({f"{place}/{name}": part for place, (name, part) in enumerate(slices)})

    def build(self) -> keras.Model:
        import_tensorflow()  # which limits its threads
        network = load(self.reference)(Spaces(*self.spaces), dict(self.heads))
        names = {layer.name: layer for layer in network.layers}
        for head, size in self.heads:
            if head not in names or tuple(names[head].output.shape) != (None, size):
                raise ValueError(f"model {self.reference} needs a layer named {head!r} with {size} outputs")
        if len(network.weights) != len(network.trainable_weights):
            raise ValueError(f"model {self.reference} has weights that are not trained, which a flat vector can't hold")
        return network

    def initial_parameters(self, seed: int) -> Vector:
        """Return Keras's own initial weights: its initialisers draw their seeds from Python's generator."""
        before = random.getstate()
        random.seed(seed)
        try:
            network = self.build()
        finally:
            random.setstate(before)
        weights = [variable.numpy() for variable in network.trainable_variables]
        return self.spec.flatten(dict(zip(self.spec.shapes, weights, strict=True)))

    def numpy_forward(self, parameters: Vector) -> None:
        return None


def _by_keras(shape: tuple[int, ...], seed: int) -> Any:
    raise NotImplementedError("Keras draws these as it builds the model: see OwnModel.initial_parameters")
