"""How long a sweep will take, roughly, from what was measured of such runs."""

from collections.abc import Sequence

import numpy as np

from a3c_core.config import RunConfig
from a3c_core.machine.cores import cores
from experiments.grid.cells import Cell
from experiments.sweep.runner import batches

# How 10 workers learn in virtual time: the mean score (pipes) around some episodes, and env steps by score.
_EPISODES = (0, 6_000, 12_000, 18_000, 24_000, 36_000, 60_000, 100_000)
_SCORES = (0.2, 0.5, 2.0, 11.0, 29.0, 59.0, 90.0, 118.0)
_FIRST_STEPS, _STEPS_A_PIPE = 62, 38
_STEPS_PER_S = {"compiled": 1_500_000.0, "tensorflow": 20_000.0, "report": 260.0}  # on one core
_AGENTS, _FRAMES_PER_S = (1, 8, 32), (700.0, 2_100.0, 2_800.0)  # the model `conv`, by agents per worker
_POINTS = 10_000  # of a learning curve
_EPISODE_S = 1e-4  # bookkeeping
_START_S = 4.0  # of a cell's process


def cell_seconds(config: RunConfig) -> float:
    """Return about how many real seconds a cell takes if it learns; one that collapses takes less."""
    points = np.linspace(0, config.episodes - 1, min(config.episodes, _POINTS))  # of a run of any length
    mean_score = float(np.interp(points, _EPISODES, _SCORES).mean())
    env_steps = config.episodes * (_FIRST_STEPS + _STEPS_A_PIPE * mean_score)
    at_once = 1 if config.runtime == "simulate" else min(cores(), config.span.start)
    return _START_S + env_steps / _steps_per_s(config) / at_once + config.episodes * _EPISODE_S


def _steps_per_s(config: RunConfig) -> float:
    if config.model == "conv":
        return float(np.interp(config.agents_per_worker, _AGENTS, _FRAMES_PER_S))
    return _STEPS_PER_S.get(config.engine, _STEPS_PER_S["tensorflow"])


def sweep_seconds(cells: Sequence[Cell], jobs: int | None) -> float:
    """Return about how many real seconds the cells take together."""
    total = 0.0
    for group, at_once in batches(cells, jobs):
        seconds = [cell_seconds(cell.config) for cell in group]
        total += max(max(seconds), sum(seconds) / min(at_once, cores()))
    return total
