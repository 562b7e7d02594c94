"""Rounds: no staleness, the pace of the slowest that a round waits for, and late gradients that are counted."""

import numpy as np
import pytest

from a3c_core.config import RunConfig
from a3c_core.train import train
from a3c_core.virtual.costs import load_profile
from tests.fake_engine import FakeEngine, simulate
from tests.interrupted import assert_same_bytes_when_interrupted
from tests.test_processes import assert_each_once, collect

UNIFORM = load_profile("uniform")  # 100 steps take a worker 1 s, an update takes 0.1 s


def config_of(workers, episodes, backups=0, **settings):
    exchange = {"backups": backups}
    return RunConfig(workers=str(workers), episodes=episodes, topology="synchronous", exchange=exchange, **settings)


@pytest.mark.parametrize("workers", [1, 4, 20])
def test_without_backups_a_round_is_one_update_of_all(workers):
    simulation, records = simulate(config_of(workers, 10 * workers), UNIFORM)
    assert simulation.learner.version == 10
    assert {record.staleness for record in records} == {0}
    assert [record.version_applied for record in records] == [1 + i // workers for i in range(10 * workers)]
    rounds_s = 10 * (UNIFORM.cycle_s(100) + UNIFORM.service_s(gradients=workers))
    assert simulation.clock_s == pytest.approx(rounds_s)


@pytest.mark.parametrize("backups", [0, 1, 3])
def test_a_round_takes_as_long_as_its_slowest_but_the_backups(backups):
    """Against a direct computation: workers that are not late begin together, late ones when they are done."""
    rng = np.random.default_rng(backups)
    lengths = rng.integers(1, 300, size=(6, 1000))
    engine = FakeEngine(lambda worker, episode: int(lengths[worker, episode]))
    simulation, records = simulate(config_of(6, 150, backups), UNIFORM, engine)
    ends, dropped = direct_rounds(lengths, backups, rounds=10)
    applied_s = sorted({record.applied_s for record in records if record.status == "applied"})
    assert applied_s[:10] == pytest.approx(ends)
    seen = sum(record.status == "dropped" and record.applied_s <= ends[-1] for record in records)
    assert seen == dropped
    assert (dropped > 0) == (backups > 0)
    assert simulation.totals.sent == simulation.totals.applied + simulation.totals.dropped == 150


def direct_rounds(lengths, backups, rounds):
    """Return when each of the first rounds' updates was made, and how many gradients came late by the last."""
    workers, service_s = len(lengths), UNIFORM.service_s(gradients=len(lengths) - backups)
    done_s, round_of, next_episode = np.zeros(workers), np.zeros(workers, int), np.zeros(workers, int)
    now_s, ends, dropped = 0.0, [], 0

    def begin(worker, at_s, number):
        done_s[worker] = at_s + UNIFORM.cycle_s(float(lengths[worker, next_episode[worker]]))
        next_episode[worker] += 1
        round_of[worker] = number

    for worker in range(workers):
        begin(worker, 0.0, 0)
    for number in range(rounds):
        arrived: list[int] = []
        while len(arrived) < workers - backups:
            playing = [worker for worker in range(workers) if worker not in arrived]
            worker = min(playing, key=lambda worker: done_s[worker])
            now_s = done_s[worker]
            if round_of[worker] == number:
                arrived.append(worker)
            else:
                dropped += 1
                begin(worker, now_s, number)
        end_s = now_s + service_s
        ends.append(end_s)
        for worker in range(workers):
            if worker in arrived or done_s[worker] <= end_s:
                dropped += worker not in arrived
                begin(worker, end_s, number + 1)
    return ends, dropped


@pytest.mark.parametrize("jitter", ["lognormal", "exponential"])
def test_stragglers_cost_time_and_backups_save_some(jitter):
    profile = UNIFORM.model_copy(update={"jitter": jitter})
    rounds_per_s = {}
    for backups in (0, 4):
        simulation, _ = simulate(config_of(20, 1000, backups), profile)
        rounds_per_s[backups] = simulation.learner.version / simulation.clock_s
        assert simulation.totals.staleness.largest == 0
    steady, _ = simulate(config_of(20, 1000), UNIFORM)
    assert rounds_per_s[0] < rounds_per_s[4]
    assert rounds_per_s[0] < steady.learner.version / steady.clock_s


@pytest.mark.parametrize("workers", ["1", "7", "2->9", "auto"])
@pytest.mark.parametrize("backups", [0, 2, 50])
def test_every_parcel_has_one_outcome_and_no_staleness(workers, backups, tmp_path):
    schedule = {"rule": "slides", "first_s": 0.1, "further_s": 0.05, "window": 10, "auto_min": 2, "auto_max": 9}
    learner = {"t_max": 20, "update_every": "t_max", "standardise": False}
    config = config_of(workers, 100, backups, schedule={**schedule, "spacing": 15}, learner=learner)
    summary = train(config, tmp_path)
    assert summary.episodes == 100
    assert summary.gradients_sent == summary.gradients_applied + summary.gradients_dropped == summary.update_rows
    assert summary.staleness_max == 0
    assert backups or not summary.gradients_dropped


@pytest.mark.parametrize("backups", [0, 2])
def test_interrupted_it_ends_in_the_same_bytes(backups, tmp_path):
    config = config_of(6, 120, backups, profile="uniform")
    assert_same_bytes_when_interrupted(config, tmp_path, (30, 90))


@pytest.mark.parametrize("backups", [0, 1])
@pytest.mark.parametrize("runtime", ["processes", "threads"])
def test_real_rounds_have_no_staleness(runtime, backups):
    summary, records = collect(config_of(3, 90, backups, runtime=runtime))
    assert_each_once(summary, records, 90)
    assert {record.staleness for record in records} == {0}
    assert backups or not summary.gradients_dropped
    if not backups:
        versions = [record.version_applied for record in records]
        assert set(np.bincount(versions)[1:20].tolist()) == {3}
