"""Which runs virtual time can take in compiled code."""

from a3c_core.config import RunConfig

_ONE_WORD = 1 << 32


def why_not_compiled_time(config: RunConfig) -> str | None:
    """Return what keeps a run from compiled virtual time, or None if nothing does."""
    if config.engine != "compiled":
        return f"engine {config.engine} plays and differentiates outside of compiled code"
    if config.algorithm != "a3c":
        return f"algorithm {config.algorithm} is not compiled together with the clock"
    if config.topology != "master":
        return f"topology {config.topology} is not compiled"
    if config.agents_per_worker > 1:
        return "a worker's agents take turns in Python"
    if config.seed >= _ONE_WORD:
        return "compiled streams take seeds of 32 bits"
    return None
