"""Imported once by the fork server: loads the compiled kernels, so that workers start in milliseconds with them."""

from a3c_core.config import EnvironmentConfig, LearnerConfig
from a3c_core.engines.compiled import CompiledEngine
from a3c_core.models import DenseModel
from a3c_core.real import worker_main  # noqa: F401

_model = DenseModel()
_engine = CompiledEngine(_model, EnvironmentConfig(max_episode_steps=2), LearnerConfig())
_engine.sample_times = True  # the first rollout is measured, the second is not: they call different kernels
_environment = _engine.new_environment()
for _episode in range(2):
    _environment.begin_episode(0, 0, _episode)
    _engine.rollout(_model.initial_parameters(0), _environment)
