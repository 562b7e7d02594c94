"""Value methods learn to fly: ten workers in virtual time, judged by greedy play."""

import numpy as np
import pytest

from a3c_core.build import make_engine
from a3c_core.config import RunConfig
from a3c_core.train import Run

SETTINGS = {"t_max": 20, "learning_rate": 1e-3, "target_every": 1_000, "epsilon_steps": 200_000}
GREEDY = {"epsilon_steps": 0, "final_epsilons": (0.0, 0.0, 0.0)}


def config_of(algorithm, **learner):
    environment = {"max_episode_steps": 1_000}  # some 26 pipes
    settings = {"workers": "10", "episodes": 12_000, "profile": "uniform", "environment": environment}
    return RunConfig.model_validate({**settings, "algorithm": algorithm, "learner": {**SETTINGS, **learner}})


def greedy_score(algorithm, published, episodes=10):
    """Return how many pipes it passes without dice, on average."""
    engine = make_engine(config_of(algorithm, **GREEDY))
    world, scores = engine.new_environment(), []
    for episode in range(episodes):
        world.begin_episode(10**6, 0, episode)
        rollout = engine.rollout(published, world)
        while not rollout.episode_over:
            rollout = engine.rollout(published, world)
        scores.append(rollout.score)
    return np.mean(scores)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["q", "sarsa", "n_step_q"])
def test_ten_workers_learn_to_fly(algorithm):
    run = Run(config_of(algorithm), None)
    assert greedy_score(algorithm, run.learner.publication) < 1
    run.runtime.start()
    score = 0.0
    while score < 10 and run.advance(4_096):  # events: some 40,000 env steps
        score = greedy_score(algorithm, run.learner.publication)
    assert score >= 10
