"""Episodes per second of virtual time: short and long ones, with few and many workers, in every topology."""

from typing import Any

from a3c.benchmark import courses
from a3c.benchmark.live import watch_virtual
from a3c.benchmark.measure import Fact, Results, Row
from a3c_core.build import new_learner
from a3c_core.config import RunConfig
from a3c_core.models.dense import DenseModel
from a3c_core.models.parameters import Vector

LONG_TRAINING = 40_000  # episodes, after which a bird lives for some 2,000 steps
CROWDS = (10, 100, 1_000, 10_000)  # workers
_FEW, _MOST = CROWDS[0], CROWDS[-1]
_ENDLESS = 10**9  # episodes
_FROZEN = {"learning_rate": 1e-30}  # all updates are made, but episodes keep their length
OTHERS: dict[str, dict[str, Any]] = {  # beside the master of gradients without jitter
    "lognormal jitter": {"jitter": "lognormal"},
    "synchronous": {"topology": "synchronous"},
    "sharded": {"topology": "sharded"},
    "hogwild": {"topology": "hogwild"},
    "ga3c": {"topology": "ga3c"},
    "gorila, dqn": {
        "topology": "gorila",
        "algorithm": "dqn",
        "exchange": {"pace": "in_step"},
        "learner": {**_FROZEN, "learn_from": 200, "memory_steps": 5_000},
    },
    "q": {"algorithm": "q"},
    "ppo": {"algorithm": "ppo"},
}


def measure_virtual(seconds: float) -> Results:
    """Return the rates of virtual time, each watched for about `seconds`."""
    short, long = DenseModel().initial_parameters(courses.SEED), courses.trained(LONG_TRAINING)
    rows = [_row("long", _FEW, {}, seconds, long)]
    rows += [_row("short", workers, {}, seconds, short) for workers in CROWDS]
    rows += [_row("short", _FEW, settings, seconds, None, name) for name, settings in OTHERS.items()]
    return Results("virtual", "episodes", "row named in brackets", rows, [_cost_of_a_crowd(rows)])


def _row(
    length: str, workers: int, settings: dict[str, Any], seconds: float, parameters: Vector | None, name: str = ""
) -> Row:
    """Watch a run; `parameters`: what it plays with, or the run's own initial ones."""
    basic = {"workers": str(workers), "episodes": _ENDLESS, "profile": "uniform", "learner": _FROZEN}
    config = RunConfig.model_validate({**basic, **settings})
    seen = watch_virtual(config, new_learner(config).parameters if parameters is None else parameters, seconds)
    rate, reference = max(seen.episodes_per_s, 1e-9), _name("short", _FEW)
    note = f"{1e6 / rate:,.1f} µs an episode of {seen.env_steps_per_s / rate:,.0f} steps ({reference})"
    return Row(_name(length, workers, name), seen.episodes_per_s, note, reference)


def _name(length: str, workers: int, name: str = "") -> str:
    return f"{length}, {workers:,} workers{', ' if name else ''}{name}"


def _cost_of_a_crowd(rows: list[Row]) -> Fact:
    """Return how many times as much an episode costs among the most workers as among few."""
    rates = {row.name: row.per_second or 0.0 for row in rows}
    few, most = (rates[_name("short", workers)] for workers in (_FEW, _MOST))
    return Fact(f"cost of an episode, {_MOST:,} workers against {_FEW}", few / max(most, 1e-9), "x")
