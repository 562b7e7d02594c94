"""Parameters and trajectories that the learner's tests share."""

from pathlib import Path

import numpy as np

from a3c_core.algorithms.base import Trajectory
from a3c_core.models.dense import DenseModel

TRAINED = Path(__file__).parent / "data" / "trained.npy"  # one worker, seed 0, default settings, 60,000 episodes
LONG_FLIGHT = (1, 0, 4)  # (seed, worker, episode) in which the trained bird is still alive after 20,000 steps


def trained_parameters():
    """Return float32 [P] that pass about 90 pipes an episode."""
    return np.load(TRAINED, allow_pickle=False)


def made_up_trajectory(steps, terminated, parameters, seed=0):
    """Return a trajectory of any length: random but for its values, which are what `parameters` say."""
    random = np.random.default_rng([seed, steps, terminated])
    observations = random.uniform(-1, 1, (steps + 1, 8)).astype(np.float32)
    forward = DenseModel().numpy_forward(parameters)
    values = np.array([forward(observation)[1][0] for observation in observations], np.float32)
    rewards = (random.random(steps) < 0.03).astype(np.float32)
    if terminated:
        rewards[-1] = -5
    return Trajectory(
        observations=observations[:-1],
        actions=random.integers(0, 2, steps).astype(np.uint8),
        rewards=rewards,
        values=values[:-1],
        bootstrap_value=0.0 if terminated else float(values[-1]),
        terminated=terminated,
        truncated=not terminated,
    )


def relative_error(found, expected):
    """Return the length of the difference, relative to that of what was expected."""
    return np.linalg.norm(np.float64(found) - expected) / np.linalg.norm(np.float64(expected))
