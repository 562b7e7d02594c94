"""Settings by their dotted names, such as exchange.queue: the language of grids and of the command line."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from a3c_core.config import SECTIONS, RunConfig
from a3c_core.saved_settings import Flat, flatten, of_config
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


def names_in(group: str = "", settings: Flat | None = None) -> list[str]:
    """Return the names allowed in a group of settings; "" is the outermost.

    Which ones `learner` and `network` have depends on the algorithm and the model in `settings`, or else on the
    defaults of these.
    """
    section: type[BaseModel] | None = RunConfig
    for part in group.split(".") if group else ():
        section = _section(section, part, settings or {}) if section is not None else None
    if section is None:
        return []
    own = [name for name in section.__annotations__ if name in section.model_fields]
    return list(dict.fromkeys([*own, *section.model_fields]))  # before those that all algorithms have


def all_names() -> list[str]:
    """Return the dotted names of all settings, with those of every algorithm and model that comes with the project."""
    names: dict[str, None] = {}
    for name in RunConfig.model_fields:
        inner = names_in(name)
        if name in SECTIONS:
            chooser = SECTIONS[name].chooser
            inner = [one for part in SECTIONS[name].parts.names() for one in names_in(name, {chooser: part})]
        names.update(dict.fromkeys([f"{name}.{one}" for one in inner] or [name]))
    return list(names)


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


def _section(outer: type[BaseModel], name: str, settings: Flat) -> type[BaseModel] | None:
    """Return the class of the group `name` in the group `outer`, or None if there is no such group."""
    if outer is RunConfig and name in SECTIONS:
        chooser, _, section_of = SECTIONS[name]
        return section_of(settings.get(chooser, RunConfig.model_fields[chooser].default))
    field = outer.model_fields.get(name)
    annotation = field.annotation if field is not None else None
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None
