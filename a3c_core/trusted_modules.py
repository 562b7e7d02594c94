"""Which modules outside the project a run may import: those that a grid or the command line names.

Parts that others wrote are named `package.module:attribute`. A checkpoint or a cell's file may name only parts that the
grid or the command line names too, to the letter, so that a file never chooses the code that runs. A trusted module may
hold functions that are not meant for this.
"""

from collections.abc import Collection, Mapping
from typing import Any

from a3c_core.errors import shown

_PARTS = ("algorithm", "model", "topology", "engine", "environment.id")  # the settings that can name a module


def references_in(settings: Mapping[str, Any]) -> set[str]:
    """Return the names of others' parts, `package.module:attribute`, in a run's settings as nested plain data."""
    return {value for name in _PARTS if ":" in (value := _value(settings, name))}


def modules_of(settings: Mapping[str, Any]) -> set[str]:
    """Return the modules that a run with these settings, as nested plain data, would import."""
    return {reference.rpartition(":")[0] for reference in references_in(settings)}


def refuse_untrusted(settings: Mapping[str, Any], trusted: Collection[str], source: str) -> None:
    """Raise ValueError if settings from a file name a part of others that is not among the names `trusted`."""
    for reference in sorted(references_in(settings) - set(trusted)):
        module = reference.rpartition(":")[0]
        raise ValueError(
            f"{source} names {shown(reference)}, a part of the module {shown(module)}, which would be imported: that is"
            " done only for parts that a grid or the command line names exactly so"
        )


def _value(settings: Mapping[str, Any], name: str) -> str:
    value: Any = settings
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else ""
