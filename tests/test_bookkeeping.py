"""The master's bookkeeping in virtual time: a cost per episode, and stalls that come again and grow."""

import numpy as np
import pytest

from a3c_core.config import ExchangeConfig, RunConfig
from a3c_core.records.tables import UpdateRecord
from a3c_core.virtual.costs import load_profile
from tests.fake_engine import simulate

WAITING = ExchangeConfig(channel="latest", pull="after_apply", queue="unbounded")
UNIFORM = load_profile("uniform")  # 100 steps take a worker 1 s, an update takes 0.1 s
STALLS = {"record_s": 0.01, "stall_every": 5, "stall_s": 0.3, "stall_growth_s": 0.002}


def test_bookkeeping_costs_the_master_per_episode_and_at_every_stall():
    profile = UNIFORM.model_copy(update={**STALLS, "slowdown": 2.0})
    assert profile.bookkeeping_s(0, 0) == 0
    assert profile.bookkeeping_s(0, 4) == pytest.approx(2 * 0.04)
    assert profile.bookkeeping_s(4, 1) == pytest.approx(2 * (0.01 + 0.3 + 0.002 * 5))
    assert profile.bookkeeping_s(5, 1) == pytest.approx(2 * 0.01)
    assert profile.bookkeeping_s(3, 8) == pytest.approx(2 * (0.08 + 2 * 0.3 + 0.002 * (5 + 10)))
    assert profile.first_bookkeeping_s == pytest.approx(2 * (0.01 + 0.3 / 5))


def test_the_update_that_a_stall_falls_into_shows_it():
    rows, profile = [], UNIFORM.model_copy(update=STALLS)
    simulate(RunConfig(workers="3", episodes=40, exchange=WAITING), profile, on_update=rows.append)
    service_s = np.array([row[UpdateRecord._fields.index("service_s")] for row in rows])
    number = np.arange(1, 41)
    stalls_s = np.where(number % 5 == 0, 0.3 + 0.002 * number, 0.0)
    assert service_s == pytest.approx(0.1 + 0.01 + stalls_s)


def test_episodes_that_were_dropped_are_not_written_up():
    exchange = ExchangeConfig(queue="dropping", queue_size=1)
    profile = UNIFORM.model_copy(update=STALLS)
    simulation, records = simulate(RunConfig(workers="40", episodes=500, exchange=exchange), profile)
    served = [record for record in records if record.status == "applied"]
    assert len(served) < 400
    seconds = len(served) * 0.11 + sum(0.3 + 0.002 * n for n in range(5, len(served) + 1, 5))
    assert simulation.totals.master_busy_s == pytest.approx(seconds)


def test_without_a_master_bookkeeping_is_in_nobodys_way():
    config = RunConfig(workers="4", episodes=60, topology="hogwild")
    plain, stalling = (simulate(config, profile)[0].clock_s for profile in (UNIFORM, UNIFORM.model_copy(update=STALLS)))
    assert stalling == plain
