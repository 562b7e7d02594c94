"""What the score of a study's game counts, and from where on a run has learned something."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from a3c_core import games

_DEVIATIONS = 3.0  # above the untrained mean: what counts as learned in a game that names no score


class StudyScore(NamedTuple):
    """What a study's game counts in an episode."""

    name: str  # what is counted, as in "pipes passed per episode"
    unit: str  # of the numbers, in the plural
    learned_above: float  # a run whose final score is at least this has learned; NaN: no such score is known
    marks: tuple[float, ...]  # means per episode for the time to a score, rising; at least one
    basis: str = "the game's threshold"  # where learned_above comes from

    def amount(self, value: float) -> str:
        """Return "1 pipe" or "5 pipes"."""
        return f"{value:g} {self.unit.removesuffix('s') if value == 1 else self.unit}"

    @property
    def threshold(self) -> str:
        """What counts as learned, in words."""
        if math.isnan(self.learned_above):
            return "not known: the game names no score, and one run tells of no spread"
        return f"{self.amount(round(self.learned_above, 3))} ({self.basis})"


def complete(name: str, unit: str, learned_above: float | None, marks: Sequence[float]) -> StudyScore:
    """Return the score of a game that may leave things open: `with_untrained` can tell what counts as learned."""
    bound = math.nan if learned_above is None else learned_above
    return StudyScore(name, unit, bound, tuple(marks) or (0.0 if math.isnan(bound) else max(0.0, bound),))


def score_of(environment_id: str, learned_above: float | None = None) -> StudyScore:
    """Return the score of a game, as the game itself says.

    Args:
        environment_id: the game.
        learned_above: what counts as learned by the study's grid, if that says so.
    """
    score = games.score_of(environment_id)
    if learned_above is None:
        return complete(score.name, score.unit, score.learned_above, score.marks)
    return complete(score.name, score.unit, learned_above, score.marks)._replace(basis="the grid's threshold")


def with_untrained(score: StudyScore, firsts: Sequence[float]) -> StudyScore:
    """Return the score with a threshold: if none is known, the untrained mean plus three standard deviations over runs.

    Args:
        score: that of the game.
        firsts: the mean score of the first bin of each run.
    """
    values = np.asarray([value for value in firsts if np.isfinite(value)], float)
    if not math.isnan(score.learned_above) or len(values) < 2:
        return score
    bound = float(values.mean() + _DEVIATIONS * values.std(ddof=1))
    marks = score.marks if score.marks != (0.0,) else (bound,)
    return score._replace(learned_above=bound, marks=marks, basis="untrained mean plus 3 deviations over runs")
