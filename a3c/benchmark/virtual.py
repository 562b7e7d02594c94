"""Episodes per second of virtual time: compiled and in Python, short and long ones, with few and many workers."""

from a3c.benchmark import courses
from a3c.benchmark.live import Seen, watch_virtual
from a3c.benchmark.measure import Fact, Results, Row
from a3c_core.config import LearnerConfig, RunConfig
from a3c_core.models.dense import DenseModel
from a3c_core.models.parameters import Vector
from a3c_core.virtual.compiled.runtime import CompiledSimulation
from a3c_core.virtual.simulation import Simulation

LONG_TRAINING = 40_000  # episodes, after which a bird lives for some 2,000 steps
CROWDS = (10, 100, 1_000, 10_000)  # workers
_FEW, _MOST = CROWDS[0], CROWDS[-1]
_WAYS = {"compiled": CompiledSimulation, "Python": Simulation}
_FROZEN = LearnerConfig(learning_rate=1e-30)  # all updates are made, but episodes keep their length
_ENDLESS = 10**9  # episodes


def measure_virtual(seconds: float) -> Results:
    """Return the rates of virtual time, each watched for about `seconds`."""
    played = {"short": DenseModel().initial_parameters(courses.SEED), "long": courses.trained(LONG_TRAINING)}
    rows = []
    for length, parameters in played.items():
        reference = _name(length, _FEW, "Python")
        for way in _WAYS:
            rows.append(_row(_name(length, _FEW, way), reference, _watch(_FEW, way, parameters, seconds)))
    few = rows[0].name
    for workers in CROWDS[1:]:
        seen = _watch(workers, "compiled", played["short"], seconds)
        rows.append(_row(_name("short", workers, "compiled"), few, seen))
    return Results("virtual", "episodes", "row named in brackets", rows, [_cost_of_a_crowd(rows)])


def _watch(workers: int, way: str, parameters: Vector, seconds: float) -> Seen:
    config = RunConfig(workers=str(workers), episodes=_ENDLESS, profile="uniform", learner=_FROZEN)
    return watch_virtual(config, parameters, seconds, _WAYS[way])


def _name(length: str, workers: int, way: str) -> str:
    return f"{length}, {workers:,} workers, {way}"


def _row(name: str, reference: str, seen: Seen) -> Row:
    rate = max(seen.episodes_per_s, 1e-9)
    note = f"{1e6 / rate:,.1f} µs an episode of {seen.env_steps_per_s / rate:,.0f} steps ({reference})"
    return Row(name, seen.episodes_per_s, note, reference)


def _cost_of_a_crowd(rows: list[Row]) -> Fact:
    """Return how many times as much an episode costs among the most workers as among few."""
    rates = {row.name: row.per_second or 0.0 for row in rows}
    few, most = (rates[_name("short", workers, "compiled")] for workers in (_FEW, _MOST))
    return Fact(f"cost of an episode, {_MOST:,} workers against {_FEW}", few / max(most, 1e-9), "x")
