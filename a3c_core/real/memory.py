"""A run's shared memory: how large it is, and the parameters in it where the workers update these without a lock."""

import math

import numpy as np

from a3c_core.build import parts_of
from a3c_core.config import RunConfig
from a3c_core.learners.base import Learner
from a3c_core.progress import Progress
from a3c_core.real.shared_memory import Layout, SharedArrays, SharedBlock
from a3c_core.topologies import TOPOLOGIES
from a3c_core.topologies.remedies import parcel_size

_ENVELOPE = 512  # bytes of a pickled model beside its numbers


def new_block(config: RunConfig, learner: Learner) -> SharedBlock:
    """Return memory with room for what the learner publishes and what the workers hand over."""
    size, published = learner.parameters.size, learner.publication.size
    has_master = TOPOLOGIES.get(config.topology).has_master
    averages = 0 if has_master else learner.optimizer.slots.shape[0]
    mail_bytes = 4 * published + _ENVELOPE if config.gradients.transport == "queue" else 0
    slots, agents = config.span.end, config.agents_per_worker
    parcel = parcel_size(config.gradients, learner)
    layout = Layout(slots, size, agents, averages, mail_bytes, published - size, parcel)
    return SharedBlock(layout._replace(**_of_predictors(config)))


def _of_predictors(config: RunConfig) -> dict[str, int]:
    """Return the sizes of a state and of an answer, where agents ask for their actions."""
    if not TOPOLOGIES.get(config.topology).has_predictors:
        return {}
    game, model, _ = parts_of(config)
    numbers, each = math.prod(game.spaces.observation_shape), np.dtype(game.spaces.observation_dtype).itemsize
    return {"state": numbers * each, "answer": sum(size for _, size in model.heads)}


def share(learner: Learner, arrays: SharedArrays) -> None:
    """Put all that the learner has where the workers will update it."""
    arrays.averages[:] = learner.optimizer.slots
    arrays.parameters[0] = learner.publication
    arrays.slots["updates"][0] = learner.version


def follow(learner: Learner, arrays: SharedArrays, progress: Progress) -> None:
    """Bring the learner up to date; what is published beside the parameters it sets for the workers in turn."""
    size = learner.parameters.size
    learner.parameters[:] = arrays.parameters[0, :size]
    learner.optimizer.slots[:] = arrays.averages
    learner.optimizer.updates = int(arrays.slots["updates"].sum())
    if learner.follow(progress):
        arrays.parameters[0, size:] = learner.publication[size:]
