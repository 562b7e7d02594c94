"""Steps per second of learning from frames: by agents per worker on one core, and by real workers."""

import time
from collections.abc import Callable
from typing import Any

from a3c.benchmark.live import watch_real
from a3c.benchmark.measure import Fact, Results, Row
from a3c_core.build import make_engine
from a3c_core.config import LearnerConfig, RunConfig
from a3c_core.games.base import EnvironmentConfig
from a3c_core.models.conv import ConvModel
from a3c_core.worker import Worker

AGENTS = (1, 8, 32)
WORKERS = (1, 2, 4)
_FRAMES = EnvironmentConfig(observation="frames")
_LEARNER = LearnerConfig(t_max=20, update_every="t_max", standardise=False, learning_rate=1e-30)  # episodes keep length
_CONFIG = RunConfig(engine="tensorflow", model="conv", environment=_FRAMES, learner=_LEARNER)
_REAL_S = 5.0  # the least time for a run with real workers
_ENDLESS = 10**9  # episodes


def measure_frames(seconds: float) -> Results:
    """Return the rates of acting and of learning, each watched for about `seconds`."""
    rows = [_row(f"act, {agents} agents", _act(agents, seconds), "act, 1 agents") for agents in AGENTS]
    rows += [_row(f"learn, {agents} agents", _learn(agents, seconds), "learn, 1 agents") for agents in AGENTS]
    first = f"{WORKERS[0]} processes, {AGENTS[0]} agents"
    for workers in WORKERS:
        rows += [
            _row(f"{workers} processes, {agents} agents", _run(workers, agents, seconds), first) for agents in AGENTS
        ]
    act = {row.name: row.per_second or 0.0 for row in rows}
    gain = act[f"act, {AGENTS[-1]} agents"] / act["act, 1 agents"]
    facts = [Fact(f"acting for {AGENTS[-1]} agents at once against one, on one core", gain, "x")]
    return Results("frames", "steps", "one agent", rows, facts, where="one core, or one per process")


def _row(name: str, rate: float, reference: str) -> Row:
    return Row(name, rate, f"{1e6 / rate / 3600:.2f} h per million steps", reference)


def _act(agents: int, seconds: float) -> float:
    engine: Any = make_engine(_CONFIG)
    environments = [engine.new_environment() for _ in range(agents)]
    parameters = ConvModel().initial_parameters(0)
    games = [0]

    def play() -> int:
        for environment in environments:
            environment.begin_episode(0, 0, games[0])
            games[0] += 1
        return sum(trajectory.env_steps for trajectory in engine.play_together(parameters, environments))

    return _steps_per_s(play, seconds)


def _learn(agents: int, seconds: float) -> float:
    worker = Worker(0, 0, make_engine(_CONFIG), agents=agents)
    parameters = ConvModel().initial_parameters(0)
    return _steps_per_s(lambda: worker.work(parameters).env_steps, seconds)


def _run(workers: int, agents: int, seconds: float) -> float:
    scale = {"workers": str(workers), "agents_per_worker": agents, "episodes": _ENDLESS, "runtime": "processes"}
    config = _CONFIG.model_copy(update=scale)
    seen = watch_real(config, ConvModel().initial_parameters(0), max(seconds, _REAL_S), episodes=2 * workers)
    return seen.env_steps_per_s


def _steps_per_s(play: Callable[[], int], seconds: float) -> float:
    play()  # traces and fills caches
    steps, began_s = 0, time.perf_counter()
    while (taken_s := time.perf_counter() - began_s) < seconds or not steps:
        steps += play()
    return steps / taken_s
