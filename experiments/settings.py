"""Settings by their dotted names, such as exchange.queue: the language of grids and of the command line."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from a3c_core.config import RunConfig
from a3c_core.results.settings import Flat, flatten, of_config
from a3c_core.schedules import ScheduleConfig, parse_workers

__all__ = ["Flat", "all_names", "canonical", "flatten", "names_in", "nest", "of_config", "text_of"]


def nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return `flat` as nested settings; raise KeyError with the name of a value that also has settings below it."""
    nested: dict[str, Any] = {}
    for name in sorted(flat, key=lambda name: name.count(".")):
        *groups, last = name.split(".")
        level = nested
        for depth, group in enumerate(groups):
            level = level.setdefault(group, {})
            if not isinstance(level, dict):
                raise KeyError(".".join(groups[: depth + 1]))
        level[last] = flat[name]
    return nested


def names_in(group: str = "") -> list[str]:
    """Return the names allowed in a group of settings; "" is the outermost."""
    model: type[BaseModel] = RunConfig
    for part in group.split(".") if group else ():
        field = model.model_fields.get(part)
        if field is None or not _is_group(field.annotation):
            return []
        model = field.annotation  # type: ignore[assignment]
    return list(model.model_fields)


def all_names() -> list[str]:
    """Return the dotted names of all settings."""
    names = []
    for name, field in RunConfig.model_fields.items():
        names += [f"{name}.{inner}" for inner in names_in(name)] if _is_group(field.annotation) else [name]
    return names


def canonical(name: str, value: Any) -> Any:
    """Return `value` as it is compared and shown: worker counts are text, always with the same arrow."""
    if name != "workers" or isinstance(value, bool) or not isinstance(value, int | str):
        return value
    try:
        return str(parse_workers(value, ScheduleConfig()))
    except ValueError:
        return value


def text_of(value: Any) -> str:
    """Return `value` as it stands in a cell's id: safe as part of a directory's name."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    text = str(value).replace("->", "to").replace("→", "to")
    return re.sub(r"[^\w.+-]+", "-", text)


def _is_group(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
