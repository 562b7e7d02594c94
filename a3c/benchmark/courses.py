"""What the engines are measured on: the same parameters and the same episodes for each of them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from a3c_core.algorithms.base import Trajectory
from a3c_core.build import make_engine
from a3c_core.config import RunConfig
from a3c_core.engines.base import Engine
from a3c_core.games.base import EnvironmentConfig
from a3c_core.models.base import POLICY_AND_VALUE
from a3c_core.models.dense import DenseModel
from a3c_core.models.parameters import Vector
from a3c_core.optimizers import Optimizer

SEED = 24
EPISODES = 20  # in a course, played round and round
TRAINING_EPISODES = 30_000  # after which some birds in a hundred live for 5,000 steps


@dataclass(frozen=True)
class Course:
    """Episodes of one length: their numbers, and the parameters that play them."""

    name: str
    parameters: Vector
    episodes: list[int]
    max_episode_steps: int

    @cached_property
    def trajectories(self) -> list[Trajectory]:
        """What every engine plays here, step by step."""
        engine = self.engine("compiled")
        environment, played = engine.new_environment(), []
        for episode in self.episodes:
            environment.begin_episode(SEED, 0, episode)
            played.append(engine.play(self.parameters, environment))
        return played

    def begun(self, name: str) -> Any:
        """Return an environment of the engine called `name` at the start of the first episode."""
        environment = self.engine(name).new_environment()
        environment.begin_episode(SEED, 0, self.episodes[0])
        return environment

    def engine(self, name: str) -> Engine:
        environment = EnvironmentConfig(max_episode_steps=self.max_episode_steps)
        return make_engine(RunConfig(engine=name, environment=environment))

    @property
    def action_values(self) -> Vector:
        """What a value method plays it with: the policy's logits as action values, and the same as target network."""
        size = DenseModel(heads=(POLICY_AND_VALUE[0],)).spec.size
        return np.concatenate([self.parameters[:size], self.parameters[:size]])

    def value_engine(self, algorithm: str) -> Engine:
        """Return the compiled engine of a value method that plays greedily and whole episodes at once."""
        environment = EnvironmentConfig(max_episode_steps=self.max_episode_steps)
        learner = {"t_max": self.max_episode_steps, "epsilon_steps": 0, "final_epsilons": (0.0, 0.0, 0.0)}
        settings = {"algorithm": algorithm, "learner": learner}
        return make_engine(RunConfig.model_validate({**settings, "environment": environment}))

    def cut_to(self, env_steps: int) -> "Course":
        """Return this course with each episode cut short."""
        return Course(self.name, self.parameters, self.episodes, min(self.max_episode_steps, env_steps))


def short_course() -> Course:
    """Return episodes of about 60 steps: an untrained bird's."""
    return Course("short", DenseModel().initial_parameters(SEED), list(range(EPISODES)), 5_000)


def long_course() -> Course:
    """Return episodes of about 5,000 steps: the longest of those that a bird plays after some seconds of training."""
    every = Course("long", trained(TRAINING_EPISODES), list(range(1_000)), 5_000)
    lengths = [trajectory.env_steps for trajectory in every.trajectories]
    longest = np.argsort(lengths, kind="stable")[-EPISODES:].tolist()
    return Course("long", every.parameters, longest, every.max_episode_steps)


def trained(episodes: int) -> Vector:
    """Return the parameters after training one worker for `episodes`."""
    model = DenseModel()
    engine = make_engine(RunConfig(engine="compiled"))
    environment, parameters = engine.new_environment(), model.initial_parameters(SEED)
    optimizer = Optimizer(parameters.size)
    for episode in range(episodes):
        environment.begin_episode(SEED, 1, episode)
        optimizer.apply(parameters, engine.rollout(parameters, environment).gradient)
    return parameters
