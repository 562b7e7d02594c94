"""Gorila: one of each is asynchronous Q-learning, every gradient has one outcome, and no step is lost."""

import numpy as np
import pytest
from pydantic import ValidationError

from a3c_core.build import new_learner, parts_of
from a3c_core.config import RunConfig
from a3c_core.learners.replay import ReplayMemory
from a3c_core.records import checkpoints
from a3c_core.records.tables import UPDATE_TABLE, read_records
from a3c_core.train import Run, train
from a3c_core.virtual.costs import load_profile
from a3c_core.virtual.simulation import Simulation
from tests.interrupted import assert_same_bytes_when_interrupted
from tests.test_processes import assert_each_once, collect
from tests.test_topologies_learn import learns

LEARNER = {"learn_from": 200, "memory_steps": 1_000, "target_every": 1_000, "epsilon_steps": 5_000, "t_max": 10}
KINDS = {
    "bundles": {},
    "in step": {"pace": "in_step", "shards": 1},
    "fewer learners": {"learners": 2, "shards": 3, "fixed": 0.3},
    "shared": {"learners": 3, "memory": "shared", "bound": 1, "shards": 1},
    "outliers": {"learners": 6, "memory": "shared", "outliers": 1.0, "bound": 3},
    "shared in step": {"learners": 2, "memory": "shared", "pace": "in_step", "outliers": 0.5, "bound": 0},
}


def config_of(workers="4", episodes=120, profile="report", learner=None, **settings):
    given = {"workers": workers, "episodes": episodes, "profile": profile, "learner": {**LEARNER, **(learner or {})}}
    return RunConfig.model_validate({**given, "algorithm": "dqn", "topology": "gorila", **settings})


def updates_of(directory):
    return read_records(directory, UPDATE_TABLE).to_pandas()


# One of each


ONE = {"workers": "1", "episodes": 60, "profile": "uniform"}
ALIKE = {"target_every": 500, "epsilon_steps": 2_000, "learning_rate": 1e-3}
WHOLE = {"learn_from": 1, "minibatch": None, "double": False, "value_loss": "squared"}


def trained(folder, algorithm, t_max, topology, exchange, **learner):
    """Return (what was played, the parameters and the target network at the end)."""
    settings = {**ONE, "algorithm": algorithm, "topology": topology, "exchange": exchange}
    train(RunConfig.model_validate({**settings, "learner": {**ALIKE, "t_max": t_max, **learner}}), folder)
    end = checkpoints.load(folder)
    played = read_records(folder).to_pandas()[["worker_episode", "steps", "score", "return"]]
    return played, end.parameters, end.extra["learning"]["target"]


@pytest.mark.parametrize("algorithm", ["q", "n_step_q"])
def test_one_of_each_with_a_memory_of_one_step_is_asynchronous_q(algorithm, tmp_path):
    """One actor and one learner in step, with a memory of the length of a trajectory: the same bytes."""
    alone = trained(tmp_path / "q", algorithm, 1, "master", {"pull": "after_apply"})
    exchange = {"pace": "in_step", "shards": 1}
    gorila = trained(tmp_path / "gorila", "dqn", 1, "gorila", exchange, memory_steps=1, **WHOLE)
    assert alone[0].equals(gorila[0])
    for mine, its in zip(alone[1:], gorila[1:], strict=True):
        assert mine.tobytes() == its.tobytes()


def test_one_of_each_with_a_memory_of_one_trajectory_is_asynchronous_q(tmp_path, monkeypatch):
    """Trajectories of five steps, or fewer at an episode's end, of which the memory forgets the one before.

    The same games, and the same parameters but for the order in which compiled code adds the five up.
    """
    remember = ReplayMemory.add

    def add(memory, trajectory):
        memory.added = 0
        remember(memory, trajectory)

    monkeypatch.setattr(ReplayMemory, "add", add)
    alone = trained(tmp_path / "q", "q", 5, "master", {"pull": "after_apply"})
    exchange = {"pace": "in_step", "shards": 1}
    gorila = trained(tmp_path / "gorila", "dqn", 5, "gorila", exchange, memory_steps=5, **WHOLE)
    assert alone[0].equals(gorila[0])
    for mine, its in zip(alone[1:], gorila[1:], strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-4, atol=1e-5)


def test_another_sample_is_another_run(tmp_path):
    """So the tests above can fail."""
    exchange = {"pace": "in_step", "shards": 1}
    whole = trained(tmp_path / "whole", "dqn", 1, "gorila", exchange, memory_steps=1, **WHOLE)
    longer = trained(tmp_path / "longer", "dqn", 1, "gorila", exchange, memory_steps=2, **WHOLE)
    assert not np.array_equal(whole[1], longer[1])


# Conservation


@pytest.mark.parametrize("jitter", ["none", "exponential"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_gradient_has_one_outcome_and_every_step_is_remembered(kind, jitter, tmp_path):
    run = Run(config_of(jitter=jitter, exchange=KINDS[kind]), tmp_path)
    summary = run.finish()
    outcomes = summary.gradients_applied, summary.gradients_dropped, summary.gradients_rejected
    assert summary.gradients_sent == sum(outcomes) == summary.update_rows > 50
    assert run.learner.version == summary.gradients_applied
    counted = updates_of(tmp_path)["status"].value_counts()
    assert [counted.get(status, 0) for status in ("applied", "dropped", "rejected")] == list(outcomes)
    records = read_records(tmp_path).to_pandas()
    assert len(records) == 120
    assert not records[["worker", "worker_episode"]].duplicated().any()
    memories = {id(one.replayer.memory): one.replayer.memory for one in run.runtime.topology.learners}
    assert sum(memory.added for memory in memories.values()) == summary.env_steps == records["steps"].sum()


def test_old_gradients_are_dropped_and_outlying_losses_rejected(tmp_path):
    exchange = {"memory": "shared", "shards": 1, "bound": 2, "outliers": 2.0}
    summary = train(config_of("6", 300, exchange=exchange, jitter="lognormal"), tmp_path)
    assert summary.staleness_max <= 2
    assert summary.gradients_dropped > 20
    assert summary.gradients_rejected > 5
    updates = updates_of(tmp_path)
    rejected = updates[updates["status"] == "rejected"]
    assert rejected["loss"].mean() > 1.5 * updates["loss"].mean()
    assert updates["loss"].isna().equals(updates["status"] == "dropped")
    unbounded = train(config_of("6", 300, exchange={"memory": "shared", "shards": 1}, jitter="lognormal"))
    assert unbounded.staleness_max > 2
    assert unbounded.gradients_rejected == unbounded.gradients_dropped == 0


def test_a_gradient_that_is_not_finite_is_rejected_by_all_shards(tmp_path, monkeypatch):
    run = Run(config_of(exchange={"shards": 3, "learners": 1}), tmp_path)
    made = type(run.runtime.topology.learners[0].replayer).make

    def spoilt(replayer, published):
        one = made(replayer, published)
        return one._replace(gradient=one.gradient * np.nan, loss=np.nan) if replayer.made % 3 == 0 else one

    monkeypatch.setattr(type(run.runtime.topology.learners[0].replayer), "make", spoilt)
    run.runtime.start()
    while run.advance(97):  # a checkpoint can be made while such a one is under way
        run.checkpoint()
    run = Run(config_of(exchange={"shards": 3, "learners": 1}), tmp_path)
    summary = run.finish()
    assert summary.gradients_rejected == pytest.approx(summary.gradients_sent / 3, abs=1)
    assert np.isfinite(run.learner.parameters).all()


# Time


def test_a_gradient_costs_its_learner_the_minibatch():
    """One learner with a memory that is never full enough, then one that is: its cycle is as the profile says."""
    profile = load_profile("uniform").model_copy(update={"learn_step_s": 0.02, "learn_call_s": 0.1, "load_s": 0.05})
    config = config_of("1", 60, "uniform", {"minibatch": 10}, exchange={"shards": 1})
    rows = []
    simulation = Simulation(config, profile, Run(config, None).learner, lambda record: None, on_update=rows.append)
    simulation.start()
    while simulation.step():
        pass
    applied_s = np.array([row[7] for row in rows])
    assert np.diff(applied_s) == pytest.approx(10 * 0.02 + 0.1 + 0.05 + 0.1)  # and the update


def test_learners_do_not_wait_for_actors_nor_actors_for_learners():
    slow = {"profile": "uniform", "update_s": 5.0}
    free = train(config_of(exchange={"shards": 1}, **slow))
    in_step = train(config_of(exchange={"shards": 1, "pace": "in_step"}, **slow))
    assert free.gradients_sent < in_step.gradients_sent / 4
    assert free.clock_s < in_step.clock_s / 4


def test_where_nothing_costs_time_it_ends():
    free = {"profile": "uniform", "update_s": 0.0, "slowdown": 1e-3}
    summary = train(config_of("2", 20, exchange={"shards": 1}, **free))
    assert summary.episodes == 20


def test_actors_come_and_go():
    schedule = {"rule": "slides", "first_s": 0.1, "further_s": 0.05, "window": 10, "spacing": 15, "auto_max": 9}
    summary = train(config_of("2->6", 200, schedule=schedule))
    assert summary.episodes == 200
    assert summary.workers_max == 6
    assert train(config_of("auto", 150, schedule=schedule)).episodes == 150


def test_no_number_of_actors_is_too_many_for_the_servers():
    summary = train(config_of("2", 20))
    assert summary.limit_workers == np.inf
    assert summary.untrained_cycle_s > 0


# Interrupted


@pytest.mark.parametrize("kind", KINDS)
def test_interrupted_it_ends_in_the_same_bytes(kind, tmp_path):
    config = config_of(exchange=KINDS[kind], jitter="lognormal")
    assert_same_bytes_when_interrupted(config, tmp_path, (150, 500))
    ends = [checkpoints.load(tmp_path / name) for name in ("cut", "whole")]
    for arrays in ("runtime", "learning"):
        assert ends[0].extra[arrays].keys() == ends[1].extra[arrays].keys()
        for name, values in ends[0].extra[arrays].items():
            assert values.tobytes() == ends[1].extra[arrays][name].tobytes(), name
    assert len(ends[0].extra["runtime"]["memory0_observations"]) == 1_000


def test_a_checkpoint_without_its_memory_is_refused(tmp_path, monkeypatch):
    run = Run(config_of(), tmp_path)
    monkeypatch.setattr(ReplayMemory, "save", lambda self: (self.added, {}))
    run.runtime.start()
    run.advance(100)
    run.checkpoint()
    with pytest.raises(checkpoints.CheckpointError, match="observations"):
        Run(config_of(), tmp_path)


def test_engines_agree_over_a_run(tmp_path):
    """Until rounding tells them apart: the first episodes are the same games."""
    found = []
    for engine in ("compiled", "tensorflow"):
        train(config_of("2", 20, learner={"learn_from": 100}, engine=engine), tmp_path / engine)
        found.append(read_records(tmp_path / engine).to_pandas()[["worker", "steps", "score"]])
    assert found[0].equals(found[1])


def test_several_agents_feed_a_memory():
    summary = train(config_of("2", 60, agents_per_worker=3))
    assert summary.episodes == 60
    assert summary.gradients_applied > 10


# What does not fit


@pytest.mark.parametrize("parts", [{"algorithm": "dqn"}, {"topology": "gorila"}])
def test_dqn_and_gorila_need_each_other(parts):
    with pytest.raises(ValueError, match=r"hands over .* takes experience|hands over experience"):
        parts_of(RunConfig.model_validate(parts))


# Real workers: each an actor, a memory and a learner


BUNDLED = {"pace": "in_step", "shards": 1}


@pytest.mark.parametrize("runtime", ["processes", "threads"])
def test_real_bundles_count_every_episode_and_gradient_once(runtime, tmp_path):
    config = config_of("3", 300, exchange={**BUNDLED, "outliers": 2.0, "bound": 1}, runtime=runtime)
    summary, records = collect(config, tmp_path)
    assert_each_once(summary, records, 300)
    assert summary.staleness_max <= 1
    updates = updates_of(tmp_path)
    assert len(updates) == summary.gradients_sent
    first = updates[updates["worker"] == 0].head(5)
    assert "applied" not in set(first["status"])  # nothing to learn from yet
    assert summary.gradients_applied > summary.gradients_rejected
    learner, saved = new_learner(config), checkpoints.load(tmp_path)
    assert not np.array_equal(saved.parameters, learner.parameters)
    assert not np.array_equal(saved.extra["learning"]["target"], learner.target)


def test_an_interrupted_real_run_goes_on(tmp_path):
    config = config_of("2", 200, exchange=BUNDLED, runtime="threads")
    run = Run(config, tmp_path)
    run.runtime.start()
    while run.runtime.log.episodes < 100:
        assert run.advance(1)
    run.checkpoint()
    run.runtime.stop()
    assert train(config, tmp_path).episodes == 200
    records = read_records(tmp_path).to_pandas()
    assert not records[["worker", "worker_episode"]].duplicated().any()


def test_a_bundle_is_one_of_virtual_times(tmp_path):
    """The same play, memory and draws: a thread's gradients are those of one actor and its learner in virtual time."""
    alike = {"epsilon_steps": 0, "target_every": 10**9}  # a real master counts env steps a little later
    norms = []
    for runtime in ("threads", "simulate"):
        config = config_of("1", 12, "uniform", alike, exchange=BUNDLED, runtime=runtime)
        train(config, tmp_path / runtime)
        updates = updates_of(tmp_path / runtime)
        norms.append(updates[updates["status"] == "applied"]["gradient_norm"].tolist())
    assert norms[0] == norms[1]
    assert len(norms[0]) > 20


@pytest.mark.parametrize(
    "exchange", [{}, {"shards": 1}, {"pace": "in_step"}, {**BUNDLED, "memory": "shared"}, {**BUNDLED, "learners": 1}]
)
def test_real_runtimes_say_that_they_have_bundles_only(exchange):
    with pytest.raises(ValidationError, match="pace: in_step"):
        config_of(exchange=exchange, runtime="processes")


SWIFT = {"learning_rate": 5e-4, "target_every": 5_000, "epsilon_steps": 50_000, "final_epsilons": (0.0, 0.0, 0.001)}
FLYING = {"episodes": 9_000, "environment": {"max_episode_steps": 4_000}, "algorithm": "dqn", "topology": "gorila"}


@pytest.mark.slow
def test_it_learns_to_fly_in_virtual_time():
    """It comes and goes: a hundred episodes beyond 50 pipes, of 105 at most, may be followed by worse ones."""
    settings = {**FLYING, "workers": "10", "learner": {**SWIFT, "anneal": True}}
    assert learns(RunConfig.model_validate(settings), pipes=50, episodes=100)


@pytest.mark.slow
def test_real_bundles_learn_to_fly():
    settings = {**FLYING, "workers": "3", "runtime": "processes", "exchange": BUNDLED}
    assert learns(RunConfig.model_validate({**settings, "learner": SWIFT}), pipes=5, episodes=200)
