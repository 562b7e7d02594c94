"""Settings as results hold them, and their one comparison: older results lack newer settings, and still compare.

A setting that is added later must have a default that means what runs did before there was such a setting.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from a3c_core.config import RunConfig
from a3c_core.trusted_modules import modules_of

Flat = dict[str, Any]  # dotted name -> value
_NEW_COSTS = 3  # the version of results from which on the profile `report` has the costs of the report's time


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
    """Return all settings of a run as its results hold them; those they do not name have their defaults.

    Modules that they name are not imported for that.
    """
    settings = upgraded(saved)
    try:
        if modules_of(settings) <= sys.modules.keys():
            return of_config(RunConfig.model_validate(settings))
    except ValidationError:  # of another version: what it knows beyond this one stands beside the rest
        pass
    return {**of_config(RunConfig()), **dict(flatten(settings))}


def upgraded(saved: Mapping[str, Any], results_version: int | None = None) -> dict[str, Any]:
    """Return settings of older results as they are written today.

    Args:
        saved: nested settings, such as the content of a cell's config.json.
        results_version: of the program that wrote them. Give it to repeat a run, because a profile's name may stand for
            other costs today.
    """
    settings, exchange = dict(saved), dict(saved.get("exchange") or {})
    is_of_old_costs = results_version is not None and results_version < _NEW_COSTS
    if is_of_old_costs and settings.get("profile", "report") == "report":
        settings["profile"] = "report-tf2.21"
    if exchange.get("transport") == "hogwild":  # has become a topology, which has nothing to set
        return {**settings, "topology": "hogwild", "exchange": {}}
    if settings.get("runtime", "simulate") == "simulate":
        exchange.pop("transport", None)  # virtual time never had one
    return {**settings, "exchange": exchange}


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
