"""Whether real workers and their master have to share cores."""

from a3c_core.config import RunConfig
from a3c_core.system.cores import cores
from a3c_core.system.ray_cluster import address


def is_oversubscribed(config: RunConfig, at_once: int = 1) -> bool:
    """Return whether real workers and their masters will share cores, which distorts what is measured."""
    if config.is_virtual or config.is_paced or (config.runtime == "ray" and address()):
        return False  # on a cluster each worker has a CPU of its own; paced ones sleep, and tell if they are late
    return (config.span.end + 1) * at_once > cores()
