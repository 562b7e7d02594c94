"""Steps per second of the engines, on short and long episodes: play, gradient, both, and all with the update."""

import time
from collections.abc import Callable
from itertools import cycle
from typing import NamedTuple

import numpy as np

from a3c.benchmark.courses import SEED, Course, long_course, short_course
from a3c.benchmark.learners import learner_rows
from a3c.benchmark.measure import Results, Row, per_second
from a3c_core.models.dense import DenseModel
from a3c_core.optimizers import Optimizer
from a3c_core.system.tensorflow import import_tensorflow

Task = Callable[[], int]  # does the work of one episode and returns its env steps
Update = Callable[[], object]

REFERENCE: str = "report"
REPORT_STEPS_PER_S = 250  # about; episodes are cut for it so that one of them fits into the time given
KERAS_UPDATE = "update, Keras"
VALUE_METHODS = ("q", "sarsa", "n_step_q")


class Rate(NamedTuple):
    """A measurement: steps per second, and how long the episodes were."""

    per_second: float
    mean_env_steps: float


def measure_engine(seconds: float) -> Results:
    """Return the rates of every engine, each measured for about `seconds`."""
    flat, keras = _flat_update(), _keras_update()
    updates: dict[str, Update] = {"compiled": flat, "tensorflow": flat, "report": keras}
    rows: list[Row] = []
    courses = short_course(), long_course()
    for course in courses:
        rates = {name: _measure_course(course, name, update, seconds) for name, update in updates.items()}
        for part in rates[REFERENCE]:
            rows += _rows(f"{course.name} {part}", {name: parts[part] for name, parts in rates.items()})
    rows += [_value_row(course, algorithm, seconds) for course in courses for algorithm in VALUE_METHODS]
    rows.append(_update_row("update, flat vector", flat, 100, seconds))
    rows.append(_update_row(KERAS_UPDATE, keras, 1, seconds))
    rows += learner_rows(seconds)
    return Results("engine", "steps", REFERENCE, rows)


def _measure_course(course: Course, name: str, update: Update, seconds: float) -> dict[str, Rate]:
    """Return the rate of each part of the work."""
    if name == REFERENCE:
        course = course.cut_to(max(20, int(seconds * REPORT_STEPS_PER_S)))
    return {part: _measure(task, seconds) for part, task in _tasks(course, name, update).items()}


def _tasks(course: Course, name: str, update: Update) -> dict[str, Task]:
    """Return the parts of the work, each of which does the course's next episode whenever it is called."""
    engine, parameters = course.engine(name), course.parameters
    environment, trajectories = engine.new_environment(), cycle(course.trajectories)
    episodes = cycle(course.episodes)

    def play() -> int:
        environment.begin_episode(SEED, 0, next(episodes))
        return engine.play(parameters, environment).env_steps

    def gradient() -> int:
        trajectory = next(trajectories)
        engine.gradient(parameters, trajectory)
        return trajectory.env_steps

    def rollout() -> int:
        environment.begin_episode(SEED, 0, next(episodes))
        return engine.rollout(parameters, environment).env_steps

    def everything() -> int:
        update()
        return rollout()

    brief = course.cut_to(20)  # loads and compiles everything
    engine.gradient(parameters, brief.trajectories[0])
    engine.rollout(parameters, brief.begun(name))
    return {"play": play, "gradient": gradient, "both": rollout, "all": everything}


def _value_row(course: Course, algorithm: str, seconds: float) -> Row:
    """Return the rate of a value method on the same course, whole episodes at once, compared with the compiled a3c."""
    engine, published = course.value_engine(algorithm), course.action_values
    environment, episodes = engine.new_environment(), cycle(course.episodes)

    def rollout() -> int:
        environment.begin_episode(SEED, 0, next(episodes))
        return engine.rollout(published, environment).env_steps

    rollout()  # loads and compiles everything
    rate, compared = _measure(rollout, seconds), f"{course.name} both, compiled"
    note = f"episodes of {rate.mean_env_steps:,.0f} steps; its ratio is to {compared}"
    return Row(f"{compared} {algorithm}", rate.per_second, note, reference=compared)


def _measure(task: Task, seconds: float) -> Rate:
    """Repeat `task` for `seconds`, at least once."""
    episodes = env_steps = 0
    start = time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds or not episodes:
        env_steps += task()
        episodes += 1
    return Rate(env_steps / elapsed, env_steps / episodes)


def _rows(what: str, rates: dict[str, Rate]) -> list[Row]:
    """Return a row per engine, noting how long its episodes were (the same for `compiled` and `tensorflow`)."""
    rows = []
    for name, rate in rates.items():
        note = f"episodes of {rate.mean_env_steps:,.0f} steps"
        if name == "compiled":
            note = f"{rate.per_second / rates['tensorflow'].per_second:,.1f} x tensorflow"
        rows.append(Row(f"{what}, {name}", rate.per_second, note, reference=f"{what}, {REFERENCE}"))
    return rows


def _update_row(name: str, update: Update, chunk: int, seconds: float) -> Row:
    """Return how many updates a second Adam does, looking at the clock after every `chunk`."""

    def repeat(times: int) -> None:
        for _ in range(times):
            update()

    rate = per_second(repeat, chunk, seconds)
    return Row(name, rate, f"{1e6 / rate:,.1f} µs an update", reference=KERAS_UPDATE)


def _gradient() -> np.ndarray:
    return np.random.default_rng(SEED).normal(size=DenseModel().spec.size).astype(np.float32)


def _flat_update() -> Update:
    """Return what applies a gradient with our Adam."""
    gradient = _gradient()
    parameters, optimizer = np.zeros_like(gradient), Optimizer(gradient.size)
    return lambda: optimizer.apply(parameters, gradient)


def _keras_update() -> Update:
    """Return what applies a gradient with Keras's Adam, eagerly, as the report does."""
    tf = import_tensorflow()
    import keras

    model, optimizer = DenseModel(), keras.optimizers.Adam(1e-4)
    variables = model.build().trainable_variables
    gradients = [tf.constant(view) for view in model.spec.views(_gradient()).values()]
    return lambda: optimizer.apply_gradients(zip(gradients, variables, strict=True))
