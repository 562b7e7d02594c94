"""Remedies for staleness: what each does to a known gradient, that without staleness none does, and what is counted."""

import contextlib
import functools
import os
import random
import signal

import numpy as np
import pytest

from a3c_core.config import ExchangeConfig, RunConfig
from a3c_core.learners.gradients import GradientLearner
from a3c_core.optimizers import Optimizer
from a3c_core.progress import START
from a3c_core.topologies.master import MasterTopology
from a3c_core.topologies.remedies import Remedies
from a3c_core.train import train
from a3c_core.virtual.costs import load_profile
from tests.fake_engine import simulate
from tests.interrupted import assert_same_bytes_when_interrupted
from tests.random_settings import random_config
from tests.test_processes import assert_each_once, collect

UNIFORM = load_profile("uniform")
ALL = {
    "staleness": {"rate": "staleness"},
    "gap": {"rate": "gap"},
    "compensation": {"compensation": 0.5},
    "drop": {"bound": 3},
    "wait": {"bound": 3, "beyond": "wait"},
    "several": {"rate": "gap", "compensation": 0.1, "bound": 4, "batch": 3},
}


def master(optimizer="sgd", **settings):
    """Return a learner with two parameters, 1 and 2, after one update by 1 each; and its remedies."""
    exchange = ExchangeConfig(**settings)
    learner = GradientLearner(np.array([2.0, 3.0], np.float32), Optimizer(2, optimizer, learning_rate=1.0))
    remedies = Remedies(exchange, learner)
    apply = functools.partial(remedies.apply, MasterTopology(exchange).combine, progress=START)
    apply([(0, np.array([1, 1, 2, 3][: remedies.parcel_size], np.float32))])
    return learner, apply


def test_the_rate_is_divided_by_staleness():
    learner, apply = master(rate="staleness")
    for _ in range(3):
        apply([(learner.version, np.zeros(2, np.float32))])
    assert apply([(0, np.ones(2, np.float32))]).learning_rate == 1 / 4
    assert learner.parameters.tolist() == [0.75, 1.75]


def test_several_gradients_of_an_update_have_the_mean_of_their_rates():
    learner, apply = master(rate="staleness", batch=2)
    apply([(learner.version, np.zeros(2, np.float32))])
    assert apply([(0, np.ones(2, np.float32)), (1, np.ones(2, np.float32))]).learning_rate == 0.75


def test_the_rate_is_divided_by_the_gap():
    """Parameters are 1 and 2 after a step of length 1; who held 3 and 4 is two such steps behind."""
    _, apply = master(rate="gap")
    assert apply([(0, np.array([1, 1, 3, 4], np.float32))]).learning_rate == pytest.approx(1 / 3)


def test_a_gradient_is_compensated_for_the_move():
    """g + λ·g²·(now − pulled) with g = 2, λ = 0.25: 2 + (1 − 2) = 1 for the first, 2 + (2 − 1) = 3 for the second."""
    learner, apply = master(compensation=0.25)
    apply([(0, np.array([2, 2, 2, 1], np.float32))])
    assert learner.parameters.tolist() == [1.0 - 1.0, 2.0 - 3.0]


def test_what_is_too_old_is_left_out():
    learner, apply = master(bound=1, batch=2)
    apply([(1, np.zeros(2, np.float32))])
    assert apply([(0, np.ones(2, np.float32))]) is None
    assert apply([(0, np.ones(2, np.float32)), (2, np.full(2, 4, np.float32))]).applied
    assert learner.parameters.tolist() == [-3.0, -2.0]


@pytest.mark.parametrize("name", ALL)
def test_without_staleness_they_change_nothing(name, tmp_path):
    """One worker that waits for its update has none."""
    scores = {}
    for which, settings in {"none": {}, name: ALL[name]}.items():
        records = []
        exchange = ExchangeConfig(pull="after_apply", **settings)
        train(RunConfig(workers="1", episodes=60, exchange=exchange), on_episode=records.append)
        scores[which] = [(record.score, record.steps, record.gradient_norm, record.applied_s) for record in records]
        assert {record.staleness for record in records} == {0}
    assert scores["none"] == scores[name]


@pytest.mark.parametrize("workers", [2, 10, 40])
def test_a_bound_that_drops_is_never_exceeded(workers):
    exchange = ExchangeConfig(queue="unbounded", bound=6)
    simulation, records = simulate(RunConfig(workers=str(workers), episodes=600, exchange=exchange), UNIFORM)
    totals = simulation.totals
    assert totals.staleness.largest <= 6
    assert totals.sent == totals.applied + totals.dropped == len(records) == 600
    assert (totals.dropped > 0) == (workers > 6)


@pytest.mark.parametrize("jitter", ["none", "lognormal", "exponential"])
@pytest.mark.parametrize("workers", [2, 10, 40])
def test_a_bound_that_is_waited_for_holds_on_average(workers, jitter):
    """At most `bound` others are under way when one is applied, and the mean staleness is their mean number."""
    exchange = ExchangeConfig(queue="unbounded", bound=6, beyond="wait")
    profile = UNIFORM.model_copy(update={"jitter": jitter})
    simulation, records = simulate(RunConfig(workers=str(workers), episodes=600, exchange=exchange), profile)
    totals = simulation.totals
    assert totals.staleness.mean() <= 6
    assert totals.sent == totals.applied == len(records) == 600
    if workers > 6:
        assert totals.staleness.mean() > 5
        assert len({record.worker for record in records}) == workers  # all have their turn


@pytest.mark.parametrize("name", ALL)
def test_interrupted_they_end_in_the_same_bytes(name, tmp_path):
    exchange = ExchangeConfig(queue="unbounded", **ALL[name])
    config = RunConfig(workers="12", episodes=120, profile="uniform", exchange=exchange)
    assert_same_bytes_when_interrupted(config, tmp_path, (60, 150))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("transport", ["shared", "queue"])
def test_real_masters_know_them_too(name, transport):
    channel = "mailbox" if transport == "queue" else "latest"
    exchange = ExchangeConfig(queue="unbounded", transport=transport, channel=channel, **ALL[name])
    config = RunConfig(workers="2", episodes=80, runtime="threads", exchange=exchange)
    summary = train(config)
    assert summary.gradients_sent == summary.gradients_applied + summary.gradients_dropped >= 80
    assert summary.episodes == 80
    assert summary.staleness_max <= {"drop": 3, "several": 4}.get(name, 80)


@pytest.mark.parametrize("runtime", ["processes", "threads"])
def test_a_bound_that_real_workers_wait_for_holds_on_average(runtime):
    exchange = ExchangeConfig(queue="unbounded", bound=1, beyond="wait")
    summary, records = collect(RunConfig(workers="4", episodes=120, runtime=runtime, exchange=exchange))
    assert_each_once(summary, records, 120)
    assert summary.staleness_mean <= 1
    assert {record.worker for record in records} == {0, 1, 2, 3}


@pytest.mark.parametrize("beyond", ["drop", "wait"])
def test_killed_workers_cost_no_episode(beyond):
    """With all of it at once: parcels that carry parameters, batches, a hold, and a bound."""
    victims = random.Random(1)

    def kill(run, record):
        if record.episode % 40 == 39:
            member = run.runtime.pool.members[victims.choice(sorted(run.runtime.pool.members))]
            with contextlib.suppress(ProcessLookupError):  # the last victim, not yet replaced
                os.kill(member.body.pid, signal.SIGKILL)

    settings = {"rate": "gap", "compensation": 0.1, "batch": 2, "hold": 2, "bound": 4, "beyond": beyond}
    exchange = ExchangeConfig(queue="unbounded", **settings)
    config = RunConfig(workers="4", episodes=160, runtime="processes", exchange=exchange)
    summary, records = collect(config, on_episode=kill)
    assert_each_once(summary, records, 160)
    assert summary.crashes >= 2


@pytest.mark.parametrize("seed", range(300, 308))
def test_every_parcel_of_random_settings_has_one_outcome(seed, tmp_path):
    rng = np.random.default_rng(seed)
    config = random_config(rng, "uniform")
    exchange = config.gradients.model_copy(update=ALL[list(ALL)[seed % len(ALL)]] | {"overload_limit": None, "hold": 0})
    config = config.model_copy(update={"exchange": exchange, "episodes": 80})
    summary = train(config, tmp_path)
    outcomes = summary.gradients_applied + summary.gradients_rejected + summary.gradients_dropped
    assert summary.gradients_sent == outcomes == summary.update_rows
    assert summary.episodes == 80
