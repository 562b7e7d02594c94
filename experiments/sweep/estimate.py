"""How long a sweep will take, roughly, from what was measured of such runs."""

from collections.abc import Sequence

import numpy as np

from a3c_core.config import RunConfig
from a3c_core.system.cores import cores
from a3c_core.virtual.capacity import profile_of
from experiments.grid.cells import Cell
from experiments.sweep.runner import batches

# How 10 workers learn in virtual time: the mean score (pipes) around some episodes, and env steps by score.
_EPISODES = (0, 6_000, 12_000, 18_000, 24_000, 36_000, 60_000, 100_000)
_SCORES = (0.2, 0.5, 2.0, 11.0, 29.0, 59.0, 90.0, 118.0)
_FIRST_STEPS, _STEPS_A_PIPE = 62, 38
_STEPS_PER_S = {"compiled": 1_500_000.0, "tensorflow": 20_000.0, "report": 260.0}  # on one core
_AGENTS, _FRAMES_PER_S = (1, 8, 32), (700.0, 2_100.0, 2_800.0)  # the model `conv`, by agents per worker
_ATARI, _ATARI_STEPS, _EMULATOR_S = "ALE/", 1_500, 7e-4  # env steps of a game, and what one costs beside the network
_LSTM_PER_S = 3_500.0  # upon a row of numbers, with 64 units and 8 agents
_POINTS = 10_000  # of a learning curve
_EPISODE_S = 1e-4  # bookkeeping
_START_S = 4.0  # of a cell's process


def cell_seconds(config: RunConfig) -> float:
    """Return about how many real seconds a cell takes if it learns; one that collapses takes less."""
    points = np.linspace(0, config.episodes - 1, min(config.episodes, _POINTS))  # of a run of any length
    mean_score = float(np.interp(points, _EPISODES, _SCORES).mean())
    steps = _FIRST_STEPS + _STEPS_A_PIPE * mean_score
    if config.environment.id.startswith(_ATARI):
        steps = _ATARI_STEPS
    env_steps = config.episodes * min(steps, config.environment.max_episode_steps)
    if config.env_steps is not None:
        env_steps = min(env_steps, config.env_steps)
    if config.is_paced:
        return _START_S + _paced_seconds(config, env_steps)
    at_once = 1 if config.runtime == "simulate" else min(cores(), config.span.start)
    return _START_S + env_steps / _steps_per_s(config) / at_once + env_steps / steps * _EPISODE_S


def _paced_seconds(config: RunConfig, env_steps: float) -> float:
    """Return how long the profile's costs last at the run's speed, for the workers or for the master."""
    profile, episodes = profile_of(config), config.episodes
    workers_s = episodes * profile.cycle_s(env_steps / episodes) / config.span.start
    master_s = episodes * (profile.service_s(mailboxes=1) + profile.first_bookkeeping_s)
    return max(workers_s, master_s) / config.pace.speed


def _steps_per_s(config: RunConfig) -> float:
    if config.model == "conv" or config.environment.observation in ("frames", "frame"):
        per_s = float(np.interp(config.agents_per_worker, _AGENTS, _FRAMES_PER_S))
        return 1 / (1 / per_s + _EMULATOR_S) if config.environment.id.startswith(_ATARI) else per_s
    if config.model == "lstm":
        return _LSTM_PER_S
    return _STEPS_PER_S.get(config.engine, _STEPS_PER_S["tensorflow"])


def sweep_seconds(cells: Sequence[Cell], jobs: int | None) -> float:
    """Return about how many real seconds the cells take together."""
    total = 0.0
    for group, at_once in batches(cells, jobs):
        seconds = [cell_seconds(cell.config) for cell in group]
        total += max(max(seconds), sum(seconds) / min(at_once, cores()))
    return total
