"""What the score of a study's game counts, and from where on a run has learned something."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from a3c_core import games


class StudyScore(NamedTuple):
    """What a study's game counts in an episode."""

    name: str  # what is counted, as in "pipes passed per episode"
    unit: str  # of the numbers, in the plural
    learned_above: float  # a mean below this at the end of a run is no learning at all
    marks: tuple[float, ...]  # means per episode for the time to a score, rising; at least one

    def amount(self, value: float) -> str:
        """Return "1 pipe" or "5 pipes"."""
        return f"{value:g} {self.unit.removesuffix('s') if value == 1 else self.unit}"


def complete(name: str, unit: str, learned_above: float | None, marks: Sequence[float]) -> StudyScore:
    """Return the score of a game that may leave things open: without a bound no run is said to have failed."""
    bound = -math.inf if learned_above is None else learned_above
    return StudyScore(name, unit, bound, tuple(marks) or (max(0.0, bound),))


def score_of(environment_id: str) -> StudyScore:
    """Return the score of a game, as the game itself says."""
    score = games.score_of(environment_id)
    return complete(score.name, score.unit, score.learned_above, score.marks)
