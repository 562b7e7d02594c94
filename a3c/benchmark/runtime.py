"""Steps per second of whole runs: by runtime, transport, engine and number of workers; memory, start-up, the master."""

from typing import NamedTuple

from a3c.benchmark import courses
from a3c.benchmark.feeder import EXCHANGES, FedMaster
from a3c.benchmark.live import Seen, watch_real, watch_virtual
from a3c.benchmark.measure import Fact, Results, Row
from a3c_core.config import LearnerConfig, RunConfig
from a3c_core.models.dense import DenseModel
from a3c_core.models.parameters import Vector
from a3c_core.system.ray_cluster import ray_is_installed

LONG_TRAINING = 40_000  # episodes, after which a bird lives for some 2,000 steps
ENGINES = ("compiled", "tensorflow", "report")  # fastest first
CROWD = 40
REFERENCE = "row named in brackets"
_FROZEN = LearnerConfig(learning_rate=1e-30)  # all updates are made, but episodes keep their length
_EVERY_STEP = LearnerConfig(learning_rate=1e-30, t_max=1, update_every="t_max", standardise=False)
_ENDLESS = 10**9  # episodes
_LOOKS = 5  # of which the fastest counts
_ENGINE_WORKERS = 10
_ENGINE_S = 5.0  # the least time for engines that play a hundred steps a second


class Case(NamedTuple):
    """One row: what runs where."""

    length: str  # short or long episodes
    runtime: str
    transport: str
    workers: int
    engine: str = "compiled"

    def __str__(self) -> str:
        place = f"{self.runtime}, {self.transport}" if self.runtime in ("processes", "threads") else self.runtime
        engine = "" if self.engine == "compiled" else f", {self.engine}"
        return f"{self.length}, {place}, {self.workers}{engine}"

    def config(self) -> RunConfig:
        return RunConfig.model_validate(
            {
                "workers": str(self.workers),
                "episodes": _ENDLESS,
                "runtime": self.runtime,
                "engine": self.engine,
                "profile": "uniform",
                **EXCHANGES[self.transport],
                "learner": _FROZEN,
            }
        )


SCALING = [Case("long", "processes", "shared", workers) for workers in (1, 2, CROWD)]
_ONE, _TWO, _MANY = SCALING
_SHORT = Case("short", "processes", "shared", 2)
OTHERS = [
    Case("long", "processes", "queue", 2),
    Case("long", "processes", "hogwild", 2),
    Case("long", "threads", "shared", 2),
    Case("long", "simulate", "shared", 2),
    _SHORT,
    _SHORT._replace(transport="queue"),
    _SHORT._replace(transport="hogwild"),
    Case("short", "processes", "shared", CROWD),
    Case("short", "threads", "shared", 2),
    Case("short", "simulate", "shared", 2),
]
_ALONE = _SHORT._replace(workers=1)
ON_RAY = [
    Case("long", "ray", "shared", 2),
    Case("short", "ray", "shared", 2),
    _ALONE,
    _ALONE._replace(runtime="ray"),
]


def measure_runtime(seconds: float) -> Results:
    """Return the rates of whole runs, each watched for about `seconds`."""
    parameters = {"short": DenseModel().initial_parameters(courses.SEED), "long": courses.trained(LONG_TRAINING)}
    first = _watch(_MANY, parameters, seconds)  # with a fork server that is not yet running
    looks = [{case: _watch(case, parameters, seconds) for case in SCALING} for _ in range(_LOOKS)]
    seen = {case: max((look[case] for look in looks), key=lambda one: one.env_steps_per_s) for case in SCALING}
    seen |= {case: _watch(case, parameters, seconds) for case in OTHERS}
    rows = [_row(case, one, _ONE if case.length == "long" else _SHORT) for case, one in seen.items()]
    on_ray, ray_facts = _on_ray(parameters, seconds)
    rows += on_ray
    engines = {engine: _watch(_engine_case(engine), parameters, seconds) for engine in ENGINES}
    rows += [_row(_engine_case(engine), one, _engine_case(ENGINES[-1])) for engine, one in engines.items()]
    facts = [*_ratios(seen, engines), *_crowd(first, engines), *_updates(parameters["short"], seconds), *ray_facts]
    facts.append(Fact("master's core time a gradient, woken for each, shared", 1e6 * seen[_TWO].core_s, "µs"))
    return Results("runtime", "steps", REFERENCE, rows, facts, where="all cores")


def _on_ray(parameters: dict[str, Vector], seconds: float) -> tuple[list[Row], list[Fact]]:
    """Return the rows of workers on Ray, and what a gradient costs more there; rows without numbers where it is not."""
    if not ray_is_installed():
        absent = [case for case in ON_RAY if case.runtime == "ray"]
        return [Row(str(case), None, "not installed: make setup-ray", str(_ONE)) for case in absent], []
    seen = {case: _watch(case, parameters, seconds) for case in ON_RAY}
    rows = [_row(case, one, _ONE if case.length == "long" else _SHORT) for case, one in seen.items()]
    here, there = (1.0 / seen[_ALONE._replace(runtime=runtime)].updates_per_s for runtime in ("processes", "ray"))
    return rows, [Fact("a gradient takes so much longer on ray, 1 worker", 1e6 * (there - here), "µs")]


def _watch(case: Case, parameters: dict[str, Vector], seconds: float) -> Seen:
    config = case.config()
    if case.runtime == "simulate":
        return watch_virtual(config, parameters[case.length], seconds)
    if case.engine == "compiled":
        return watch_real(config, parameters[case.length], seconds)
    return watch_real(config, parameters[case.length], max(seconds, _ENGINE_S), episodes=2 * case.workers)


def _engine_case(engine: str) -> Case:
    return Case("short", "processes", "shared", _ENGINE_WORKERS, engine)


def _row(case: Case, seen: Seen, reference: Case) -> Row:
    length = seen.env_steps_per_s / max(seen.episodes_per_s, 1e-9)
    note = f"{seen.episodes_per_s:,.0f} episodes/s of {length:,.0f} steps ({reference})"
    return Row(str(case), seen.env_steps_per_s, note, reference=str(reference))


def _ratios(seen: dict[Case, Seen], engines: dict[str, Seen]) -> list[Fact]:
    one, two, many = (seen[case].env_steps_per_s for case in SCALING)
    fastest, slowest = (engines[engine].env_steps_per_s for engine in (ENGINES[0], ENGINES[-1]))
    return [
        Fact("2 workers against 1, long episodes", two / one, "x"),
        Fact(f"{CROWD} workers against 2, long episodes", many / two, "x"),
        Fact(f"{ENGINES[0]} against {ENGINES[-1]}, {_ENGINE_WORKERS} workers", fastest / slowest, "x"),
    ]


def _crowd(first: Seen, engines: dict[str, Seen]) -> list[Fact]:
    facts = [Fact(f"from the first start to {CROWD} workers ready", first.start_s, "s")]
    if first.worker_bytes is not None:
        facts.append(Fact(f"memory (PSS) of one of {CROWD} workers", first.worker_bytes / 1e6, "MB"))
    for engine, seen in engines.items():
        if seen.worker_bytes is not None:
            what = f"memory (PSS) of one of {_ENGINE_WORKERS} workers, {engine}"
            facts.append(Fact(what, seen.worker_bytes / 1e6, "MB"))
    return facts


def _updates(parameters: Vector, seconds: float) -> list[Fact]:
    """Return how many updates a second the master makes: fed directly, and by two workers that send one every step."""
    facts = []
    for transport in ("shared", "queue"):
        fed = FedMaster(transport)
        update_s = fed.update_s(seconds)
        facts.append(Fact(f"master's updates a second, {transport}", 1.0 / update_s, ""))
        facts.append(Fact(f"master's core time a gradient, without a pause, {transport}", 1e6 * update_s, "µs"))
        fed.close()
    config = _TWO.config().model_copy(update={"learner": _EVERY_STEP})
    real = watch_real(config, parameters, seconds)
    return [*facts, Fact("the same with 2 workers that send one every step, shared", real.updates_per_s, "")]
