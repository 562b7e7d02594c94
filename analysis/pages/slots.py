"""Numbers in prose that people wrote: `{edge/edge runs_of=all midpoint:.2f}` is filled in from a study's tables.

A slot names a study and a table (results/edge/tables/edge.csv), conditions on its columns, and the column; in the text
of a study its own name may be left out. `#` instead of a column counts rows, `*1000` before the closing brace
multiplies, `_` in a condition stands for a space, and `:.2f` is a format of Python's; without one a number has about
three digits.
"""

import re
from functools import lru_cache
from pathlib import Path

import pandas as pd

from analysis.data.study import StudyError
from analysis.words import number

_SLOT = re.compile(r"\{([^{}]+?)\}")


def fill(text: str, results: Path, study: str = "") -> str:
    """Return the text with its slots filled in.

    Args:
        text: prose with slots.
        results: the folder of all studies.
        study: the study whose text it is, for slots that name none.

    Raises:
        StudyError: a slot names what is not there, or more than one row.
    """
    return _SLOT.sub(lambda slot: _filled(slot[1], results, study), text)


def _filled(slot: str, results: Path, study: str) -> str:
    words, _, form = slot.partition(":")
    value = value_of(words, results, study)
    if isinstance(value, str):
        return value
    return format(value, form) if form else number(value)


def value_of(words: str, results: Path, study: str = "") -> float | str:
    """Return what a slot's words name: a number, or a text of the table."""
    place, *conditions = words.split()
    factor = float(conditions.pop()[1:]) if conditions and conditions[-1].startswith("*") else 1.0
    if not conditions:
        raise StudyError(f"the slot {{{words}}} names no column")
    column = conditions.pop()
    name, _, table = place.rpartition("/")
    rows = _table(results / (name or study) / "tables" / f"{table}.csv")
    for condition in conditions:
        key, _, wanted = condition.partition("=")
        if key not in rows:
            there = ", ".join(map(str, rows))
            raise StudyError(f"the slot {{{words}}} asks for {key}, which {place} has not; it has {there}")
        rows = rows[rows[key] == wanted.replace("_", " ")]
    if column == "#":
        return factor * len(rows)
    if column not in rows or len(rows) != 1:
        raise StudyError(f"the slot {{{words}}} names {len(rows)} rows of {place}, or no column {column}")
    text = str(rows[column].item())
    try:
        return factor * float(text)
    except ValueError:
        return text


@lru_cache(maxsize=128)
def _table(path: Path) -> pd.DataFrame:
    """Return a table with all cells as text."""
    try:
        return pd.read_csv(path, dtype=str, keep_default_na=False)
    except OSError as error:
        raise StudyError(f"{path} can't be read: {error.strerror}") from error
