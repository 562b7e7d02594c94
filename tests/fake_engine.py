"""An engine that plays nothing: every rollout has the length it is told, so that only time and order are tested."""

from collections.abc import Callable

import numpy as np

from a3c_core.config import RunConfig
from a3c_core.engines.base import OneAfterAnother, Rollout
from a3c_core.learners.gradients import GradientLearner
from a3c_core.optimizers import Optimizer
from a3c_core.records.tables import EpisodeRecord
from a3c_core.virtual.costs import CostProfile
from a3c_core.virtual.simulation import Simulation


class FakeEnvironment:
    """Knows whose episode it is."""

    def __init__(self):
        self.state = np.zeros(2, np.int64)

    def begin_episode(self, seed: int, worker: int, episode: int) -> None:
        self.state[:] = worker, episode

    def get_state(self):
        return self.state.view(np.uint8).copy()

    def set_state(self, state) -> None:
        self.state.view(np.uint8)[:] = state


class FakeEngine(OneAfterAnother):
    """Gives gradients of ones; `length(worker, episode)` says how many steps an episode takes."""

    def __init__(self, length: Callable[[int, int], int] = lambda worker, episode: 100):
        self.length = length
        self.parameters_seen: list[float] = []

    sample_times, play_share = False, 0.5

    def new_environment(self) -> FakeEnvironment:
        return FakeEnvironment()

    def rollout(self, parameters, environment, progress=0.0) -> Rollout:
        self.parameters_seen.append(float(parameters[0]))
        worker, episode = (int(value) for value in environment.state)
        gradient = np.ones_like(parameters)
        steps = self.length(worker, episode)
        return Rollout(0.0, 0.0, steps, 0.0, 0, terminated=True, truncated=False, gradient=gradient)


def simulate(config: RunConfig, profile: CostProfile, engine: FakeEngine | None = None, **options):
    """Return (simulation after its end, its records), with one parameter that falls by 1 at every update.

    `options`: further ones of Simulation.
    """
    records: list[EpisodeRecord] = []
    master = GradientLearner(np.zeros(1, np.float32), Optimizer(1, "sgd", learning_rate=1.0))
    simulation = Simulation(config, profile, master, records.append, engine=engine or FakeEngine(), **options)
    simulation.start()
    while simulation.step():
        pass
    return simulation, records
