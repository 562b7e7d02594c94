"""GA3C: equal to A3C where nothing lags, every trajectory dealt with once, lags that are true, resumed to the byte."""

import math

import numpy as np
import pyarrow.parquet as pq
import pytest

from a3c_core.build import make_engine, misfit, new_learner
from a3c_core.config import RunConfig
from a3c_core.engines.agent_batches import DIED, ENDED, CompiledAgents
from a3c_core.train import Run, train
from a3c_core.virtual.capacity import capacity
from a3c_core.virtual.costs import CostProfile, load_profile
from a3c_core.virtual.ga3c_tuner import Staff, Walk
from a3c_core.virtual.simulation import Simulation
from tests.test_topologies_learn import learns

UNIFORM = load_profile("uniform")
IN_PIECES = {"t_max": 5, "update_every": "t_max", "standardise": False}


def config_of(workers="4", episodes=100, exchange=None, **settings):
    return RunConfig.model_validate(
        {"workers": workers, "episodes": episodes, "topology": "ga3c", "exchange": exchange or {}, **settings}
    )


def simulate(config, profile=UNIFORM):
    """Return (simulation after its end, its records, rows of its updates)."""
    records, updates = [], []
    simulation = Simulation(config, profile, new_learner(config), records.append, on_update=updates.append)
    simulation.start()
    while simulation.step():
        pass
    return simulation, records, updates


ALONE = {"predictors": 1, "trainers": 1}


def test_without_lag_one_agent_learns_what_one_worker_learns():
    """Where training takes no time, it is done before the next state is answered: nothing lags."""
    at_once = UNIFORM.model_copy(update={"update_s": 0.0})
    simulation, records, _ = simulate(config_of("1", 60, ALONE), at_once)
    worker = RunConfig.model_validate({"workers": "1", "episodes": 60, "exchange": {"pull": "after_apply"}})
    twin = Run(worker, None)
    twin.finish()
    assert {record.staleness for record in records} == {0}
    np.testing.assert_array_equal(simulation.learner.parameters, twin.learner.parameters)


def test_with_a_lag_parameters_change_within_an_episode():
    slow = UNIFORM.model_copy(update={"update_s": 10 * UNIFORM.step_s})
    _, records, updates = simulate(config_of("1", 60, ALONE), slow)
    lags = np.array([row[11] for row in updates])
    staleness = np.array([record.staleness for record in records])
    assert staleness[0] == 0
    assert set(staleness[1:].tolist()) == {1}  # an episode begins with the parameters before the last one's update
    assert ((lags[1:] > 0) & (lags[1:] < 1)).all()  # and ends with those after it
    share = 10 / np.array([record.steps for record in records])  # steps that are answered while that is under way
    np.testing.assert_allclose(lags[1:], share[1:], atol=0.05)


@pytest.mark.parametrize("learner", [{}, IN_PIECES], ids=["episodes", "pieces"])
@pytest.mark.parametrize("workers", ["1", "7", "2->9", "auto"])
@pytest.mark.parametrize(
    "exchange",
    [
        {},
        {"predict_min": 5, "train_min": 300, "queue_size": 4},
        {"predict_max": 2, "train_max": 500, "predictors": 3, "trainers": 1, "queue_size": 1},
    ],
    ids=["usual", "patient", "narrow"],
)
def test_every_trajectory_has_one_outcome(exchange, workers, learner, tmp_path):
    schedule = {"rule": "slides", "first_s": 0.1, "further_s": 0.05, "window": 10, "auto_min": 2, "auto_max": 9}
    config = config_of(workers, 60, exchange, schedule={**schedule, "spacing": 15}, learner=learner)
    summary = train(config, tmp_path)
    assert summary.episodes == 60
    assert summary.gradients_sent == summary.gradients_applied == summary.update_rows
    episodes = pq.read_table(tmp_path / "episodes.parquet").to_pandas()
    played = episodes.groupby("worker")["worker_episode"].apply(sorted)
    assert all(numbers == list(range(len(numbers))) for numbers in played)
    updates = pq.read_table(tmp_path / "updates.parquet").to_pandas()
    assert (updates["lag_mean"] >= 0).all()
    assert (updates["lag_mean"] <= updates["staleness"]).all()
    batches = updates.groupby("version")["batch_steps"].first()
    assert batches.sum() == episodes["steps"].sum()
    if exchange.get("train_min"):
        assert np.median(batches) >= 300 or exchange["queue_size"] < 5


@pytest.mark.parametrize("jitter", ["none", "exponential"])
@pytest.mark.parametrize("learner", [{}, IN_PIECES], ids=["episodes", "pieces"])
def test_interrupted_it_ends_in_the_same_bytes(learner, jitter, tmp_path):
    exchange = {"train_min": 40, "queue_size": 3, "adapt_every_s": 0.5}
    environment = {"max_episode_steps": 70}
    config = config_of("6", 80, exchange, learner=learner, jitter=jitter, environment=environment)
    for events in (150, 400):
        run = Run(config, tmp_path / "cut")
        run.runtime.start(lambda: False)
        run.advance(events)
        run.checkpoint()
        run.advance(100)
    train(config, tmp_path / "cut")
    train(config, tmp_path / "whole")
    for file in ("episodes.parquet", "updates.parquet"):
        assert (tmp_path / "cut" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_agents_play_what_the_engine_plays():
    """The batched step is the engine's play, whoever else is in the batch; cut off, truncated or dead."""
    config = config_of(learner={**IN_PIECES, "t_max": 9}, environment={"max_episode_steps": 50})
    engine, parameters = make_engine(config), new_learner(config).parameters
    agents, endings = CompiledAgents(engine, config.environment, config.seed), set()
    agents.make_room(8)
    for slot in range(8):
        agents.begin(slot, 5)
    for _ in range(10):  # to the end of everybody's first piece
        agents.answer(parameters, 7, np.arange(8))
    for slot in range(8):
        environment, is_over = engine.new_environment(), False
        environment.begin_episode(config.seed, slot, 5)
        while not is_over:
            while not agents.arrays.full[slot] and agents.arrays.states[slot] not in (DIED, ENDED):
                agents.answer(parameters, 7, np.array([slot]))
            piece, expected = agents.take_piece(slot), engine.play(parameters, environment)
            for name in ("observations", "actions", "rewards", "values", "bootstrap_value", "terminated", "truncated"):
                np.testing.assert_array_equal(getattr(piece.trajectory, name), getattr(expected, name))
            assert (piece.oldest, piece.mean_version) == (7, 7.0)
            is_over = expected.terminated or expected.truncated
        endings.add(expected.terminated)
    assert endings == {False, True}


def test_batches_cost_their_fixed_part_once():
    """40 agents, one predictor that has time for no more: a step takes as long as a prediction of all who wait."""
    profile = CostProfile(step_s=1, act_s=0.5, predict_call_s=1.0, predict_state_s=0.01, update_s=0)
    simulation, _, _ = simulate(config_of("40", 200, {"predictors": 1}), profile)
    counts = simulation.topology._counts
    assert counts.predictor_busy_s == pytest.approx(counts.predictions + 0.01 * simulation.totals.env_steps)
    assert simulation.totals.env_steps / counts.predictions > 10
    saved_nothing = profile.model_copy(update={"predict_call_s": 0.0, "predict_state_s": None})
    slow, _, _ = simulate(config_of("40", 200, {"predictors": 1}), saved_nothing)
    assert slow.clock_s == pytest.approx(slow.totals.env_steps, rel=0.1)


def test_the_walk_keeps_what_trains_more():
    walk, staff = Walk(seed=1, every_s=10.0), Staff(4, 1, 1)
    visited = [staff]
    for second in range(4000):  # as many trainings a second as there are predictors, up to four
        for training in range(min(4, staff.predictors)):
            staff = walk.look(staff, second + training / 4)
        visited.append(staff)
    assert min(min(numbers) for numbers in visited) >= 1
    assert np.mean([numbers.predictors for numbers in visited[2000:]]) > 3


def test_adapted_numbers_are_recorded(tmp_path):
    train(config_of("5", 150, {"adapt_every_s": 0.2}), tmp_path)
    updates = pq.read_table(tmp_path / "updates.parquet").to_pandas()
    assert updates["predictors"].nunique() > 1
    assert updates["trainers"].nunique() > 1
    assert pq.read_table(tmp_path / "episodes.parquet")["workers_alive"].to_pandas().nunique() > 1


def test_no_master_bounds_the_number_of_agents():
    assert capacity(config_of("40")).limit == math.inf


@pytest.mark.parametrize(
    ("settings", "setting"),
    [
        ({"engine": "tensorflow"}, "engine"),
        ({"algorithm": "q"}, "algorithm"),
        ({"agents_per_worker": 2}, "agents_per_worker"),
        ({"workers": "2->5", "exchange": {"adapt_every_s": 1.0}}, "exchange.adapt_every_s"),
        ({"runtime": "ray"}, "runtime"),
        ({"runtime": "processes"}, "exchange.trainers"),
        ({"runtime": "processes", "exchange": {"trainers": 1}}, "environment.max_episode_steps"),
    ],
)
def test_what_does_not_fit_is_refused(settings, setting):
    found = misfit(config_of(**settings))
    assert found is not None
    assert found[0] == setting


def test_it_learns():
    learner = {"learning_rate": 1e-3}
    assert learns(config_of("40", 12_000, {"train_min": 500}, learner=learner), pipes=5, episodes=500)


@pytest.mark.slow
def test_it_learns_beyond_50_pipes():
    learner = {"learning_rate": 1e-3}
    assert learns(config_of("40", 100_000, {"train_min": 500}, learner=learner), pipes=50, episodes=500)
