"""What a checkpoint scored in some episodes, as a table that ends in its mean, how sure that is, and its best."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import rich.table

LEVEL = 0.95  # of the interval


@dataclass(frozen=True)
class Played:
    """One episode."""

    episode: int
    score: float
    env_steps: int
    reward: float
    terminated: bool


def mean_interval(scores: Sequence[float]) -> tuple[float, float] | None:
    """Return Student's interval of the mean over episodes, or None if there are too few for one."""
    if len(scores) < 2:
        return None
    from scipy import special  # late, for those who ask; `stats` would take half a second more

    mean, deviation = np.mean(scores), np.std(scores, ddof=1)
    half = special.stdtrit(len(scores) - 1, (1 + LEVEL) / 2) * deviation / np.sqrt(len(scores))
    return float(mean - half), float(mean + half)


def score_table(title: str, games: Sequence[Played]) -> rich.table.Table:
    """Return a row for each episode, and below what they come to."""
    scores = [game.score for game in games]
    interval = mean_interval(scores)
    between = "unknown" if interval is None else f"{interval[0]:,.1f} to {interval[1]:,.1f}"
    summed_up = f"{np.mean(scores):,.1f}\n{between}\n{np.median(scores):,.1f}\n{max(scores):,}"
    table = rich.table.Table(title=title, show_footer=True)
    table.add_column("episode", f"mean\n{LEVEL:.0%} sure\nmedian\nmax", justify="right")
    table.add_column("score", summed_up, justify="right")
    table.add_column("steps", justify="right")
    table.add_column("return", justify="right")
    table.add_column("ended by")
    for game in games:
        ending = "death" if game.terminated else "time limit"
        table.add_row(str(game.episode), f"{game.score:,}", f"{game.env_steps:,}", f"{game.reward:,.0f}", ending)
    return table
