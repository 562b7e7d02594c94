"""Which learner a run has: the one for what its algorithm's workers hand over. A new one is a row here."""

from a3c_core.algorithms import ALGORITHMS
from a3c_core.config import RunConfig
from a3c_core.learners.base import Learner
from a3c_core.registry import Registry
from a3c_core.topologies import TOPOLOGIES

LEARNERS = Registry(
    "what workers hand over",
    {
        "gradient": "a3c_core.learners.target:new_learner",
        "experience": "a3c_core.learners.target:new_learner",  # which others make gradients of
        "trajectory": "a3c_core.learners.trajectories:new_learner",
        "play": "a3c_core.learners.trainer:new_learner",  # by what others predicted
    },
)


def new_learner(config: RunConfig) -> Learner:
    """Return a learner with the run's initial parameters."""
    asks = TOPOLOGIES.get(config.topology).has_predictors and not config.is_virtual
    handed_over = "play" if asks else ALGORITHMS.get(config.algorithm).hands_over
    learner: Learner = LEARNERS.get(handed_over)(config)
    return learner
