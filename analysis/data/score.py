"""What the score of a study's game counts, and from where on a run has learned something."""

from typing import NamedTuple


class Score(NamedTuple):
    """What a game counts in an episode."""

    name: str  # what is counted, as in "pipes passed per episode"
    unit: str  # of the numbers, in the plural
    learned_above: float  # a mean below this at the end of a run is no learning at all
    marks: tuple[float, ...]  # means per episode for the time to a score, rising

    def amount(self, value: float) -> str:
        """Return "1 pipe" or "5 pipes"."""
        return f"{value:g} {self.unit.removesuffix('s') if value == 1 else self.unit}"


FLAPPY_BIRD = Score("pipes passed", "pipes", learned_above=1.0, marks=(1.0, 5.0, 10.0, 20.0, 50.0, 100.0))


def score_of(environment_id: str) -> Score:
    """Return the score of a game; all games of this project so far are Flappy Bird, in one form or another."""
    return FLAPPY_BIRD
