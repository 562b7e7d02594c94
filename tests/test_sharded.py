"""Shards: in step they are one master; out of step, parts of parameters are of different ages; no part is lost."""

import numpy as np
import pytest
from pydantic import ValidationError

from a3c_core.config import RunConfig
from a3c_core.learners.gradients import GradientLearner
from a3c_core.optimizers import Optimizer
from a3c_core.records.tables import read_records
from a3c_core.train import train
from a3c_core.virtual.capacity import capacity
from a3c_core.virtual.costs import load_profile
from a3c_core.virtual.simulation import Simulation
from tests.fake_engine import FakeEngine, simulate
from tests.interrupted import assert_same_bytes_when_interrupted

UNIFORM = load_profile("uniform")  # 100 steps take a worker 1 s, an update takes 0.1 s
CLIPPED = {"optimizer": "adam", "clip_norm": 0.5, "anneal": True}


def config_of(shards, workers="5", episodes=80, fixed=0.0, pull="at_once", **settings):
    exchange = {"shards": shards, "fixed": fixed, "pull": pull}
    return RunConfig(workers=workers, episodes=episodes, topology="sharded", exchange=exchange, **settings)


@pytest.mark.parametrize("pull", ["at_once", "after_apply"])
@pytest.mark.parametrize("shards", [1, 3])
def test_shards_in_step_are_one_master(shards, pull, tmp_path):
    """Where each costs as much as the whole, all are done at the same instant: the same bytes as with one."""
    own = {"workers": "5", "episodes": 80, "learner": CLIPPED, "profile": "uniform"}
    train(RunConfig.model_validate({**own, "exchange": {"queue": "unbounded", "pull": pull}}), tmp_path / "one")
    train(config_of(shards, fixed=1.0, pull=pull, learner=CLIPPED, profile="uniform"), tmp_path / "many")
    one, many = ((tmp_path / name / "updates.parquet").read_bytes() for name in ("one", "many"))
    assert one == many
    one, many = (read_records(tmp_path / name).drop(["master_busy_s", "wall_s"]) for name in ("one", "many"))
    assert one.equals(many)  # but for how long they worked, which is added up over the servers


def test_each_server_costs_its_share():
    """Without a fixed part two servers bear twice the workers that one does."""
    profile = UNIFORM.model_copy(update={"step_s": 1e-3})
    clocks = {}
    for shards in (1, 2, 4):
        config = config_of(shards, workers="40", episodes=400, pull="after_apply")
        simulation, records = simulate_wide(config, profile)
        clocks[shards] = simulation.clock_s
        assert {record.status for record in records} == {"applied"}
    assert clocks[1] / clocks[2] == pytest.approx(2, rel=0.05)
    assert clocks[1] / clocks[4] == pytest.approx(4, rel=0.05)


@pytest.mark.parametrize(("shards", "fixed", "times"), [(1, 0.0, 1.0), (4, 0.0, 4.0), (4, 0.5, 1.6), (100, 1.0, 1.0)])
def test_shards_move_the_number_of_workers_that_are_borne(shards, fixed, times):
    one = capacity(RunConfig(episodes=80, profile="uniform"))
    many = capacity(config_of(shards, fixed=fixed, profile="uniform"))
    assert many.n0 / one.n0 == pytest.approx(times)
    assert (many.limit_name, many.cycle_s) == ("N0", one.cycle_s)
    assert capacity(config_of(shards, pull="after_apply")).limit_name == "N*"


def simulate_wide(config, profile):
    """Simulate with eight parameters, so that there is something to share."""
    records = []
    learner = GradientLearner(np.zeros(8, np.float32), Optimizer(8, "sgd", learning_rate=1.0))
    simulation = Simulation(config, profile, learner, records.append, engine=FakeEngine())
    simulation.start()
    while simulation.step():
        pass
    assert learner.parameters.tolist() == [-config.episodes] * 8  # every part of every gradient, once
    assert learner.version == config.episodes
    return simulation, records


@pytest.mark.parametrize("jitter", ["none", "lognormal", "exponential"])
@pytest.mark.parametrize("workers", ["1", "12", "40"])
def test_every_part_is_applied_once(workers, jitter):
    profile = UNIFORM.model_copy(update={"jitter": jitter})
    simulation, records = simulate_wide(config_of(3, workers, 200), profile)
    totals = simulation.totals
    assert totals.sent == totals.applied == len(records) == 200
    assert all(record.version_pulled <= record.version_applied for record in records)


def test_more_shards_than_parameters_are_as_many():
    simulation, records = simulate(config_of(5, "2", 50), UNIFORM)
    assert simulation.totals.applied == len(records) == 50


def test_workers_come_and_go():
    schedule = {"auto_min": 2, "auto_max": 9, "window": 10, "spacing": 15}
    summary = train(config_of(4, "auto", 150, schedule=schedule))
    assert summary.gradients_applied == summary.episodes == 150


def test_interrupted_it_ends_in_the_same_bytes(tmp_path):
    config = config_of(3, "12", 120, profile="uniform")
    assert_same_bytes_when_interrupted(config, tmp_path, (60, 200))


def test_real_runtimes_say_that_they_have_one_master():
    with pytest.raises(ValidationError, match="sharded is for virtual time"):
        config_of(2, runtime="processes")
