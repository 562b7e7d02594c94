"""Virtual time: the invariants of queueing and staleness, and the exchange's settings, on rollouts of known length."""

import itertools
import math

import numpy as np
import pytest

from a3c_core.config import ExchangeConfig, RunConfig
from a3c_core.virtual.costs import CostProfile, load_profile
from tests.fake_engine import FakeEngine, simulate

WAITING = ExchangeConfig(channel="latest", pull="after_apply", queue="unbounded")
REPORT = ExchangeConfig(channel="mailbox", pull="at_once", queue="unbounded")
AT_ONCE = ExchangeConfig(channel="latest", pull="at_once", queue="unbounded")
UNIFORM = load_profile("uniform")  # 100 steps take a worker 1 s, an update takes 0.1 s: N* = 11


def run(workers, episodes, exchange, profile=UNIFORM, engine=None, **settings):
    config = RunConfig(workers=str(workers), episodes=episodes, exchange=exchange, **settings)
    return simulate(config, profile, engine)


@pytest.mark.parametrize("workers", [1, 4, 10, 40])
@pytest.mark.parametrize("jitter", ["none", "lognormal", "exponential"])
def test_waiting_pull_has_a_mean_staleness_of_exactly_n_minus_1(workers, jitter):
    profile = UNIFORM.model_copy(update={"jitter": jitter})
    _, records = run(workers, 40 * workers, WAITING, profile)
    settled = [record.staleness for record in records if record.worker_episode > 0 and record.episode < 39 * workers]
    # every pull after the first sees all but the N-1 gradients in flight; sums telescope up to the two ends
    assert np.mean(settled) == pytest.approx(workers - 1, abs=(workers - 1) / len(settled) * workers + 1e-12)


def test_waiting_pull_over_a_whole_run_telescopes():
    """Each worker's applied versions and pulled versions chain: staleness + 1 sums to the last version it saw."""
    _, records = run(10, 500, WAITING)
    for worker in range(10):
        own = [record for record in records if record.worker == worker]
        assert sum(record.staleness + 1 for record in own) == own[-1].version_applied


@pytest.mark.parametrize("workers", [2, 5, 20])
def test_pull_without_waiting_has_a_staleness_of_n(workers):
    """The own last gradient counts too, since it was not yet applied at the pull; the master is all but idle here."""
    profile = UNIFORM.model_copy(update={"update_s": 1e-5, "jitter": "lognormal"})
    _, records = run(workers, 100 * workers, AT_ONCE, profile)
    settled = [record.staleness for record in records if 0 < record.worker_episode < 90]
    assert np.mean(settled) == pytest.approx(workers, rel=0.02)


@pytest.mark.parametrize("workers", [1, 2, 5, 10, 12, 20, 40])
def test_throughput_is_the_lesser_of_workers_and_master(workers):
    simulation, records = run(workers, 200 * workers, WAITING)
    cycle_s, service_s = UNIFORM.cycle_s(100), UNIFORM.service_s()
    expected = min(workers / (cycle_s + service_s), 1 / service_s)
    assert len(records) / simulation.clock_s == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("workers", [1, 10, 40])
def test_latency_makes_cycles_longer_but_uses_no_core(workers):
    far = UNIFORM.model_copy(update={"pull_latency_s": 0.6, "push_latency_s": 0.4, "cores": workers + 1})
    simulation, records = run(workers, 200 * workers, WAITING, far)
    cycle_s, service_s = 1.0 + far.cycle_s(100), far.service_s()
    expected = min(workers / (cycle_s + service_s), 1 / service_s)
    assert len(records) / simulation.clock_s == pytest.approx(expected, rel=0.01)
    assert far.saturation_workers(100) == pytest.approx(21)


@pytest.mark.parametrize("first", [False, True])
def test_a_master_with_priority_waits_for_no_core(first):
    profile = UNIFORM.model_copy(update={"cores": 2, "master_first": first})
    simulation, records = run(10, 1000, WAITING, profile)
    needed_s = simulation.totals.served * profile.service_s()
    assert (simulation.totals.master_busy_s == pytest.approx(needed_s)) == first
    core_s = len(records) * (profile.cycle_s(100) + profile.service_s())  # both cores are busy from beginning to end
    assert core_s / simulation.clock_s == pytest.approx(2.0, rel=0.02)


def test_saturation_is_where_the_two_meet():
    assert UNIFORM.saturation_workers(100) == pytest.approx(11)
    assert load_profile("report-tf2.21").saturation_workers(62) == pytest.approx(16, abs=1)
    assert load_profile("report").saturation_workers(62) == pytest.approx(54, abs=1)
    assert CostProfile(step_s=1, update_s=0).saturation_workers(1) == math.inf


def test_queue_agrees_with_m_m_1():
    """Exponential cycles without waiting are Poisson arrivals; with exponential service the queue is M/M/1."""
    profile = UNIFORM.model_copy(update={"jitter": "exponential"})
    simulation, records = run(5, 30_000, AT_ONCE, profile)
    service_s = simulation.totals.master_busy_s / len(records)  # as drawn; 0.1 was asked for
    arrivals_per_s = len(records) / simulation.totals.last_arrival_s  # 5
    expected_s = service_s / (1 - arrivals_per_s * service_s)
    in_system_s = np.array([record.applied_s - record.finished_s for record in records])
    batches = in_system_s.reshape(50, -1).mean(axis=1)  # long enough to hardly correlate
    error_s = batches.std(ddof=1) / math.sqrt(50)
    assert expected_s == pytest.approx(0.2, rel=0.05)
    assert abs(in_system_s.mean() - expected_s) < 2.5 * error_s < 0.01


def test_unbounded_queue_grows_and_drains():
    simulation, records = run(40, 4000, REPORT)
    assert simulation.totals.queue_peak > 2500  # 40 gradients a second come, 10 go
    assert len(records) == 4000
    assert {record.status for record in records} == {"applied"}
    assert max(record.staleness for record in records) > 2500


def test_bounded_queue_makes_workers_wait():
    simulation, records = run(40, 2000, ExchangeConfig(queue="bounded", queue_size=4))
    assert simulation.totals.queue_peak == 4
    assert simulation.totals.master_busy_s / simulation.clock_s > 0.98
    settled = [record.staleness for record in records[100:-100]]
    assert 39 <= np.mean(settled) <= 46  # in flight: 40 workers' and those in the queue


def test_dropping_queue_loses_gradients_and_says_so():
    simulation, records = run(40, 2000, ExchangeConfig(queue="dropping", queue_size=4))
    totals = simulation.totals
    dropped = [record for record in records if record.status == "dropped"]
    assert len(dropped) == totals.dropped > 1000
    assert totals.sent == totals.applied + totals.dropped + totals.rejected == 2000


def test_overload_limit_ends_the_run_as_overloaded():
    exchange = ExchangeConfig(queue="unbounded", overload_limit=100)
    simulation, records = run(40, 4000, exchange)
    assert simulation.overloaded
    assert simulation.totals.queue_peak == 101
    assert sum(record.status == "dropped" for record in records) == simulation.totals.dropped >= 100
    assert len(records) < 1000


def test_mailbox_can_hand_out_an_old_model():
    """A full slot is not refreshed, so that a lone worker plays with what was put there a cycle ago."""
    mailbox, latest = FakeEngine(), FakeEngine()
    run(1, 6, REPORT, engine=mailbox)
    run(1, 6, AT_ONCE, engine=latest)
    assert latest.parameters_seen == [0, 0, -1, -2, -3, -4]
    assert mailbox.parameters_seen == [0, 0, -1, -2, -3, -4]
    mailbox, latest = FakeEngine(), FakeEngine()
    run(4, 20, REPORT, engine=mailbox)
    run(4, 20, AT_ONCE, engine=latest)
    assert sum(mailbox.parameters_seen) > sum(latest.parameters_seen)  # parameters fall: higher is older


def test_rejected_gradients_change_nothing_and_are_counted():
    class Broken(FakeEngine):
        def rollout(self, parameters, environment, progress=0.0):
            rollout = super().rollout(parameters, environment, progress)
            rollout.gradient[0] = math.nan if environment.state[1] % 2 else 1.0
            return rollout

    simulation, records = run(2, 10, WAITING, engine=Broken())
    assert [record.status for record in records].count("rejected") == simulation.totals.rejected == 4
    assert simulation.learner.parameters[0] == -6 == -simulation.learner.version


def test_ties_are_broken_by_worker_id():
    _, records = run(5, 20, AT_ONCE)
    assert [record.worker for record in records] == [0, 1, 2, 3, 4] * 4


def test_crowded_cores_slow_everyone_down():
    crowded = UNIFORM.model_copy(update={"cores": 4})
    free, _ = run(8, 80, AT_ONCE)
    shared, _ = run(8, 80, AT_ONCE, crowded)
    assert shared.clock_s > 1.8 * free.clock_s
    hyperthreads = CostProfile(step_s=1, update_s=1, cores=20, threads_per_core=2, threading_gain=1.3)
    assert hyperthreads.contention(20) == 1
    assert hyperthreads.contention(40) == pytest.approx(40 / 26)
    assert hyperthreads.contention(80) == pytest.approx(80 / 26)


def test_slowdown_stretches_time_alone():
    slow = UNIFORM.model_copy(update={"slowdown": 3.0})
    fast_run, fast_records = run(4, 100, AT_ONCE)
    slow_run, slow_records = run(4, 100, AT_ONCE, slow)
    assert slow_run.clock_s == pytest.approx(3 * fast_run.clock_s)
    assert [r.staleness for r in slow_records] == [r.staleness for r in fast_records]
    assert slow.saturation_workers(100) == pytest.approx(UNIFORM.saturation_workers(100))


def test_jitter_has_mean_one_and_its_deviation():
    profile = UNIFORM.model_copy(update={"jitter": "lognormal", "jitter_deviation": 0.3})
    draws = np.array([profile.jittered(1.0, seed=1, who=2, count=count) for count in range(20_000)])
    assert draws.mean() == pytest.approx(1, abs=0.01)
    assert draws.std() == pytest.approx(0.3, abs=0.01)
    assert profile.jittered(1.0, 1, 2, 3) == draws[3] != profile.jittered(1.0, 2, 2, 3)


def test_dynamic_workers_join_as_episodes_grow():
    """An episode of n hundred steps lasts n seconds; here it grows by a second every 5 episodes."""
    grow = FakeEngine(lambda worker, episode: 100 * (1 + episode // 5))
    settings = {"schedule": {"first_s": 5.0, "further_s": 2.0, "window": 5, "spacing": 10}}
    profile = UNIFORM.model_copy(update={"worker_start_s": 0.5})
    _, records = run("2->6", 400, AT_ONCE, profile, grow, **settings)
    alive = [record.workers_alive for record in records[:-10]]
    assert alive == sorted(alive)
    assert alive[0] == 2
    assert max(alive) == 6
    assert {record.worker for record in records} == set(range(6))
    changes = [episode for episode in range(1, len(alive)) if alive[episode] != alive[episode - 1]]
    assert np.diff(changes).min() >= 10
    joined = next(record for record in records if record.worker == 2)
    assert joined.started_s - records[changes[0] - 1].applied_s == pytest.approx(0.5)


def test_auto_finds_a_worker_count_that_the_master_can_bear():
    simulation, records = run("auto", 6000, AT_ONCE, schedule={"auto_min": 2, "auto_max": 40, "spacing": 100})
    alive = np.array([record.workers_alive for record in records])
    assert alive[0] == 2
    assert 7 <= np.median(alive[3000:5900]) <= 10  # 0.8 of N* = 11
    assert simulation.totals.queue_peak < 20


def test_auto_removes_workers_from_an_overloaded_master():
    """Episodes that become ten times shorter lower N* from 101 to 11: the workers that were added must go again."""
    played = itertools.count()
    shrink = FakeEngine(lambda worker, episode: 1000 if next(played) < 4000 else 100)
    schedule = {"auto_min": 4, "auto_max": 40, "spacing": 50}
    _, records = run("auto", 12_000, WAITING, UNIFORM, shrink, schedule=schedule)
    alive = np.array([record.workers_alive for record in records])
    assert alive.max() >= 30
    assert np.median(alive[-3000:-100]) <= 11


@pytest.mark.parametrize("workers", [1, 4, 40])
def test_hogwild_has_no_master_to_saturate(workers):
    """Each worker's cycle is its play and its own update, whatever the others do."""
    simulation, records = run(workers, 100 * workers, AT_ONCE, topology="hogwild")
    cycle_s = UNIFORM.cycle_s(100) + UNIFORM.apply_s
    assert len(records) / simulation.clock_s == pytest.approx(workers / cycle_s, rel=0.01)
    assert simulation.totals.master_busy_s == 0
    assert simulation.totals.sent == simulation.totals.applied == 100 * workers


def test_hogwild_gradients_are_as_stale_as_others_are_many():
    """Between a worker's pull and the end of its own update every other worker makes about one update."""
    profile = UNIFORM.model_copy(update={"jitter": "lognormal"})
    _, records = run(20, 2000, AT_ONCE, profile, topology="hogwild")
    settled = [record.staleness for record in records if record.worker_episode > 0]
    assert np.mean(settled) == pytest.approx(19, rel=0.02)


def test_hogwild_workers_come_and_go_as_scheduled():
    grow = FakeEngine(lambda worker, episode: 100 * (1 + episode // 5))
    settings = {"schedule": {"first_s": 5.0, "further_s": 2.0, "window": 5, "spacing": 10}, "topology": "hogwild"}
    _, records = run("2->6", 400, AT_ONCE, UNIFORM, grow, **settings)
    assert records[0].workers_alive == 2
    assert {record.worker for record in records} == set(range(6))
