"""Which runs virtual time can take in compiled code."""

from a3c_core.config import RunConfig
from a3c_core.schedules import rule_of
from a3c_core.streams import ONE_WORD
from a3c_core.virtual.capacity import profile_of

_ALGORITHMS = ("a3c", "q", "sarsa", "n_step_q")  # whose kernels `player` knows


def why_not_compiled_time(config: RunConfig) -> str | None:
    """Return what keeps a run from compiled virtual time, or None if nothing does."""
    if config.engine != "compiled":
        return f"engine {config.engine} plays and differentiates outside of compiled code"
    if config.algorithm not in _ALGORITHMS:
        return f"algorithm {config.algorithm} is not compiled together with the clock"
    if config.topology not in ("master", "hogwild"):
        return f"topology {config.topology} is not compiled"
    if config.topology == "hogwild" and profile_of(config).jitter != "none":
        return "jitter of updates without a master has keys of more than 32 bits"
    if config.agents_per_worker > 1:
        return "a worker's agents take turns in Python"
    exchange = config.gradients
    if exchange.carries_parameters:
        return "parcels with the parameters that they belong to are not compiled"
    if exchange.makes_workers_wait:
        return "workers that wait for a bound on staleness are not compiled"
    if config.span.auto and exchange.batch > max(1, rule_of(config.span, config.schedule).spacing):
        return "compiled code has room for one change of the worker count an update"
    if config.seed >= ONE_WORD:
        return "compiled streams take seeds of 32 bits"
    return None
