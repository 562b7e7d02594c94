"""Which learner a run has: the one for what its algorithm's workers hand over. A new one is a row here."""

from a3c_core.algorithms import ALGORITHMS
from a3c_core.config import RunConfig
from a3c_core.learners.base import Learner
from a3c_core.registry import Registry

LEARNERS = Registry(
    "what workers hand over",
    {
        "gradient": "a3c_core.learners.target:new_learner",
        "trajectory": "a3c_core.learners.trajectories:new_learner",
    },
)


def new_learner(config: RunConfig) -> Learner:
    """Return a learner with the run's initial parameters."""
    learner: Learner = LEARNERS.get(ALGORITHMS.get(config.algorithm).hands_over)(config)
    return learner
