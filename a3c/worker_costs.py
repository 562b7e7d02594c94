"""What a worker's play and gradient cost on this machine, by the time that rollouts of several lengths take."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from a3c.benchmark import courses
from a3c_core.build import make_engine
from a3c_core.config import RunConfig
from a3c_core.engines.base import Engine
from a3c_core.games.base import EnvironmentConfig
from a3c_core.models.dense import DenseModel
from a3c_core.models.parameters import Vector
from a3c_core.worker import Worker

LENGTHS: dict[str, tuple[int, ...]] = {  # env steps; as long as a few seconds allow
    "compiled": (1, 16, 64, 256, 1024),
    "tensorflow": (2, 16, 64, 256),
    "report": (2, 8, 32),
}
_UNTRAINED_LIFE = 32  # env steps that an untrained bird usually lives
_LOOKS = 5  # of which the median counts: runs meet the machine as it usually is, not at its best
_SEED = 24


class Timing(NamedTuple):
    """Means over rollouts of about one length."""

    env_steps: float
    seconds: float
    play_share: float


def worker_costs(name: str, seconds: float) -> dict[str, float]:
    """Return step_s, gradient_step_s, gradient_call_s and reset_s of an engine, spending about `seconds` on them."""
    lengths = LENGTHS[name]
    parameters = _parameters(max(lengths))
    _time_length(name, parameters, lengths[0], 0.0)  # loads and compiles what all lengths share
    timings = [_time_length(name, parameters, length, seconds / len(lengths)) for length in lengths]
    reset_s = _time_reset(_engine(name, max(lengths)))
    return {**fit_costs(timings, reset_s), "reset_s": reset_s}


def fit_costs(timings: list[Timing], reset_s: float) -> dict[str, float]:
    """Return the costs per step and per call for which a rollout's time is closest to linear in its length."""
    env_steps = np.array([timing.env_steps for timing in timings])
    total_s = np.array([timing.seconds for timing in timings])
    play_s = total_s * [timing.play_share for timing in timings]
    slope, intercept = _line(env_steps, total_s, total_s)
    play_slope, gradient_slope = (max(0.0, _line(env_steps, part, total_s)[0]) for part in (play_s, total_s - play_s))
    play_share = play_slope / max(play_slope + gradient_slope, 1e-12)
    return {
        "step_s": max(0.0, slope) * play_share,
        "gradient_step_s": max(0.0, slope) * (1.0 - play_share),
        "gradient_call_s": max(0.0, intercept - reset_s),
    }


def _line(x: np.ndarray, y: np.ndarray, scale: np.ndarray) -> tuple[float, float]:
    """Return (slope, intercept) of the line through y(x) whose errors, relative to `scale`, are least."""
    slope, intercept = np.polyfit(x, y, 1, w=1.0 / scale)
    return float(slope), float(intercept)


def _parameters(env_steps: int) -> Vector:
    """Return parameters that keep a bird alive for `env_steps`, more often than not."""
    if env_steps <= _UNTRAINED_LIFE:
        return DenseModel().initial_parameters(_SEED)
    return courses.trained(courses.TRAINING_EPISODES)


def _engine(name: str, env_steps: int) -> Engine:
    return make_engine(RunConfig(engine=name, environment=EnvironmentConfig(max_episode_steps=env_steps)))


def _time_length(name: str, parameters: Vector, length: int, seconds: float) -> Timing:
    """Return the timing of rollouts that are cut at `length` env steps."""
    engine = _engine(name, length)
    engine.sample_times = True
    clock = time.process_time if name == "compiled" else time.perf_counter  # a GPU's time is no time on a core
    worker = Worker(0, _SEED, engine)
    for _ in range(3):  # compile, trace and fill caches
        worker.work(parameters)
    looks = [_time_look(worker, engine, parameters, seconds / _LOOKS, clock) for _ in range(_LOOKS)]
    return sorted(looks, key=lambda timing: timing.seconds / (timing.env_steps + 1))[_LOOKS // 2]


def _time_look(
    worker: Worker, engine: Engine, parameters: Vector, seconds: float, clock: Callable[[], float]
) -> Timing:
    rollouts = env_steps = 0
    began_s = clock()
    while (taken_s := clock() - began_s) < seconds or not rollouts:
        env_steps += worker.work(parameters).env_steps
        rollouts += 1
    return Timing(env_steps / rollouts, taken_s / rollouts, engine.play_share)


def _time_reset(engine: Engine) -> float:
    """Return the seconds that beginning an episode takes."""
    environment, taken = engine.new_environment(), []
    for episode in range(300):
        began_s = time.perf_counter()
        environment.begin_episode(_SEED, 0, episode)
        taken.append(time.perf_counter() - began_s)
    return float(np.median(taken))
