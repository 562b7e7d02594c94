"""Lines of text logs: decoded, without colours and prefixes, and steps of numbers made of them."""

import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from a3c.advise.measurements import LONGEST_S, LogError, Numbers
from a3c_core.errors import shown

_MOST_BYTES = 500_000_000
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_NUMPY = re.compile(r"np\.(?:float|int)\d+\(([^()]*)\)")
_LONGEST_LINE = 1_000_000


class Line:
    """A line of a log, by its number."""

    __slots__ = ("number", "text")

    def __init__(self, number: int, text: str):
        self.number, self.text = number, text


class Step:
    """The numbers of one step, under the names that the log has for them."""

    def __init__(self, line: int, name: str):
        self.line, self.name = line, name
        self.values: dict[str, float] = {}

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def get(self, *keys: str) -> float:
        """Return the first of these that the step has, or NaN."""
        return next((self.values[key] for key in keys if key in self.values), math.nan)

    def add(self, line: int, values: dict[str, Any]) -> None:
        """Take up numbers; whatever else a log has, such as words, is left out."""
        for key, value in values.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            self.values[str(key)] = float(value)
            if is_time(str(key)) and not 0 <= value <= LONGEST_S:
                raise LogError(f"line {line} of the log: {str(key)[:80]} is {value:g}, which is no time")


def is_time(key: str) -> bool:
    """Return whether a key names seconds, by the conventions of the systems that are read."""
    return key.startswith(("timing_s/", "timeperf/", "timers/")) or (key.startswith("perf/") and key.endswith("_time"))


def read_lines(path: Path) -> list[Line]:
    """Return the lines that are not empty, or raise LogError for what is no text."""
    if path.stat().st_size > _MOST_BYTES:
        raise LogError(f"{shown(str(path))} has more than {_MOST_BYTES:,} bytes: name a part of it")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise LogError(f"{shown(str(path))} is not a log: it is not a text file in UTF-8") from error
    if "\0" in text[:10_000]:
        raise LogError(f"{shown(str(path))} is not a log: it is not a text file in UTF-8")
    plain = _NUMPY.sub(r"\1", _COLOUR.sub("", text)) if "\x1b" in text or "np." in text else text
    lines = [Line(number, line[:_LONGEST_LINE]) for number, line in enumerate(plain.splitlines(), 1) if line.strip()]
    if not lines:
        raise LogError(f"{shown(str(path))} is empty")
    return lines


def json_object(text: str) -> dict[str, Any] | None:
    """Return the object that a line is in JSON, or None."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def flat(nested: dict[str, Any], above: str = "", depth: int = 0) -> dict[str, Any]:
    """Return {path: value} of nested objects, with paths joined by /."""
    found: dict[str, Any] = {}
    for key, value in nested.items():
        if isinstance(value, dict) and depth < 20:
            found |= flat(value, f"{above}{key}/", depth + 1)
        else:
            found[f"{above}{key}"] = value
    return found


def series(steps: Iterable[Step], *keys: str) -> Numbers:
    """Return the first of `keys` that each step has, NaN where it has none."""
    return np.array([step.get(*keys) for step in steps])


def total(steps: Iterable[Step], *keys: str) -> Numbers:
    """Return the sum of `keys` in each step, NaN where it has none of them."""
    sums = []
    for step in steps:
        found = [step.values[key] for key in keys if key in step.values]
        sums.append(sum(found) if found else math.nan)
    return np.array(sums)


def last(steps: list[Step], *keys: str) -> float | None:
    """Return the newest value of the first of `keys` that any step has."""
    for key in keys:
        for step in reversed(steps):
            if key in step.values and math.isfinite(step.values[key]):
                return step.values[key]
    return None


def whole(value: float | None) -> int | None:
    """Return a count that a log has, as the whole number that it is."""
    return round(value) if value is not None and 1 <= value < 1e9 else None


def complete(steps: list[Step], *needed: str) -> tuple[list[Step], tuple[str, ...]]:
    """Return the steps that have all of `needed`, and a note of those that have not."""
    kept = [step for step in steps if all(math.isfinite(step.get(key)) for key in needed)]
    if not kept:
        raise LogError(f"no step of the log has all of {', '.join(needed)}")
    lost = [step for step in steps if step not in kept]
    if not lost:
        return kept, ()
    names = ", ".join(needed)
    count = "1 step has" if len(lost) == 1 else f"{len(lost)} steps have"
    return kept, (f"{count} not all of {names} (first at line {lost[0].line}): left out",)


def too_long(steps: list[Step], parts: Numbers, whole_s: Numbers) -> tuple[str, ...]:
    """Return a note if the parts of steps add up to more than the steps."""
    wrong = np.flatnonzero(parts > 1.05 * whole_s)
    if not wrong.size:
        return ()
    return (f"in {wrong.size} of {len(steps)} steps the parts add up to more than the step: they overlap",)
