"""What the `compiled` engine computes each algorithm with: a row for each that it can.

`kernels` is a module with `new_buffers`, `rollout`, `play`, `evaluate` and `differentiate`, and `judge` where there is
a target network; `settings` makes the scalars that these take.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from a3c_core.algorithms.a3c import A3C
from a3c_core.algorithms.dqn import DQN
from a3c_core.algorithms.n_step_q import NStepQ
from a3c_core.algorithms.q import Q
from a3c_core.algorithms.sarsa import Sarsa
from a3c_core.algorithms.values import ValueAlgorithm
from a3c_core.engines import kernels, value_kernels
from a3c_core.games import flappy
from a3c_core.games.base import EnvironmentConfig


class Arithmetic(NamedTuple):
    """Of one algorithm."""

    kernels: Any
    settings: Callable[[EnvironmentConfig, Any], Any]


def _rewards(environment: EnvironmentConfig) -> dict[str, np.float32]:
    reward = flappy.REWARDS[environment.reward]
    each = {f"reward_{name}": np.float32(getattr(reward, name)) for name in ("pipe", "death", "alive")}
    return {**each, "reward_limit": np.float32(1.0 if environment.clip_rewards else np.inf)}


def _a3c(environment: EnvironmentConfig, algorithm: A3C) -> kernels.Settings:
    learner = algorithm.settings
    return kernels.Settings(
        gamma=np.float32(learner.gamma),
        t_max=learner.t_max or 0,
        standardise=learner.standardise,
        stretched=learner.discounts == "stretched",
        pixels=environment.observation == "pixels",
        huber=learner.value_loss == "huber",
        value_coefficient=np.float32(learner.value_coefficient),
        entropy_coefficient=np.float32(learner.entropy_coefficient),
        **_rewards(environment),
    )


def _values(environment: EnvironmentConfig, algorithm: ValueAlgorithm) -> value_kernels.Settings:
    return value_kernels.Settings(
        gamma=np.float32(algorithm.settings.gamma),
        one_step=algorithm.one_step,
        follows=hasattr(algorithm, "value_of"),
        pixels=environment.observation == "pixels",
        **_rewards(environment),
    )


ARITHMETIC: dict[type, Arithmetic] = {
    A3C: Arithmetic(kernels, _a3c),
    **dict.fromkeys((Q, Sarsa, NStepQ, DQN), Arithmetic(value_kernels, _values)),
}
