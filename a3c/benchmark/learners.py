"""Steps per second of the learners of trajectories: a step counts in every epoch that learns from it."""

from itertools import cycle

from a3c.benchmark.courses import SEED
from a3c.benchmark.measure import Row, per_second
from a3c_core.build import make_engine, new_learner
from a3c_core.config import RunConfig
from a3c_core.models.parameters import Vector

ALGORITHMS = ("ppo", "vtrace")
ENGINES = ("compiled", "tensorflow")
_BATCH_STEPS = 2048
_PARCELS = 64


def learner_rows(seconds: float) -> list[Row]:
    """Return a row for each algorithm and engine, each measured for about `seconds`."""
    rows = []
    for algorithm in ALGORITHMS:
        for engine in ENGINES:
            config = RunConfig(algorithm=algorithm, engine=engine, learner={"batch_steps": _BATCH_STEPS})
            rows.append(_row(config, seconds))
    return rows


def _row(config: RunConfig, seconds: float) -> Row:
    """Return how many steps a second the learner learns from, taking parcels over included."""
    learner, parcels = new_learner(config), cycle(_parcels(config.algorithm))
    rates = {"steps": 0, "calls": 0}

    def one_batch(times: int) -> None:
        updates = learner.version
        while learner.version == updates:
            parcel = next(parcels)
            rates["steps"] += learner.effort(parcel).steps
            learner.receive(parcel)
        rates["calls"] += times

    batches = per_second(one_batch, 1, seconds)
    steps = rates["steps"] / rates["calls"]  # of a batch, over all epochs
    name = f"{config.algorithm} learner"
    note = f"batches of {steps:,.0f} steps × epochs"
    return Row(f"{name}, {config.engine}", batches * steps, note, reference=f"{name}, tensorflow")


def _parcels(algorithm: str) -> list[Vector]:
    """Return what an untrained worker hands over."""
    engine = make_engine(RunConfig(algorithm=algorithm))
    environment, parameters = engine.new_environment(), engine.model.initial_parameters(SEED)
    parcels = []
    for episode in range(_PARCELS):
        environment.begin_episode(SEED, 0, episode)
        parcels.append(engine.rollout(parameters, environment).gradient)
    return parcels
