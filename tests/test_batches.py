"""A master that makes one update of several gradients: as many as wait, none of them twice."""

import numpy as np
import pytest

from a3c_core.config import ExchangeConfig, RunConfig
from a3c_core.topologies import parcel_queue
from a3c_core.topologies.master import MasterTopology
from a3c_core.train import Run, train
from a3c_core.virtual.costs import load_profile
from tests.fake_engine import simulate

UNIFORM = load_profile("uniform")  # 100 steps take a worker 1 s, an update takes 0.1 s: N* = 11


def run(workers, episodes, profile=UNIFORM, **exchange):
    exchange = ExchangeConfig(**{"queue": "unbounded", **exchange})
    return simulate(RunConfig(workers=str(workers), episodes=episodes, exchange=exchange), profile)


@pytest.mark.parametrize(("combine", "value"), [("mean", 2.0), ("sum", 6.0)])
def test_what_is_applied_for_three(combine, value):
    gradients = [np.full(4, number, np.float32) for number in (1, 2, 3)]
    combined = MasterTopology(ExchangeConfig(combine=combine)).combine(gradients)
    assert combined.dtype == np.float32
    assert combined.tolist() == [value] * 4


@pytest.mark.parametrize(
    ("settings", "waiting", "playing", "taken"),
    [
        ({}, 5, 2, 1),
        ({}, 0, 2, 0),
        ({"batch": 4}, 9, 2, 4),
        ({"batch": 4}, 3, 2, 3),
        ({"batch": 4, "hold": 2}, 5, 2, 3),
        ({"hold": 2}, 2, 2, 0),
        ({"hold": 2}, 2, 0, 1),
    ],
)
def test_how_many_are_taken(settings, waiting, playing, taken):
    assert MasterTopology(ExchangeConfig(**settings)).take(waiting, playing) == taken


def test_an_overloaded_master_keeps_up_in_batches():
    """40 workers send 40 gradients a second, and the master makes 10 updates: in batches of 4 it just keeps up."""
    alone, _ = run(40, 2000)
    several, records = run(40, 2000, batch=8)
    assert alone.learner.version == 2000 == several.totals.applied == len(records)
    assert several.learner.version < 600
    assert several.totals.queue_peak <= 40 < 1000 < alone.totals.queue_peak
    assert several.clock_s < alone.clock_s / 3


def test_gradients_of_an_update_share_its_version():
    simulation, records = run(40, 1000, batch=8)
    versions = [record.version_applied for record in records]
    assert versions == sorted(versions)
    assert max(np.bincount(versions)) == 8
    assert set(versions) == set(range(1, simulation.learner.version + 1))


@pytest.mark.parametrize("runtime", ["processes", "threads"])
def test_real_masters_take_batches_too(runtime):
    exchange = ExchangeConfig(queue="unbounded", hold=12, batch=4)  # a held queue has a batch to take at the end
    config = RunConfig(workers="3", episodes=150, runtime=runtime, exchange=exchange)
    records = []
    summary = train(config, on_episode=records.append)
    assert summary.gradients_applied == len(records) == 150
    assert summary.updates < 150
    assert len({(record.worker, record.worker_episode) for record in records}) == 150


def test_batches_of_a_queue_that_does_not_fit_into_memory_give_the_same_bytes(tmp_path, monkeypatch):
    """A batch may lie across blocks; the run is interrupted while most of the queue is in a file."""
    exchange = ExchangeConfig(queue="unbounded", hold=600, batch=100, combine="sum", rate="staleness")
    config = RunConfig(workers="40", episodes=1000, exchange=exchange, learner={"learning_rate": 1e-5})
    train(config, tmp_path / "in memory")
    monkeypatch.setattr(parcel_queue, "BLOCK", 64)
    run = Run(config, tmp_path / "cut")
    run.runtime.start(lambda: False)
    run.advance(800)
    run.checkpoint()
    assert len(run.runtime.topology.queue._spilled) >= 3
    run.advance(100)
    train(config, tmp_path / "cut")
    for file in ("episodes.parquet", "updates.parquet"):
        assert (tmp_path / "cut" / file).read_bytes() == (tmp_path / "in memory" / file).read_bytes()
