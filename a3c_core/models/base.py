"""What a model is: a Keras network with named heads, seen as one flat parameter vector.

Its observations' shape comes from the game, its heads from the algorithm. Keras is imported only where a network is
really built: the compiled engine runs without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from numpy.typing import NDArray

from a3c_core.models.initialisers import glorot_uniform, zeros
from a3c_core.models.parameters import ParameterSpec, Slice, Vector
from a3c_core.section import Section

if TYPE_CHECKING:
    import keras

Heads = tuple[tuple[str, int], ...]  # (name, size) of each output that the algorithm asks for, in order
Outputs = tuple[NDArray[Any], ...]  # float32 [size] of each head, for one observation; or [B, size] for several
Forward = Callable[[NDArray[Any]], Outputs]

POLICY_AND_VALUE: Heads = (("policy_logits", 2), ("value", 1))  # the report's, with its two actions


class Model(Protocol):
    """A network as engines and checkpoints see it: one flat parameter vector with named heads.

    Inherit from nothing: a class with these members is a model. It is made with `observation_shape`, `heads` and the
    settings of its section as keyword arguments; `models/dense.py` is the shortest. A recurrent network also has
    `memory_shape`: see `memory_shape_of` and `models/lstm.py`.

    Example:
        `model: my_module:MyModel` in a grid uses the class `MyModel` of my_module.py, and `model: my_module:build` a
        function that returns a Keras model.
    """

    Settings: ClassVar[type[Section]]  # the section `network:` of a run

    @property
    def onednn(self) -> bool:
        """Whether oneDNN may compute it: convolutions are faster, but sums differ from run to run."""
        ...

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Shape of one observation."""
        ...

    @property
    def heads(self) -> Heads:
        """Names and sizes of the outputs that the algorithm asked for, in order."""
        ...

    @property
    def spec(self) -> ParameterSpec:
        """Names, shapes and initialisers of the parameters, in Keras's order."""
        ...

    def why_not(self) -> str | None:
        """Return what keeps the network from seeing such observations, or None if nothing does."""
        ...

    def build(self) -> keras.Model:
        """Return the Keras network, with a layer [B, size] named after each head; its last layers may be others."""
        ...

    def initial_parameters(self, seed: int) -> Vector:
        """Return the parameters [P] that training starts from, which follow from `seed` alone."""
        ...

    def numpy_forward(self, parameters: Vector) -> Forward | None:
        """Return the network as a NumPy function of one observation.

        Args:
            parameters: flat vector [P].

        Returns:
            The function, or None if TensorFlow has to compute the network.
        """
        ...


def layer(name: str, *kernel: int) -> dict[str, Slice]:
    """Return the slices of a layer as Keras starts it: Glorot's kernel, and a bias of zeros."""
    return {f"{name}/kernel": Slice(kernel, glorot_uniform), f"{name}/bias": Slice(kernel[-1:], zeros)}


def head_layers(units: int, heads: Heads) -> dict[str, Slice]:
    """Return the slices of the heads upon `units` hidden units."""
    return {name: part for head, size in heads for name, part in layer(head, units, size).items()}


def memory_shape_of(model: Model | None) -> tuple[int, ...] | None:
    """Return the shape of what the network remembers from step to step, or None if it remembers nothing."""
    shape: tuple[int, ...] | None = getattr(model, "memory_shape", None)
    return shape


def with_heads(name: str, inputs: Any, hidden: Any, heads: Heads, memory: Sequence[Any] = ()) -> keras.Model:
    """Return the network that ends in the heads, all from the same hidden units; logits are followed by a softmax.

    What is remembered, if anything, is put out after the heads.
    """
    from keras import Model, layers

    outputs = []
    for head, size in heads:
        output = layers.Dense(size, name=head)(hidden)
        logits_of = head.removesuffix("_logits")
        outputs.append(output if logits_of == head else layers.Softmax(name=logits_of)(output))
    return Model(inputs, [*outputs, *memory], name=name)


def heads_network(model: Model) -> keras.Model:
    """Return the network up to its heads: the logarithm of probabilities is -inf where that of logits is exact."""
    import keras

    network = model.build()
    cut = keras.Model(network.inputs, [network.get_layer(head).output for head, _ in model.heads])
    if [variable.path for variable in cut.trainable_variables] != [v.path for v in network.trainable_variables]:
        raise ValueError(f"the model {network.name} has weights that its heads don't depend on")
    return cut
