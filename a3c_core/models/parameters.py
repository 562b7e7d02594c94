"""Parameters as one flat float32 vector with named slices, so that nothing else cares which model it is."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from a3c_core.models.initialisers import Initialiser

Vector = NDArray[np.float32]  # float32 [P]


class Slice(NamedTuple):
    """One named part of the vector."""

    shape: tuple[int, ...]
    initialiser: Initialiser


@dataclass(frozen=True)
class ParameterSpec:
    """A model's parameters by name, in the order in which they stand in the flat vector."""

    parameters: Mapping[str, Slice]

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: part.shape for name, part in self.parameters.items()}

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Where each named parameter stands."""
        slices, start = {}, 0
        for name, shape in self.shapes.items():
            slices[name] = slice(start, start + math.prod(shape))
            start = slices[name].stop
        return slices

    @property
    def size(self) -> int:
        return sum(math.prod(shape) for shape in self.shapes.values())

    def views(self, flat: Vector) -> dict[str, NDArray[np.float32]]:
        """Return each parameter as an array of its own shape that shares memory with `flat`."""
        if flat.shape != (self.size,):
            raise ValueError(f"expected a flat vector of {self.size} parameters, got shape {flat.shape}")
        return {name: flat[self.slices[name]].reshape(shape) for name, shape in self.shapes.items()}

    def flatten(self, arrays: Mapping[str, NDArray[np.float32]]) -> Vector:
        """Return a new flat vector that holds `arrays`."""
        flat = np.empty(self.size, np.float32)
        for name, view in self.views(flat).items():
            view[...] = arrays[name]
        return flat

    def initial(self, seed: int) -> Vector:
        """Return a new flat vector, each slice drawn by its own initialiser from a seed of its own."""
        flat = np.empty(self.size, np.float32)
        seeds = np.random.SeedSequence(seed, spawn_key=(0,)).generate_state(len(self.parameters))
        for slice_seed, part, view in zip(seeds, self.parameters.values(), self.views(flat).values(), strict=True):
            view[...] = part.initialiser(part.shape, int(slice_seed) >> 2)  # Keras takes seeds below 2**31 - 1
        return flat
