"""Runs whose workers hand over trajectories: every parcel counted once, on every clock, and resumed to the byte."""

import contextlib
import os
import random
import signal

import numpy as np
import pytest

from a3c_core.algorithms import ALGORITHMS
from a3c_core.config import ExchangeConfig, RunConfig
from a3c_core.records import checkpoints
from a3c_core.records.tables import UPDATE_TABLE, read_records
from a3c_core.train import Run, profile_of, train
from a3c_core.virtual.costs import CostProfile
from tests.test_processes import assert_each_once, collect

ALGORITHMS_OF_TRAJECTORIES = ("ppo", "vtrace")
LEARNER = {"batch_steps": 300, "horizon": 40}
EXCHANGES = {
    "bounded": {},
    "unbounded": {"queue": "unbounded"},
    "dropping": {"queue": "dropping", "queue_size": 2},
    "waiting": {"pull": "after_apply"},
    "mailboxes": {"channel": "mailbox", "queue": "unbounded"},
}


def config_of(algorithm="ppo", exchange="bounded", workers="4", episodes=120, learner=None, **settings):
    return RunConfig(
        algorithm=algorithm,
        workers=workers,
        episodes=episodes,
        learner=learner or LEARNER,
        exchange=ExchangeConfig(**EXCHANGES[exchange]),
        **settings,
    )


def updates_of(directory):
    return read_records(directory, UPDATE_TABLE).to_pandas()


def assert_all_have_their_outcome(summary, directory):
    updates = updates_of(directory)
    counts = updates["status"].value_counts().to_dict()
    for status in ("applied", "rejected", "dropped"):
        assert counts.get(status, 0) == getattr(summary, f"gradients_{status}")
    assert len(updates) == summary.update_rows == summary.gradients_sent - summary.gradients_lost
    assert updates["update"].tolist() == list(range(len(updates)))


@pytest.mark.parametrize("algorithm", ALGORITHMS_OF_TRAJECTORIES)
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_every_parcel_has_its_outcome_in_virtual_time(algorithm, exchange, tmp_path):
    summary = train(config_of(algorithm, exchange), tmp_path)
    assert summary.episodes == 120
    assert_all_have_their_outcome(summary, tmp_path)
    assert (summary.gradients_dropped > 0) == (exchange == "dropping")
    updates = updates_of(tmp_path)
    applied = updates[updates["status"] == "applied"]
    assert applied["version"].max() == summary.updates > 0
    assert (applied["staleness"] >= 0).all()
    assert applied["staleness"].mean() == pytest.approx(summary.staleness_mean)
    for name in ALGORITHMS.get(algorithm).statistics:
        assert applied[name].notna().all()
        assert updates[name][updates["status"] == "dropped"].isna().all()


def test_parcels_of_a_batch_share_its_update(tmp_path):
    train(config_of("vtrace"), tmp_path)
    updates = updates_of(tmp_path)
    batches = updates.groupby("version")
    assert batches.size().max() > 3
    assert (batches["applied_s"].nunique() == 1).all()
    assert (batches["importance_weight"].nunique() == 1).all()
    assert (updates["version"] - 1 - updates["version_pulled"] == updates["staleness"]).all()


def test_what_is_left_at_the_end_is_learned_from_as_a_last_smaller_batch():
    never_full = {"batch_steps": 1_000_000, "epochs": 3, "minibatches": 5}
    summary = train(config_of(learner=never_full))
    assert (summary.updates, summary.gradients_applied) == (3 * 5, summary.gradients_sent)


def test_workers_that_wait_for_their_batch_are_not_left_waiting(tmp_path):
    never_full = {"batch_steps": 1_000_000, "horizon": 40}
    for runtime in ("simulate", "threads"):
        summary = train(config_of("vtrace", "waiting", learner=never_full, runtime=runtime), tmp_path / runtime)
        assert summary.episodes == 120
        assert_all_have_their_outcome(summary, tmp_path / runtime)
    sizes = updates_of(tmp_path / "simulate").groupby("version").size()
    assert sizes.iloc[0] == 4  # all workers wait: they have handed over a parcel each
    assert summary.staleness_max == 0


@pytest.mark.parametrize("exchange", ["bounded", "waiting", "mailboxes"])
@pytest.mark.parametrize("algorithm", ALGORITHMS_OF_TRAJECTORIES)
def test_a_run_that_is_killed_amid_a_batch_ends_in_the_same_bytes(algorithm, exchange, tmp_path):
    config = config_of(algorithm, exchange, profile="uniform")
    train(config, tmp_path / "whole")
    collecting = 0
    for events in (100, 37, 61):
        run = Run(config, tmp_path / "cut")
        run.runtime.start(lambda: False)
        run.advance(events)
        run.checkpoint()
        collecting += len(run.learner.save()[1])
        run.advance(23)  # lost: it comes after the checkpoint
    assert collecting > 0
    train(config, tmp_path / "cut")
    for name in ("episodes.parquet", "updates.parquet"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    ends = [checkpoints.load(tmp_path / each) for each in ("cut", "whole")]
    assert ends[0].parameters.tobytes() == ends[1].parameters.tobytes()
    assert ends[0].slots.tobytes() == ends[1].slots.tobytes()


def test_the_order_of_minibatches_belongs_to_the_seed():
    runs = [train(config_of(seed=seed, episodes=40)) for seed in (1, 1, 2)]
    assert runs[0]._replace(wall_s=0) == runs[1]._replace(wall_s=0)
    assert runs[0].env_steps != runs[2].env_steps


@pytest.mark.parametrize("transport", ["shared", "queue"])
@pytest.mark.parametrize("runtime", ["processes", "threads"])
@pytest.mark.parametrize("algorithm", ALGORITHMS_OF_TRAJECTORIES)
def test_every_episode_is_counted_once_with_real_workers(algorithm, runtime, transport, tmp_path):
    exchange = ExchangeConfig(transport=transport, channel={"shared": "latest", "queue": "mailbox"}[transport])
    config = RunConfig(
        workers="3", episodes=200, runtime=runtime, algorithm=algorithm, learner=LEARNER, exchange=exchange
    )
    summary, records = collect(config, tmp_path)
    assert_each_once(summary, records, 200)
    assert_all_have_their_outcome(summary, tmp_path)
    assert summary.gradients_applied == summary.gradients_sent > 200
    assert summary.updates > 0


def test_killed_workers_cost_no_episode():
    victims = random.Random(1)

    def kill(run, record):
        if record.episode % 150 == 149:
            member = run.runtime.pool.members[victims.choice(sorted(run.runtime.pool.members))]
            with contextlib.suppress(ProcessLookupError):  # the last victim, not yet replaced
                os.kill(member.body.pid, signal.SIGKILL)

    summary, records = collect(config_of(runtime="processes", workers="6", episodes=600), on_episode=kill)
    assert_each_once(summary, records, 600)
    assert summary.crashes >= 1


def test_a_run_with_real_workers_goes_on_after_its_checkpoint(tmp_path):
    """Its half-collected batch is played again: those episodes were not recorded."""
    config = config_of(runtime="threads", episodes=300)
    run = Run(config, tmp_path)
    run.runtime.start(lambda: False)
    while run.runtime.log.episodes < 150 or not run.learner.save()[1]:
        run.advance(1)
    run.checkpoint()
    run.runtime.stop()
    summary = train(config, tmp_path)
    records = read_records(tmp_path).to_pandas()
    assert len(records) == 300
    assert not records.duplicated(["worker", "worker_episode"]).any()
    assert_all_have_their_outcome(summary, tmp_path)


def test_one_waiting_worker_plays_the_game_of_virtual_time():
    games = {}
    for runtime in ("simulate", "threads"):
        records = []
        train(config_of(exchange="waiting", workers="1", episodes=60, runtime=runtime), on_episode=records.append)
        games[runtime] = [(record.score, record.steps, record.version_pulled, record.staleness) for record in records]
    assert games["simulate"] == games["threads"]


def test_several_agents_hand_over_one_parcel(tmp_path):
    for engine in ("compiled", "tensorflow"):
        config = config_of(agents_per_worker=3, workers="2", episodes=30, engine=engine)
        summary = train(config, tmp_path / engine)
        assert summary.gradients_sent < 40
        assert_all_have_their_outcome(summary, tmp_path / engine)


@pytest.mark.parametrize("algorithm", ALGORITHMS_OF_TRAJECTORIES)
@pytest.mark.parametrize(
    "game",
    [
        {"environment": {"id": "CartPole-v1"}},
        {"environment": {"observation": "frames", "max_episode_steps": 12}, "model": "conv"},
    ],
    ids=["cartpole", "frames"],
)
def test_tensorflow_learns_from_trajectories_of_any_game(algorithm, game):
    learner = {"batch_steps": 30, "horizon": 8}
    summary = train(config_of(algorithm, workers="2", episodes=5, learner=learner, engine="tensorflow", **game))
    assert summary.gradients_applied == summary.gradients_sent > 5
    assert summary.updates > 0


# Costs


def test_the_master_pays_for_what_it_learns_and_workers_pay_for_no_gradient(tmp_path):
    costs = {"step_s": 0.01, "gradient_step_s": 0.002, "gradient_call_s": 0.05, "update_s": 0.1, "receive_s": 0.001}
    (tmp_path / "costs.yaml").write_text("\n".join(f"{name}: {value}" for name, value in costs.items()))
    config = config_of(profile=str(tmp_path / "costs.yaml"), learner={**LEARNER, "epochs": 3, "minibatches": 2})
    summary = train(config, tmp_path / "run")
    busy_s = summary.master_utilisation * summary.clock_s
    expected_s = 0.001 * summary.gradients_sent + (0.1 + 0.05) * summary.updates + 3 * 0.002 * summary.env_steps
    assert busy_s == pytest.approx(expected_s)
    first = read_records(tmp_path / "run").to_pandas().query("worker_episode == 0").iloc[0]
    assert first["finished_s"] - first["started_s"] == pytest.approx(0.01 * first["steps"])


def test_the_cost_of_learning_is_that_of_a_workers_gradient_unless_told():
    profile = CostProfile(step_s=1, update_s=1, gradient_step_s=3, gradient_call_s=4)
    assert profile.of_trajectories().learning_s(2, 10) == 1 + 2 * 4 + 10 * 3
    told = profile.model_copy(update={"learn_step_s": 0.5, "learn_call_s": 0.0})
    assert told.of_trajectories().learning_s(2, 10) == 1 + 10 * 0.5
    assert profile.learning_s(1, 0) == 0  # of a learner of gradients
    assert profile_of(RunConfig()).gradient_step_s > 0
    assert profile_of(RunConfig(algorithm="ppo")).gradient_step_s == 0


ONLY_FOR_GRADIENTS = {
    "topology": {"topology": "synchronous"},
    "exchange.batch": {"exchange": {"batch": 2}},
    "exchange.rate": {"exchange": {"rate": "gap"}},
    "exchange.compensation": {"exchange": {"compensation": 0.1}},
    "exchange.beyond": {"exchange": {"bound": 3, "beyond": "wait"}},
}


@pytest.mark.parametrize("setting", ONLY_FOR_GRADIENTS)
def test_what_only_gradients_allow_is_refused(setting):
    with pytest.raises(ValueError, match=f"{setting}: (ppo learns from|algorithm ppo hands over) trajectories"):
        train(RunConfig(algorithm="ppo", **ONLY_FOR_GRADIENTS[setting]))


@pytest.mark.parametrize("runtime", ["simulate", "threads"])
def test_trajectories_that_are_too_old_are_dropped(runtime, tmp_path):
    config = RunConfig(algorithm="vtrace", workers="6", episodes=120, learner=LEARNER, exchange={"bound": 0})
    summary = train(config.model_copy(update={"runtime": runtime}), tmp_path)
    assert summary.episodes == 120
    assert summary.staleness_max == 0
    assert_all_have_their_outcome(summary, tmp_path)
    assert summary.gradients_dropped > 0 or runtime == "threads"


class Learned(Exception):
    """It flies."""


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS_OF_TRAJECTORIES)
def test_ten_workers_learn_to_pass_50_pipes_an_episode(algorithm):
    scores = []

    def look(record):
        scores.append(record.score)
        if len(scores) > 100 and np.mean(scores[-100:]) > 50:
            raise Learned

    costs = {"profile": "report-tf2.21", "environment": {"max_episode_steps": 4_000}}
    config = RunConfig(algorithm=algorithm, workers="10", episodes=8_000, **costs)
    with pytest.raises(Learned):
        train(config, on_episode=look)
    assert np.mean(scores[:300]) < 5
