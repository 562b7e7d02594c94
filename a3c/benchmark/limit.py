"""How near the compiled engine is to what a core can do, and where the rest of a step's and of an episode's time goes.

A core's peak is what NumPy's product of matrices (float32) reaches on one thread: the best use of its arithmetic that
anyone has written down. `python -m a3c.benchmark.limit SECONDS` prints it, in a process that has one thread.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

from a3c.benchmark import env
from a3c.benchmark.courses import SEED, Course, long_course, short_course
from a3c.benchmark.measure import Fact, Results, Row, per_second
from a3c_core.engines import actor_critic_kernels
from a3c_core.engines.actor_critic_kernels import INPUTS, UNITS
from a3c_core.optimizers import Optimizer
from a3c_core.system.process_tuning import ONE_THREAD

FORWARD_FLOP = 2 * UNITS * (INPUTS + 3)  # a step: hidden layer with its bias, and three heads
BACKWARD_FLOP = 2 * UNITS * (INPUTS + 3 + 3)  # the weights of both, and the hidden units' errors
_STEP_FLOP = FORWARD_FLOP + BACKWARD_FLOP
_REFERENCE = "arithmetic at the core's peak"
_MATRIX = 512


def measure_limit(seconds: float) -> Results:
    """Return the rates of a step's parts on long episodes, and how the time of a short episode divides."""
    peak = _peak_flop_per_s(seconds)
    rows = [Row(_REFERENCE, peak / _STEP_FLOP, _note(peak / _STEP_FLOP, _STEP_FLOP))]
    rows += [
        Row(name, rate, _note(rate, flop))
        for name, (part, steps, flop) in _parts_of_a_step(long_course()).items()
        for rate in [steps * per_second(part, 1, seconds)]
    ]
    everything = rows[-1].per_second or 0.0
    facts = [
        Fact("the core's peak", peak / 1e9, "GFLOP/s"),
        Fact("arithmetic of a step, played and differentiated", _STEP_FLOP, "FLOP"),
        Fact("share of the peak, long episodes", 100 * everything * _STEP_FLOP / peak, "%"),
        *_parts_of_an_episode(short_course(), peak, seconds),
    ]
    return Results("limit", "steps", _REFERENCE, rows, facts)


def _note(rate: float, flop: int) -> str:
    return f"{1e9 / rate:,.1f} ns a step" + (f", {flop:,} FLOP: {rate * flop / 1e9:,.1f} GFLOP/s" if flop else "")


def _parts_of_a_step(course: Course) -> dict[str, tuple[Callable[[int], object], int, int]]:
    """Return what does each part for a whole episode, its steps, and the arithmetic of a step in it."""
    engine: Any = course.engine("compiled")
    parameters = course.parameters
    environment, gradient = engine.new_environment(), np.empty_like(course.parameters)
    environment.begin_episode(SEED, 0, course.episodes[-1])
    steps = engine.play(parameters, environment).env_steps
    settings, buffers = engine.settings, engine.buffers

    def rollout(_: int) -> None:
        environment.begin_episode(SEED, 0, course.episodes[-1])
        engine.rollout(parameters, environment)

    def play(_: int) -> None:
        environment.begin_episode(SEED, 0, course.episodes[-1])
        actor_critic_kernels.play(parameters, environment.game, environment.stream, steps, settings, buffers)

    game = env.compiled_loop()
    return {
        "the game": (lambda _: game(steps), steps, 0),
        "forward": (lambda _: actor_critic_kernels.evaluate(parameters, steps, buffers), steps, FORWARD_FLOP),
        "play: game, forward, draw": (play, steps, FORWARD_FLOP),
        "backward": (lambda _: actor_critic_kernels.backward(steps, buffers, gradient), steps, BACKWARD_FLOP),
        "gradient: returns, errors, backward": (
            lambda _: actor_critic_kernels.differentiate(steps, True, settings, buffers, gradient),
            steps,
            BACKWARD_FLOP,
        ),
        "play and gradient": (rollout, steps, _STEP_FLOP),
    }


def _parts_of_an_episode(course: Course, peak: float, seconds: float) -> list[Fact]:
    """Return how long each part of an untrained agent's episode takes, beside its arithmetic at the core's peak."""
    engine, parameters = course.engine("compiled"), course.parameters.copy()
    environment, optimizer = engine.new_environment(), Optimizer(parameters.size, learning_rate=1e-30)
    gradient, numbers, steps = np.zeros_like(parameters), count(), []

    def begin(_: int) -> None:
        environment.begin_episode(SEED, 0, next(numbers))

    def episode(_: int) -> None:
        begin(1)
        steps.append(engine.rollout(parameters, environment).env_steps)

    parts = {
        "beginning it": begin,
        "beginning, playing and differentiating it": episode,
        "an update": lambda _: optimizer.apply(parameters, gradient),
    }
    taken_us = {name: 1e6 / per_second(part, 1, seconds) for name, part in parts.items()}
    needed_us = 1e6 * np.mean(steps) * _STEP_FLOP / peak
    facts = [Fact(f"a short episode: {name}", value, "µs") for name, value in taken_us.items()]
    return [*facts, Fact("a short episode: its arithmetic at the core's peak", float(needed_us), "µs")]


def _peak_flop_per_s(seconds: float) -> float:
    command = [sys.executable, "-m", "a3c.benchmark.limit", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **ONE_THREAD})
    return float(done.stdout.split()[-1])


def main(seconds: str) -> None:
    """Measure a core's peak, and print it in FLOP/s."""
    left, right = np.random.default_rng(SEED).standard_normal((2, _MATRIX, _MATRIX), np.float32)
    product = np.empty_like(left)
    print(2 * _MATRIX**3 * per_second(lambda _: np.matmul(left, right, product), 1, float(seconds)))


if __name__ == "__main__":
    main(*sys.argv[1:])
