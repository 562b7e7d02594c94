"""The models by name. One is added by writing a class with the members of `base.Model` and naming it in MODELS."""

from collections.abc import Mapping
from typing import Any

from a3c_core.games.base import Spaces
from a3c_core.models.base import Heads, Model
from a3c_core.registry import Registry
from a3c_core.section import Section

MODELS = Registry(
    "model",
    {
        "dense": "a3c_core.models.dense:DenseModel",
        "conv": "a3c_core.models.conv:ConvModel",
        "lstm": "a3c_core.models.lstm:LstmModel",
    },
)


def settings_of(name: str) -> type[Section]:
    """Return the class of a model's settings, the section `network:` of a run."""
    return getattr(MODELS.get(name), "Settings", Section)


def make_model(name: str, settings: Section, spaces: Spaces, heads: Heads) -> Model:
    """Return a model for a game and an algorithm.

    Args:
        name: of a row in MODELS, or `package.module:attribute`.
        settings: the section `network:`.
        spaces: of the game.
        heads: outputs that the algorithm asks for.

    Raises:
        ValueError: there is no such model.
    """
    found = MODELS.get(name)
    if isinstance(found, type):
        seen: dict[str, Any] = {"observation_shape": spaces.observation_shape}
        if "scaling" in getattr(found, "__dataclass_fields__", {}):  # of pictures, for models that ask for it
            seen["scaling"] = spaces.scaling
        return remake_model(name, {**seen, "heads": heads, **dict(settings)})
    return remake_model(name, {"reference": name, "spaces": spaces, "heads": heads})


def remake_model(name: str, arguments: Mapping[str, Any]) -> Model:
    """Return the model called `name` from all of its arguments, which may have been through JSON."""
    found = MODELS.get(name)
    if not isinstance(found, type):
        from a3c_core.models.own import OwnModel as found
    try:
        model: Model = found(**{key: _with_tuples(value) for key, value in arguments.items()})
    except TypeError as error:
        raise ValueError(f"model {name} can't be made: {error}") from error
    return model


def _with_tuples(value: Any) -> Any:
    return tuple(map(_with_tuples, value)) if isinstance(value, list | tuple) else value
