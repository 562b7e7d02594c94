"""A master that holds gradients back: staleness as a dose, without overload; nothing that is held is lost."""

import numpy as np
import pytest
from pydantic import ValidationError

from a3c_core.config import ExchangeConfig, RunConfig
from a3c_core.real.shared_memory import RING_SIZE
from a3c_core.train import train
from a3c_core.virtual.costs import load_profile
from tests.fake_engine import simulate
from tests.interrupted import assert_same_bytes_when_interrupted

IDLE_MASTER = load_profile("uniform").model_copy(update={"update_s": 1e-5})


def held(hold, **exchange):
    return ExchangeConfig(**{"queue": "unbounded", "hold": hold, **exchange})


@pytest.mark.parametrize("hold", [0, 1, 7, 60])
def test_one_workers_gradients_are_as_old_as_held_ones_are_many(hold):
    """It pulls before the gradient that it just sent is applied, so that one counts too: as many as `hold`, and one.

    The first gradients find fewer than that before them. When the worker has gone the held ones follow in turn.
    """
    _, records = simulate(RunConfig(workers="1", episodes=200, exchange=held(hold)), IDLE_MASTER)
    assert [record.staleness for record in records] == [min(number, hold + 1) for number in range(200)]
    assert {record.status for record in records} == {"applied"}


@pytest.mark.parametrize("workers", [2, 9])
@pytest.mark.parametrize("hold", [3, 30])
def test_what_is_held_adds_to_the_staleness_of_many_workers(workers, hold):
    profile = IDLE_MASTER.model_copy(update={"jitter": "lognormal"})  # or all would send at once
    _, records = simulate(RunConfig(workers=str(workers), episodes=100 * workers, exchange=held(hold)), profile)
    settled = [record.staleness for record in records[workers + hold :]]
    assert np.mean(settled) == pytest.approx(workers + hold, rel=0.02)


def test_a_queue_peaks_one_above_what_is_held():
    simulation, records = simulate(RunConfig(workers="1", episodes=100, exchange=held(12)), IDLE_MASTER)
    assert simulation.totals.queue_peak == 13
    assert max(record.queue_length for record in records) == 12


@pytest.mark.parametrize("episodes", [1, 5, 40, 300])
@pytest.mark.parametrize("workers", ["1", "7", "2->9"])
def test_all_that_is_held_at_the_end_is_applied(episodes, workers):
    schedule = {"rule": "slides", "first_s": 0.1, "further_s": 0.05, "window": 10}
    settings = {"workers": workers, "episodes": episodes, "schedule": schedule, "exchange": held(40)}
    summary = train(RunConfig.model_validate(settings))
    assert summary.gradients_applied == summary.updates == summary.gradients_sent == episodes


def test_interrupted_while_gradients_are_held_it_ends_in_the_same_bytes(tmp_path):
    config = RunConfig(workers="4", episodes=200, exchange=held(30))
    assert_same_bytes_when_interrupted(config, tmp_path, (20, 100, 300))


@pytest.mark.parametrize("runtime", ["processes", "threads"])
def test_real_masters_hold_back_too(runtime):
    records = []
    summary = train(RunConfig(workers="1", episodes=200, runtime=runtime, exchange=held(20)), on_episode=records.append)
    assert summary.gradients_applied == len(records) == 200
    staleness = np.array([record.staleness for record in records])
    # never behind what is held, and ahead of it by the worker's ring and by what the master is just taking, at most
    assert np.all(staleness[21:] >= 20)
    assert np.max(staleness) <= 20 + RING_SIZE + 1


@pytest.mark.parametrize(
    ("exchange", "reason"),
    [
        ({"pull": "after_apply", "queue": "unbounded"}, "hold needs pull: at_once"),
        ({"queue": "bounded", "queue_size": 3}, r"less than queue_size \(3\)"),
        ({"queue": "dropping", "queue_size": 2}, r"less than queue_size \(2\)"),
        ({"queue": "unbounded", "overload_limit": 3}, r"less than overload_limit \(3\)"),
        ({"queue": "unbounded", "bound": 2, "beyond": "wait"}, r"not exceed bound \(2\)"),
    ],
)
def test_what_would_never_be_taken_is_refused(exchange, reason):
    with pytest.raises(ValidationError, match=reason):
        ExchangeConfig(hold=3, **exchange)
