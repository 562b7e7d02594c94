"""The pool that a run's settings ask for: workers on this machine, or Ray's."""

from a3c_core.config import RunConfig
from a3c_core.real.pool import LocalPool, Pool
from a3c_core.real.shared_memory import SharedBlock
from a3c_core.topologies import TOPOLOGIES


def new_pool(config: RunConfig, block: SharedBlock) -> Pool:
    """Return a pool without workers, whose slots are in `block`."""
    if TOPOLOGIES.get(config.topology).has_predictors:
        from a3c_core.real.predictors import AgentPool

        return AgentPool(config, block)
    if config.runtime != "ray":
        return LocalPool(config, block)
    from a3c_core.real.ray_pool import RayPool  # an optional extra

    return RayPool(config, block.arrays)
