"""Settings as results hold them, and their one comparison: older results lack newer settings, and still compare.

A setting that is added later must have a default that means what runs did before there was such a setting.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from a3c_core.config import RunConfig

Flat = dict[str, Any]  # dotted name -> value


def flatten(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (dotted name, value) for every leaf of nested settings, whose keys may be dotted themselves."""
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def of_config(config: RunConfig) -> Flat:
    """Return all settings of a run."""
    return dict(flatten(config.model_dump(mode="json")))


def of_saved(saved: Mapping[str, Any]) -> Flat:
    """Return all settings of a run as its results hold them; those they do not name have their defaults."""
    try:
        return of_config(RunConfig.model_validate(saved))
    except ValidationError:  # of another version: what it knows beyond this one stands beside the rest
        return {**of_config(RunConfig()), **dict(flatten(saved))}


def beyond_defaults(flat: Mapping[str, Any]) -> Flat:
    """Return those of some settings that are not at their defaults."""
    defaults = of_config(RunConfig())
    return {name: value for name, value in flat.items() if name not in defaults or value != defaults[name]}


def differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the settings in which two runs differ: name -> (there, here)."""
    theirs, ours = of_saved(there), of_saved(here)
    names = {**theirs, **ours}
    return {
        name: (theirs.get(name), ours.get(name))
        for name in names
        if theirs.get(name) != ours.get(name) or (name in theirs) != (name in ours)
    }
