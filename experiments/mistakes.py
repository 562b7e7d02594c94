"""What users get wrong, said all at once: each mistake with its place and what is allowed there."""

from collections.abc import Iterable
from typing import NamedTuple


class Mistake(NamedTuple):
    """One thing to mend."""

    place: str  # "line 4, axes.workers"
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}" if self.place else self.reason


class UserError(Exception):
    """The user can mend this: a message to show, without a traceback."""


class GridError(UserError):
    """All mistakes of a grid."""

    def __init__(self, source: str, mistakes: Iterable[Mistake]):
        self.mistakes = tuple(dict.fromkeys(mistakes))
        if len(self.mistakes) == 1:
            message = f"{source}: {self.mistakes[0]}"
        else:
            message = "\n  ".join([f"{source}: {len(self.mistakes)} mistakes", *map(str, self.mistakes)])
        super().__init__(message)
