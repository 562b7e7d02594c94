"""What the fork server of a run's workers imports ahead of them, so that they start sooner and share it."""

from a3c_core.build import parts_of
from a3c_core.config import RunConfig
from a3c_core.topologies import TOPOLOGIES

COMPILED = "a3c_core.real.preload"
TENSORFLOW = "a3c_core.real.preload_tensorflow"
ONEDNN = "a3c_core.real.preload_onednn"
_NEED_TENSORFLOW = ("tensorflow", "report")  # engines


def preload_of(config: RunConfig) -> str:
    """Return the module's name. GPUs are chosen by each worker before it loads TensorFlow, so that none is ahead."""
    asks = TOPOLOGIES.get(config.topology).has_predictors
    if config.engine not in _NEED_TENSORFLOW or config.gpus or asks:
        return COMPILED
    return ONEDNN if parts_of(config).model.onednn else TENSORFLOW
