"""DPPO: PPO's gradients, computed by workers epoch after epoch; one alone is PPO, and rounds average them."""

import contextlib
import os
import signal

import numpy as np
import pytest
import yaml
from pydantic import ValidationError

from a3c_core.algorithms.trajectories import batch_of
from a3c_core.build import make_engine, misfit, new_learner, parts_of
from a3c_core.config import RunConfig
from a3c_core.engines.packing import Packing
from a3c_core.models.dense import DenseModel
from a3c_core.real.direct import is_direct
from a3c_core.records.tables import UPDATE_TABLE, read_records
from a3c_core.system.tensorflow import import_tensorflow
from a3c_core.train import Run, train
from a3c_core.virtual.capacity import capacity, profile_of
from a3c_core.virtual.costs import load_profile
from tests.interrupted import assert_same_bytes_when_interrupted
from tests.learner_cases import relative_error, trained_parameters
from tests.test_processes import assert_each_once, collect
from tests.test_topologies_learn import learns

ENGINES = ("compiled", "tensorflow")
SHORT = {"horizon": 20, "epochs": 3}
LOSS = {"value_loss": "huber", "value_coefficient": 0.7, "entropy_coefficient": 0.01}


def config_of(learner=None, topology="synchronous", **settings):
    return RunConfig.model_validate(
        {"algorithm": "dppo", "topology": topology, "learner": {**SHORT, **(learner or {})}, **settings}
    )


def ppo_config(learner=None, **settings):
    """Return the settings of PPO whose batches are single pieces of play, each learned from as a whole."""
    learner = {**SHORT, "batch_steps": 1, "minibatches": 1, **(learner or {})}
    return RunConfig.model_validate({"algorithm": "ppo", "learner": learner, **settings})


def updates_of(directory):
    return read_records(directory, UPDATE_TABLE).to_pandas()


def environment_of(engine, episode=0, worker=0, seed=0):
    environment = engine.new_environment()
    environment.begin_episode(seed, worker, episode)
    return environment


def ppo_gradient(config, parameters, trajectories, targets=None):
    """Return (mean gradient over the steps, targets), as PPO's learner computes them."""
    engine, algorithm, batch = make_engine(config), parts_of(config).algorithm, batch_of(trajectories)
    if targets is None:
        targets = algorithm.batch_targets(batch, lambda: engine.evaluate(parameters, batch))
    gradient, _ = engine.batch_gradient(parameters, batch, targets, np.arange(batch.env_steps))
    return gradient / np.float32(batch.env_steps), targets


# One worker alone is PPO


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("learner", [{}, LOSS, {"standardise": False}], ids=["default", "loss", "plain"])
def test_its_gradients_are_those_of_ppo_in_every_epoch(engine, learner):
    ours, theirs = make_engine(config_of(learner, engine=engine)), ppo_config(learner, engine=engine)
    parameters = trained_parameters()
    played = make_engine(theirs)
    trajectory = played.play(parameters, environment_of(played))
    environment, targets = environment_of(ours), None
    for epoch in range(3):
        now = parameters * np.float32(1 + 0.01 * epoch)
        expected, targets = ppo_gradient(theirs, now, [trajectory], targets)
        rollout = ours.rollout(now, environment)
        assert np.array_equal(rollout.gradient, expected)
        assert (rollout.env_steps, rollout.repeated_steps) == ((20, 0) if epoch == 0 else (0, 20))
    assert ours.rollout(parameters, environment).env_steps == 20


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("learner", [{}, {"epochs": 1}, {"clip_norm": 0.5, **LOSS}], ids=["default", "once", "loss"])
def test_one_worker_learns_what_ppo_learns(engine, learner, tmp_path):
    common = {"workers": "1", "episodes": 30 if engine == "compiled" else 6, "engine": engine}
    ends = []
    for config in (config_of(learner, **common), ppo_config(learner, exchange={"pull": "after_apply"}, **common)):
        run = Run(config, tmp_path / config.algorithm)
        run.finish()
        ends.append(run.learner)
    assert ends[0].version == ends[1].version > 10
    assert np.array_equal(ends[0].parameters, ends[1].parameters)
    games = [read_records(tmp_path / name).to_pandas() for name in ("dppo", "ppo")]
    for column in ("score", "return", "steps", "truncated", "entropy"):
        assert games[0][column].tolist() == games[1][column].tolist()


def test_the_measured_numbers_are_those_of_ppo(tmp_path):
    """A batch's record has those of PPO's last epoch, as the last gradient of a piece has."""
    for config in (config_of(workers="1", episodes=20), ppo_config(workers="1", episodes=20, topology="master")):
        exchange = {} if config.topology == "synchronous" else {"pull": "after_apply"}
        train(config.model_copy(update={"exchange": type(config.exchange)(**exchange)}), tmp_path / config.algorithm)
    ours, theirs = updates_of(tmp_path / "dppo"), updates_of(tmp_path / "ppo")
    assert (ours["kl"][::3] < 1e-12).all()  # the first gradient is by the policy that played
    assert np.allclose(ours["importance_weight"][::3], 1)
    for name in ("clip_fraction", "kl", "importance_weight"):
        assert ours[name][2::3].tolist() == theirs[name].tolist()
    assert theirs["kl"].max() > 1e-6


# Several workers


def test_a_round_applies_the_mean_of_the_workers_own_gradients():
    rate, workers, learner = 0.1, 3, {"optimizer": "sgd", "learning_rate": 0.1}
    run, theirs = Run(config_of(learner, workers=str(workers), episodes=30), None), ppo_config()
    before = run.learner.parameters.copy()
    played = make_engine(theirs)
    pieces = [[played.play(before, environment_of(played, worker=worker))] for worker in range(workers)]
    targets = [None] * workers
    run.runtime.start()
    for version in (1, 2, 3):
        while run.learner.version < version:
            run.advance(1)
        gradients = []
        for worker, piece in enumerate(pieces):
            gradient, targets[worker] = ppo_gradient(theirs, before, piece, targets[worker])
            gradients.append(gradient)
        change = (before - run.learner.parameters) / rate
        assert relative_error(change, np.mean(gradients, axis=0)) < 1e-4
        before = run.learner.parameters.copy()


def test_without_backups_all_are_at_the_same_epoch(tmp_path):
    train(config_of(workers="4", episodes=80), tmp_path)
    updates = updates_of(tmp_path)
    fresh = (updates["kl"] < 1e-12).groupby(updates["version"])
    assert set(fresh.nunique()) == {1}
    epochs = fresh.first().to_numpy()
    assert np.array_equal(epochs, np.arange(len(epochs)) % 3 == 0)
    assert (updates["staleness"] == 0).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_agents_of_a_worker_are_one_batch_whatever_their_epochs(engine):
    """The second agent begins while the first is at its second epoch."""
    parameters, theirs = trained_parameters(), ppo_config(engine=engine)
    ours, played = make_engine(config_of(engine=engine)), make_engine(theirs)
    first, second = environment_of(ours), environment_of(ours, episode=1)
    ours.rollout(parameters, first)
    gradient, plays = ours.rollout_together(parameters, [first, second])
    assert [(play.env_steps, play.repeated_steps) for play in plays] == [(0, 20), (20, 0)]
    parts = [ppo_gradient(theirs, parameters, [played.play(parameters, environment_of(played, e))]) for e in (0, 1)]
    assert relative_error(gradient, np.mean([part for part, _ in parts], axis=0)) < 1e-5
    ours.rollout_together(parameters, [first, second])
    _, plays = ours.rollout_together(parameters, [first, second])
    assert [(play.env_steps, play.repeated_steps) for play in plays] == [(20, 0), (0, 20)]


@pytest.mark.parametrize("agents", [1, 3])
def test_engines_agree(agents):
    parameters, twins = DenseModel().initial_parameters(3), []
    for name in ENGINES:
        engine = make_engine(config_of(engine=name))
        environments, told = [environment_of(engine, episode) for episode in range(agents)], []
        for _ in range(3):
            told.append(engine.rollout_together(parameters, environments))
        twins.append(told)
    for (gradient, plays), (other, its_plays) in zip(*twins, strict=True):
        assert relative_error(gradient, other) < 1e-4
        for play, twin in zip(plays, its_plays, strict=True):
            one, two = ({**vars(each), **each.measured, "measured": 0} for each in (play, twin))
            assert one == pytest.approx(two, rel=1e-4, abs=1e-5)


# What is told of a piece


@pytest.mark.parametrize("learner", [{}, {"value_loss": "huber", "value_coefficient": 0.7}], ids=["squared", "huber"])
def test_the_loss_is_that_of_the_first_epoch(learner):
    parameters, config = DenseModel().initial_parameters(1), ppo_config({"standardise": False, **learner})
    played = make_engine(config)
    trajectory = played.play(parameters, environment_of(played))
    _, targets = ppo_gradient(config, parameters, [trajectory])
    forward = DenseModel().numpy_forward(parameters)
    outputs = [np.stack(head) for head in zip(*map(forward, trajectory.observations), strict=True)]
    algorithm = parts_of(config).algorithm
    actions = trajectory.actions.astype(np.int32)
    losses, _, _ = algorithm.losses(tuple(outputs), actions, import_tensorflow().constant(targets))
    engine = make_engine(config_of({"standardise": False, **learner}))
    environment = environment_of(engine)
    first, second, third = (engine.rollout(parameters, environment) for _ in range(3))
    assert first.loss == pytest.approx(float(np.sum(losses)), rel=1e-4)
    assert first.entropy == pytest.approx(-float(trajectory.log_probabilities.mean()), rel=1e-5)
    assert (second.loss, third.loss, second.reward, third.reward) == (0, 0, 0, 0)


def test_an_episode_is_over_with_the_last_gradient_of_its_last_piece():
    engine, parameters = make_engine(config_of({"horizon": 40})), DenseModel().initial_parameters(0)
    environment, told = environment_of(engine), []
    while not told or not told[-1].episode_over:
        told.append(engine.rollout(parameters, environment))
    assert len(told) % 3 == 0
    assert not any(play.episode_over for play in told[:-1])
    assert sum(play.env_steps for play in told) * 2 == sum(play.repeated_steps for play in told)
    assert environment.held is None


# Virtual time

FRAMES = {"environment": {"observation": "frames", "max_episode_steps": 12}, "model": "conv"}


@pytest.mark.parametrize(
    "settings",
    [
        {"workers": "6"},
        {"workers": "6", "exchange": {"backups": 2}},
        {"workers": "3", "agents_per_worker": 3},
        {"workers": "4", "topology": "master"},
        {"workers": "4", "topology": "sharded", "exchange": {"shards": 2}},
        {"workers": "3", "engine": "tensorflow", "environment": {"id": "CartPole-v1"}, "episodes": 12},
        {"workers": "2", "engine": "tensorflow", **FRAMES, "episodes": 10},
    ],
    ids=["rounds", "backups", "agents", "master", "sharded", "cartpole", "frames"],
)
def test_killed_amid_its_epochs_it_ends_in_the_same_bytes(settings, tmp_path):
    config = config_of(**{"profile": "uniform", "episodes": 60, **settings})
    run, events = Run(config, None), 40
    run.runtime.start()
    run.advance(events)
    while not any(agent.environment.held for slot in run.runtime.topology.slots.values() for agent in agents_of(slot)):
        run.advance(1)
        events += 1
    assert_same_bytes_when_interrupted(config, tmp_path, (events, 31, 17))


def agents_of(slot):
    return slot.worker._agents


TOPOLOGIES = {
    "synchronous": {},
    "backups": {"exchange": {"backups": 2}},
    "growing": {"workers": "2->6", "schedule": {"first_s": 0.1, "further_s": 0.05, "window": 5, "spacing": 5}},
    "master": {"topology": "master"},
    "compensation": {"topology": "master", "exchange": {"compensation": 0.04}},
    "batch": {"topology": "master", "exchange": {"queue": "unbounded", "batch": 3, "combine": "sum"}},
    "hogwild": {"topology": "hogwild"},
    "sharded": {"topology": "sharded", "exchange": {"shards": 3}},
    "agents": {"agents_per_worker": 3},
}


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_every_gradient_has_its_outcome_in_every_topology(name, tmp_path):
    summary = train(config_of(**{"workers": "4", "episodes": 60, **TOPOLOGIES[name]}), tmp_path)
    updates, episodes = updates_of(tmp_path), read_records(tmp_path).to_pandas()
    assert summary.episodes == 60
    assert summary.env_steps == episodes["steps"].sum()
    assert len(updates) == summary.gradients_sent == summary.gradients_applied + summary.gradients_dropped
    assert bool(summary.gradients_dropped) == (name == "backups")
    applied = updates[updates["status"] == "applied"]
    for measured in ("clip_fraction", "kl", "importance_weight"):
        assert applied[measured].notna().all()
    if "agents_per_worker" not in TOPOLOGIES[name]:
        assert summary.gradients_sent == 3 * np.ceil(episodes["steps"] / 20).sum()


COSTS = {
    "step_s": 0.002,
    "gradient_step_s": 0.001,
    "gradient_call_s": 0.003,
    "reset_s": 0.005,
    "load_s": 0.0007,
    "send_s": 0.0003,
    "resume_s": 0.0009,
    "oversleep_s": 0.0001,
    "pull_latency_s": 0.01,
    "update_s": 1e-9,
}


def test_an_epoch_that_plays_nothing_costs_its_gradient_and_no_play(tmp_path):
    costs = {name: COSTS[name] for name in ("step_s", "gradient_step_s", "gradient_call_s", "load_s", "send_s")}
    (tmp_path / "p.yaml").write_text(yaml.safe_dump({**costs, "update_s": 0.1}))
    train(config_of(workers="1", episodes=5, profile=str(tmp_path / "p.yaml")), tmp_path / "run")
    ends_s = np.append(0.0, updates_of(tmp_path / "run")["applied_s"])
    took_s = np.diff(ends_s)[:6] - 0.1  # two pieces of 20 steps
    again_s = 0.0007 + 0.003 + 20 * 0.001 + 0.0003
    assert took_s == pytest.approx([again_s + 20 * 0.002, again_s, again_s] * 2)


@pytest.mark.parametrize("wait_s", [0.0, 0.001])
@pytest.mark.parametrize("pull", ["at_once", "after_apply"])
def test_the_capacity_counts_all_gradients_of_a_piece(pull, wait_s, tmp_path):
    """Worker 0, alone, plays the very episodes that the untrained agent plays."""
    (tmp_path / "p.yaml").write_text(yaml.safe_dump({**COSTS, "record_s": 1e-9}))
    changed = {"profile": str(tmp_path / "p.yaml"), "environment": {"wait_s": wait_s}, "exchange": {"pull": pull}}
    config = config_of({"learning_rate": 1e-30}, "master", workers="1", episodes=200, seed=3, **changed)
    run = Run(config, None)
    summary, totals = run.finish(), run.runtime.log.totals
    first_wait_s = COSTS["resume_s"] if pull == "after_apply" else 0.0  # before its first cycle it waits for nothing
    assert summary.untrained_cycle_s == pytest.approx((totals.last_arrival_s + first_wait_s) / totals.sent, rel=1e-6)
    assert summary.untrained_service_s == pytest.approx(1e-9 * (1 + 200 / totals.sent))
    assert 0 < capacity(config).n0 < capacity(config).n_star


def test_workers_pay_what_a_master_of_trajectories_would():
    batches, told = load_profile("report-batches"), profile_of(config_of(profile="report-batches"))
    assert (told.gradient_call_s, told.gradient_step_s) == (batches.learn_call_s, batches.learn_step_s)
    assert told.learning_s(1, 0) == 0
    report = load_profile("report")
    told = profile_of(config_of(profile="report"))
    assert (told.gradient_call_s, told.gradient_step_s) == (report.gradient_call_s, report.gradient_step_s)


# Real workers


@pytest.mark.parametrize("agents", [1, 2])
@pytest.mark.parametrize("runtime", ["processes", "threads"])
def test_real_workers_play_each_episode_once(runtime, agents, tmp_path):
    config = config_of(workers="2", episodes=60, runtime=runtime, agents_per_worker=agents)
    summary, records = collect(config, tmp_path)
    assert_each_once(summary, records, 60)
    updates = updates_of(tmp_path)
    assert len(updates) == summary.gradients_sent == summary.gradients_applied
    assert summary.staleness_max == 0
    for measured in ("clip_fraction", "kl", "importance_weight"):
        assert updates[measured].notna().all()
    assert updates["kl"].max() > 1e-9
    assert summary.worker_play_s > 0
    assert summary.worker_gradient_s > 0


@pytest.mark.parametrize("settings", [{"topology": "master"}, {"topology": "hogwild"}], ids=["master", "hogwild"])
def test_real_workers_without_rounds_have_measured_numbers_too(settings, tmp_path):
    summary, records = collect(config_of(workers="2", episodes=40, runtime="threads", **settings), tmp_path)
    assert_each_once(summary, records, 40)
    assert updates_of(tmp_path)["importance_weight"].notna().all()


def test_one_real_worker_learns_what_it_learns_in_virtual_time():
    ends = []
    for runtime in ("simulate", "threads"):
        run = Run(config_of(workers="1", episodes=20, runtime=runtime), None)
        run.finish()
        ends.append(run.learner.parameters)
    assert np.array_equal(*ends)


def test_killed_workers_are_replaced_and_cost_no_episode():
    def kill(run, record):
        if record.episode in (60, 120):
            with contextlib.suppress(ProcessLookupError):
                os.kill(run.runtime.pool.members[record.episode // 60 - 1].body.pid, signal.SIGKILL)

    summary, records = collect(config_of(workers="2", episodes=200, runtime="processes"), on_episode=kill)
    assert_each_once(summary, records, 200)
    assert summary.crashes >= 1


def test_paced_workers_take_no_less_than_virtual_time_says(tmp_path):
    """Not at all how much more: that is for the machine to say."""
    costs = {"step_s": 0.0002, "gradient_step_s": 0.0001, "gradient_call_s": 0.003, "update_s": 0.001}
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(costs))
    profile = str(tmp_path / "p.yaml")
    common = {"workers": "1", "episodes": 10}
    virtual = train(config_of({"learning_rate": 1e-30}, profile=profile, **common))
    paced = train(config_of({"learning_rate": 1e-30}, runtime="threads", pace={"profile": profile}, **common))
    assert paced.env_steps == virtual.env_steps
    assert paced.clock_s > 0.99 * virtual.clock_s


# Learning, and what is refused

SWIFT = {"learning_rate": 1e-2, "horizon": 256, "epochs": 4}


def test_it_learns_in_virtual_time():
    config = config_of(SWIFT, workers="10", episodes=8_000, environment={"max_episode_steps": 4_000})
    assert learns(config, pipes=50, episodes=100)


def test_it_learns_with_real_processes():
    assert learns(config_of(SWIFT, workers="2", episodes=20_000, runtime="processes"), pipes=3, episodes=100)


@pytest.mark.parametrize("setting", ["batch_steps", "minibatches", "decoupled"])
def test_settings_of_a_learner_of_batches_are_refused(setting):
    with pytest.raises(ValidationError, match=setting):
        config_of({setting: 1})


@pytest.mark.parametrize(
    ("settings", "place", "words"),
    [
        ({"engine": "report"}, "engine", "can't differentiate again"),
        ({"model": "lstm", "engine": "tensorflow"}, "model", "which dppo can't learn from"),
        ({"topology": "gorila", "exchange": {}}, "topology", "gorila takes experience"),
        ({"topology": "ga3c"}, "algorithm", "algorithm: a3c"),
        ({"environment": {"id": "CartPole-v1"}}, "engine", "FlappyBird-v0"),
    ],
)
def test_what_does_not_fit_is_said_before_the_run(settings, place, words):
    found = misfit(config_of(**settings))
    assert found is not None
    assert found[0] == place
    assert words in found[1]


def test_fast_paths_that_do_not_know_it_are_not_taken():
    config = config_of(topology="master", runtime="processes")
    assert not is_direct(config, new_learner(config))


def test_what_is_held_is_saved_beside_the_environment():
    engine, parameters = make_engine(config_of()), trained_parameters()
    environment, other = environment_of(engine), engine.new_environment()
    engine.rollout(parameters, environment)
    other.set_state(environment.get_state())
    packing = Packing(parts_of(config_of()).game.spaces)
    assert (other.held.left, other.held.score) == (environment.held.left, environment.held.score) == (2, 0.0)
    assert np.array_equal(*(packing.pack([one.held.trajectory]) for one in (environment, other)))
    for _ in range(4):
        one, two = (engine.rollout(parameters, each) for each in (environment, other))
        assert np.array_equal(one.gradient, two.gradient)
        assert np.array_equal(environment.get_state(), other.get_state())
