"""Imported once by the fork server: loads the compiled kernels, so that workers start in milliseconds with them."""

import mmap

from a3c_core.build import make_engine
from a3c_core.config import RunConfig
from a3c_core.engines.compiled import CompiledEngine
from a3c_core.games.base import EnvironmentConfig
from a3c_core.real.cycle import CompiledCycle, can_be_compiled
from a3c_core.real.shared_memory import Layout
from a3c_core.real.transport import SharedChannel
from a3c_core.real.worker import new_worker  # noqa: F401  what a worker process imports
from a3c_core.system.imports import for_good

_CONFIG = RunConfig(engine="compiled", runtime="processes", environment=EnvironmentConfig(max_episode_steps=2))
_NOBODY = 0  # a descriptor that is never rung, nor waited for


def _load_rollouts(engine: CompiledEngine) -> None:
    """Load what a worker calls whose cycle is Python's."""
    engine.sample_times = True  # the first rollout is measured, the second is not: they call different kernels
    environment = engine.new_environment()
    for episode in range(2):
        environment.begin_episode(0, 0, episode)
        engine.rollout(engine.model.initial_parameters(0), environment)


def _load_cycle(engine: CompiledEngine) -> None:
    """Load the compiled cycle."""
    layout = Layout(slots=1, parameters=engine.model.spec.size, agents=1, averages=0, mail_bytes=0)
    arrays = layout.arrays(mmap.mmap(-1, layout.nbytes))
    channel = SharedChannel(_CONFIG, 0, arrays, _NOBODY, _NOBODY)
    if can_be_compiled(engine, _CONFIG, channel):
        CompiledCycle(_CONFIG, 0, 0, engine, arrays, channel)


_engine = make_engine(_CONFIG)
assert isinstance(_engine, CompiledEngine)
with for_good():
    _load_rollouts(_engine)
    _load_cycle(_engine)
