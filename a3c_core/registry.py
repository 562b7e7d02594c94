"""Names for the parts that a run is made of: those of the project, and those of users.

A registry has one row per part, `{name: "package.module:attribute"}`, and imports a part when it is asked for. A part
of a user needs no row: its name is `package.module:attribute`, which is found from the current directory too.
"""

import importlib
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from a3c_core.errors import near_miss, shown


class Registry:
    """The parts of one kind, such as algorithms, by name. A part is imported when it is asked for.

    Example:
        >>> ALGORITHMS = Registry("algorithm", {"a3c": "a3c_core.algorithms.a3c:A3C"})
        >>> ALGORITHMS.get("a3c")  # doctest: +SKIP
        >>> ALGORITHMS.get("my_module:MyAlgorithm")  # a part of the user's own needs no row  # doctest: +SKIP
    """

    def __init__(self, kind: str, rows: Mapping[str, str], otherwise: str | None = None, needs: Sequence[str] = ()):
        """Make a registry.

        Args:
            kind: what the parts are, for messages.
            rows: name -> `package.module:attribute`. A name `family/*` stands for all names that begin so.
            otherwise: the part for names without a row that are no reference; None: such names are errors.
            needs: members that a user's part must have; anything else is refused by its name.
        """
        self._kind, self._rows, self._otherwise, self._needs = kind, dict(rows), otherwise, needs

    def names(self) -> tuple[str, ...]:
        """Return the names that have a row."""
        return tuple(self._rows)

    def __contains__(self, name: str) -> bool:
        """Return whether a row is for `name`."""
        return self._row(name) is not None

    def check(self, name: str) -> None:
        """Check that there is a part called `name`. A part that has a row is not imported for that.

        Raises:
            ValueError: there is none; the message lists the names that are allowed.
        """
        if name not in self:
            self.get(name)

    def get(self, name: str) -> Any:
        """Return the part called `name`, which is imported now.

        Args:
            name: the name of a row, or `package.module:attribute` for a part of the user's own.

        Raises:
            ValueError: there is no such part, or its module can't be imported; the message says why.
        """
        row = self._row(name)
        if row is not None:
            return load(row)
        if is_reference(name):
            return self._of_the_kind(load(name), name)
        if self._otherwise is not None:
            return load(self._otherwise)
        raise ValueError(self._unknown(name))

    def _of_the_kind(self, part: Any, name: str) -> Any:
        """Return a part of others, or raise ValueError if it is something else."""
        lacking = [member for member in self._needs if not hasattr(part, member)]
        if lacking or (self._needs and not callable(part)):
            reason = f"it has no {lacking[0]}" if lacking else "it can't be called"
            raise ValueError(f"{name} is no {self._kind}: {reason}")
        return part

    def _row(self, name: str) -> str | None:
        """Return the row of `name`; that of `family/*` is for every name which begins so."""
        family = f"{name.partition('/')[0]}/*"
        return self._rows.get(name, self._rows.get(family))

    def _unknown(self, name: str) -> str:
        known = " or ".join(", ".join(self._rows).rsplit(", ", 1))
        hint = _hint(name, self._rows)
        return f"{self._kind} must be {known}, or your own package.module:attribute, not {shown(name)}{hint}"


def is_reference(name: str) -> bool:
    """Return whether `name` has the form `package.module:attribute`, for a part from outside the project."""
    module, colon, attribute = name.partition(":")
    return bool(colon) and attribute.isidentifier() and all(part.isidentifier() for part in module.split("."))


def load(reference: str) -> Any:
    """Return what `package.module:attribute` names.

    Raises:
        ValueError: the module can't be imported, or has no such attribute.
    """
    module_name, _, attribute = reference.partition(":")
    module = import_module(module_name)
    if not hasattr(module, attribute):
        raise ValueError(f"{module_name} has no attribute {shown(attribute)}{_hint(attribute, vars(module))}")
    return getattr(module, attribute)


def import_module(name: str) -> Any:
    """Return the module `name`. The current directory is searched last.

    Raises:
        ValueError: the module can't be imported; the message has the reason.
    """
    here = os.getcwd()
    if here not in sys.path:
        sys.path.append(here)  # last, so that no file there can hide an installed package
    try:
        return importlib.import_module(name)
    except Exception as error:  # whatever a module of others does while it is imported
        raise ValueError(f"module {shown(name)} can't be imported: {type(error).__name__}: {error}") from error


def _hint(word: str, allowed: Iterable[str]) -> str:
    meant = near_miss(word, allowed)
    return f"; did you mean {meant}?" if meant else ""
