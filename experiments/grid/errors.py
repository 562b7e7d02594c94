"""What users get wrong, said all at once: each mistake with its place and what is allowed there."""

from collections.abc import Iterable
from typing import NamedTuple


class Problem(NamedTuple):
    """One thing to mend."""

    place: str  # "line 4, axes.workers"
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}" if self.place else self.reason


class UserError(Exception):
    """The user can mend this: a message to show, without a traceback."""


class GridError(UserError):
    """All mistakes of a grid."""

    def __init__(self, source: str, problems: Iterable[Problem]):
        self.problems = tuple(dict.fromkeys(problems))
        if len(self.problems) == 1:
            message = f"{source}: {self.problems[0]}"
        else:
            message = "\n  ".join([f"{source}: {len(self.problems)} mistakes", *map(str, self.problems)])
        super().__init__(message)
