"""Imported once by the fork server: loads the compiled kernels, so that workers start in milliseconds with them."""

from a3c_core.config import RunConfig
from a3c_core.games.base import EnvironmentConfig
from a3c_core.parts import make_engine
from a3c_core.real import worker_main  # noqa: F401

_engine = make_engine(RunConfig(engine="compiled", environment=EnvironmentConfig(max_episode_steps=2)))
_engine.sample_times = True  # the first rollout is measured, the second is not: they call different kernels
_environment = _engine.new_environment()
for _episode in range(2):
    _environment.begin_episode(0, 0, _episode)
    _engine.rollout(_engine.model.initial_parameters(0), _environment)
