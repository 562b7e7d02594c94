"""What users are told of their mistakes: in their words, with the likeliest thing meant, on at most one screen."""

import difflib
import re
from collections.abc import Iterable
from typing import Any

from pydantic_core import ErrorDetails

_LONGEST_VALUE = 60  # characters of a value in a message
_LONGEST_WORD = 100
_LONG_WORD = re.compile(r"\S{200,}")  # no path that anybody can read
_MOST_LINES, _MOST_CHARACTERS = 20, 3_000  # of a message
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tab and newline: a terminal obeys them
_LIMITS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}  # pydantic's names of them


def near_miss(word: str, allowed: Iterable[str]) -> str | None:
    """Return the one of `allowed` that was probably meant."""
    close = difflib.get_close_matches(word[:_LONGEST_VALUE], list(allowed), n=1, cutoff=0.7)
    return close[0] if close else None


def unknown(word: str, allowed: Iterable[str], what: str = "setting") -> str:
    """Return the reason to refuse `word`, with the likeliest one meant or, failing that, everything allowed."""
    allowed = list(allowed)
    meant = near_miss(word, allowed)
    return f"unknown {what}; " + (f"did you mean {meant}?" if meant else f"allowed: {', '.join(allowed)}")


def in_words(details: ErrorDetails) -> str:
    """Return what is wrong with a value that pydantic refused, and what is allowed instead."""
    kind, message, given = details["type"], details["msg"], details["input"]
    if kind == "value_error":
        return message.removeprefix("Value error, ")
    if kind == "missing":
        return "is missing"
    if kind == "literal_error":
        return _one_of(re.findall(r"'([^']*)'", message), given)
    for limit, words in _LIMITS.items():
        if limit in details.get("ctx", {}):
            return f"must be {words} {_number(details['ctx'][limit])}, not {shown(given)}"
    return f"{re.sub(r'^Input should be', 'must be', message)}, not {shown(given)}"


def shown(value: Any) -> str:
    """Return a value as it stands in a message: long ones lose their middle."""
    return _without_middle(repr(value), _LONGEST_VALUE)


def printable(text: str) -> str:
    """Return text in which control characters are written out, so that no terminal obeys them: \\x1b."""
    return _CONTROLS.sub(lambda control: f"\\x{ord(control[0]):02x}", text)


def on_a_screen(message: str) -> str:
    """Return a message of which every line is kept, if there is room for all; long ones lose their middles."""
    message = printable(message)
    lines = _LONG_WORD.sub(lambda word: _without_middle(word[0], _LONGEST_WORD), message).splitlines() or [""]
    kept = lines[:_MOST_LINES]
    rest = [f"  … and {len(lines) - len(kept):,} more"] if len(lines) > len(kept) else []
    return "\n".join([_without_middle(line, _MOST_CHARACTERS // len(kept)) for line in kept] + rest)


def _one_of(allowed: list[str], given: Any) -> str:
    meant = near_miss(str(given), allowed)
    choices = f"{', '.join(allowed[:-1])} or {allowed[-1]}" if len(allowed) > 1 else allowed[0]
    return f"must be {choices}, not {shown(given)}" + (f"; did you mean {meant}?" if meant else "")


def _number(limit: float) -> str:
    return f"{limit:,}" if isinstance(limit, int) else f"{limit:,.12g}"


def _without_middle(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    end = length // 3
    return f"{text[: length - end - 1]}…{text[-end:]}"
