"""Which modules outside the project a run may import: those that a grid or the command line names.

Parts that others wrote are named `package.module:attribute`. A checkpoint or a cell's file may name only modules that
the grid or the command line names too, so that a file never chooses the code that runs.
"""

from collections.abc import Collection, Mapping
from typing import Any

from a3c_core.errors import shown

_PARTS = ("algorithm", "model", "topology", "engine", "environment.id")  # the settings that can name a module


def modules_of(settings: Mapping[str, Any]) -> set[str]:
    """Return the modules that a run with these settings, as nested plain data, would import."""
    return {module for name in _PARTS for module, colon, _ in [_value(settings, name).rpartition(":")] if colon}


def refuse_untrusted(settings: Mapping[str, Any], trusted: Collection[str], source: str) -> None:
    """Raise ValueError if settings from a file name a module that is not among those `trusted`."""
    for module in sorted(modules_of(settings) - set(trusted)):
        raise ValueError(
            f"{source} names a part of the module {shown(module)}, which would be imported: that is done only for"
            " modules that a grid or the command line names"
        )


def _value(settings: Mapping[str, Any], name: str) -> str:
    value: Any = settings
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else ""
