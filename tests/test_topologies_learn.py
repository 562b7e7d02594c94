"""Every topology and remedy learns Flappy Bird: far in virtual time, and a little with real processes."""

import numpy as np
import pytest

from a3c_core.config import RunConfig
from a3c_core.train import Run

SWIFT = {"learning_rate": 2e-3}
CASES = {
    "hold": {"workers": "4", "exchange": {"hold": 4}},
    "batch": {"workers": "20", "exchange": {"queue": "unbounded", "batch": 8, "combine": "sum"}},
    "staleness": {"workers": "10", "exchange": {"rate": "staleness"}},
    "gap": {"workers": "10", "exchange": {"rate": "gap"}},
    "compensation": {"workers": "10", "exchange": {"compensation": 0.04}},
    "drop": {"workers": "10", "exchange": {"bound": 12}},
    "wait": {"workers": "10", "exchange": {"bound": 5, "beyond": "wait"}},
    "synchronous": {"workers": "8", "topology": "synchronous", "exchange": {"backups": 2}},
    "sharded": {"workers": "10", "topology": "sharded", "exchange": {"shards": 3}},
}


class Learned(Exception):
    """The run has shown what was asked of it."""


def learns(config: RunConfig, pipes: float, episodes: int) -> bool:
    """Return whether the mean score of some `episodes` in a row exceeds `pipes` before the run ends."""
    scores: list[float] = []

    def look(record):
        scores.append(record.score)
        if len(scores) % episodes == 0 and np.mean(scores[-episodes:]) > pipes:
            raise Learned

    try:
        Run(config, None, look).finish()
    except Learned:
        return True
    return False


@pytest.mark.parametrize("name", CASES)
def test_in_virtual_time_beyond_50_pipes(name):
    config = RunConfig.model_validate({**CASES[name], "learner": SWIFT, "episodes": 40_000})
    assert learns(config, pipes=50, episodes=500)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name != "sharded"])
def test_with_real_processes_beyond_5_pipes(name):
    config = RunConfig.model_validate({**CASES[name], "workers": "3", "episodes": 60_000, "runtime": "processes"})
    assert learns(config.model_copy(update={"learner": config.learner.model_copy(update=SWIFT)}), 5, episodes=200)
