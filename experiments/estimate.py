"""How long a sweep will take, roughly: from earlier runs of its cells, or from what was measured of such runs."""

from collections.abc import Sequence

from a3c_core.config import RunConfig
from experiments.grid import Cell
from experiments.provenance import cores
from experiments.sweep import batches

# Mean score (pipes) of 10 workers at these episodes, and what a score costs: measured in virtual time (docs/tracking.md).
_LEARNING = ((0, 0.2), (6_000, 0.5), (12_000, 2.0), (18_000, 11.0), (24_000, 29.0), (36_000, 59.0), (60_000, 90.0))
_FIRST_STEPS, _STEPS_A_PIPE = 62, 38
_STEPS_PER_S = {"compiled": 1_500_000.0, "tensorflow": 20_000.0, "report": 260.0}  # on one core
_EPISODE_S = 1e-4  # bookkeeping
_START_S = 4.0  # of a cell's process


def cell_seconds(config: RunConfig) -> float:
    """Return about how many real seconds a cell takes if it learns; one that collapses takes less."""
    steps = sum(_steps(episode) for episode in range(0, config.episodes, 100)) * 100
    share = min(1.0, config.episodes / 100)  # of the last hundred, in short runs
    at_once = 1 if config.runtime == "simulate" else min(cores(), config.span.start)
    return _START_S + share * steps / _STEPS_PER_S[config.engine] / at_once + config.episodes * _EPISODE_S


def sweep_seconds(cells: Sequence[Cell], jobs: int | None) -> float:
    """Return about how many real seconds the cells take together."""
    total = 0.0
    for group, at_once in batches(cells, jobs):
        seconds = [cell_seconds(cell.config) for cell in group]
        total += max(max(seconds), sum(seconds) / min(at_once, cores()))
    return total


def _steps(episode: int) -> float:
    """Return the env steps of a learner's episode, between the measured ones."""
    for (left, low), (right, high) in zip(_LEARNING, _LEARNING[1:], strict=False):
        if episode < right:
            return _FIRST_STEPS + _STEPS_A_PIPE * (low + (high - low) * (episode - left) / (right - left))
    return _FIRST_STEPS + _STEPS_A_PIPE * _LEARNING[-1][1]
