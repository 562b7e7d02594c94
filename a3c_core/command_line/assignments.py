"""Settings of a run as `key=value`, by their dotted names, such as learner.learning_rate=1e-3."""

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import ValidationError

from a3c_core.config import SECTIONS, RunConfig
from a3c_core.section import Section

_LONGEST_NAME = 200  # characters: file systems allow 255
_LONGEST_SHOWN = 60  # characters of what was refused


def read_settings(assignments: Sequence[str]) -> RunConfig:
    """Return the run that assignments describe.

    Args:
        assignments: settings as `name=value`. Names are dotted, values are JSON or plain text.

    Raises:
        ValueError: an assignment is no `name=value`, the name is unknown or the value is refused; in one line.

    Example:
        >>> read_settings(["workers=10->20", "learner.learning_rate=1e-3"])  # doctest: +SKIP
    """
    given: dict[str, Any] = {}
    known = _known_to(assignments)
    for assignment in assignments:
        name, value = _parse(assignment, known)
        section, _, last = name.rpartition(".")
        (given.setdefault(section, {}) if section else given)[last] = value
    return _run_of(given)


def _run_of(given: dict[str, Any]) -> RunConfig:
    try:
        return RunConfig.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        reason = first["msg"].removeprefix("Value error, ")
        raise ValueError(f"{where}: {reason}, not {_shortened(repr(first['input']))}" if where else reason) from error


def all_settings(config: RunConfig) -> Iterator[str]:
    """Yield every setting as `key=value`, with what it means where that is written down."""
    for name, value, about in _settings(config):
        assignment = f"{name}={value if isinstance(value, str) else json.dumps(value)}"
        yield f"{assignment:<44}  # {about}" if about else assignment


def run_name(assignments: Sequence[str]) -> str:
    """Return a directory's name for a run with these settings: equal ones give an equal name."""
    settings = {name: value for name, value, _ in _settings(read_settings(assignments))}
    given = dict.fromkeys(_parse(assignment, list(settings))[0] for assignment in assignments)
    name = ",".join(f"{name}={settings[name]}".replace("->", "to") for name in given)
    name = re.sub(r"[^\w.,=+-]+", "-", name)
    if len(name) > _LONGEST_NAME:
        raise ValueError("so many settings are too long for a directory's name: choose one with --out")
    return name or "default"


def _known_to(assignments: Sequence[str]) -> list[str]:
    """Return the names of all settings that there are with the parts that the assignments choose."""
    choosers = {chosen.chooser for chosen in SECTIONS.values()}
    pairs = [[part.strip() for part in assignment.split("=", 1)] for assignment in assignments if "=" in assignment]
    parts = {name: _value(text) for name, text in pairs if name in choosers and text}
    return [name for name, _, _ in _settings(_run_of(parts))]


def _parse(assignment: str, known: Sequence[str]) -> tuple[str, Any]:
    """Return name and value: JSON where it is that (1e-3, true, null, [0, 1]), else text."""
    name, equals, text = (part.strip() for part in assignment.partition("="))
    if not (name and equals and text):
        raise ValueError(f"{_shortened(assignment)}: write it as key=value")
    _refuse_unknown(name, known)
    return name, _value(text)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _refuse_unknown(name: str, known: Sequence[str]) -> None:
    if name in known:
        return
    without_group = [full for full in known if full.rpartition(".")[2] == name]
    meant = without_group or difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {meant[0]}?" if meant else "see --settings"
    raise ValueError(f"{_shortened(name)}: unknown setting; {hint}")


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _settings(section: Section, prefix: str = "") -> Iterator[tuple[str, Any, str]]:
    """Yield (dotted name, value, description) of all settings."""
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, Section):
            yield from _settings(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value, field.description or ""
