"""Env steps per second of learning, one core each: ours, and what is installed of what people would use instead.

`python -m a3c.benchmark.peers NAME SECONDS` measures one of them and prints its rate: each has a process of its
own, so that none inherits another's threads.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from a3c.benchmark.measure import Results, Row
from a3c_core.system.process_tuning import ONE_THREAD

OURS = "compiled, 10 workers"
_GAMES, _HORIZON = 40, 5


class Peer(NamedTuple):
    """A way to learn Flappy Bird."""

    note: str
    measure: Callable[[float], float]  # (seconds) -> env steps per second
    package: str = "a3c_core"


def measure_peers(seconds: float) -> Results:
    """Return the rate of each, one after the other on one core; those that are not installed say how to."""
    return Results("peers", "steps", OURS, [_row(name, peer, seconds) for name, peer in PEERS.items()])


def _row(name: str, peer: Peer, seconds: float) -> Row:
    if importlib.util.find_spec(peer.package) is None:
        return Row(name, None, f"not installed: uv pip install {peer.package.replace('_', '-')}")
    command = [sys.executable, "-m", "a3c.benchmark.peers", name, str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **ONE_THREAD})
    if done.returncode:
        return Row(name, None, f"failed: {done.stderr.strip().splitlines()[-1]}")
    return Row(name, float(done.stdout.split()[-1]), peer.note)


def _ours(engine: str, episodes: int) -> Callable[[float], float]:
    def measure(seconds: float) -> float:
        from a3c_core.config import RunConfig
        from a3c_core.train import train

        config = RunConfig(workers="10", engine=engine, profile="uniform", episodes=episodes)
        train(config)  # compiles and fills caches
        env_steps, wall_s, seed = 0, 0.0, 0
        while wall_s < seconds:
            seed += 1
            with tempfile.TemporaryDirectory() as folder:
                summary = train(config.model_copy(update={"seed": seed}), Path(folder))
            env_steps, wall_s = env_steps + summary.env_steps, wall_s + summary.wall_s
        return env_steps / wall_s

    return measure


def _stable_baselines(algorithm: str) -> Callable[[float], float]:
    def measure(seconds: float) -> float:
        import stable_baselines3
        import torch
        from stable_baselines3.common.vec_env import DummyVecEnv

        from a3c_core.games.flappy_env import FlappyBirdEnv

        torch.set_num_threads(1)
        network = {"net_arch": [128], "activation_fn": torch.nn.ReLU}
        envs = DummyVecEnv([FlappyBirdEnv] * _GAMES)
        learner: Any = getattr(stable_baselines3, algorithm)("MlpPolicy", envs, policy_kwargs=network, device="cpu")
        at_once = learner.n_steps * _GAMES
        learner.learn(at_once)
        env_steps, began = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - began) < seconds or not env_steps:
            learner.learn(at_once, reset_num_timesteps=False)
            env_steps += at_once
        return env_steps / elapsed

    return measure


def _jax(games: int, horizon: int) -> Callable[[float], float]:
    def measure(seconds: float) -> float:
        from a3c.benchmark.jax_a2c import measure as measure_jax

        return measure_jax(games, horizon, seconds)

    return measure


PEERS = {
    OURS: Peer("whole runs in virtual time, records included", _ours("compiled", 5_000)),
    "tensorflow, 10 workers": Peer("the reference engine", _ours("tensorflow", 200)),
    "Stable-Baselines3 A2C": Peer(f"{_GAMES} games", _stable_baselines("A2C"), "stable_baselines3"),
    "Stable-Baselines3 PPO": Peer(f"{_GAMES} games", _stable_baselines("PPO"), "stable_baselines3"),
    "JAX A2C, small": Peer(f"{_GAMES} games, {_HORIZON} steps an update, all compiled", _jax(_GAMES, _HORIZON), "jax"),
    "JAX A2C, large": Peer("4,096 games, 64 steps an update, all compiled", _jax(4096, 64), "jax"),
}


def main(name: str, seconds: str) -> None:
    """Measure one peer on one core, and print its rate."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(PEERS[name].measure(float(seconds)))


if __name__ == "__main__":
    main(*sys.argv[1:])
