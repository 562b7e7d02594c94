"""GA3C with real processes: every trajectory is dealt with once, whoever is killed, and lags are recorded."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from a3c_core.build import make_engine, misfit, new_learner, parts_of
from a3c_core.config import RunConfig
from a3c_core.real.ga3c_predictor import AgentPool, outputs_of
from a3c_core.real.worker_manager import RunFailed
from a3c_core.records import checkpoints
from a3c_core.train import Run, train
from tests.test_processes import assert_each_once, collect
from tests.test_topologies_learn import learns

SHORT = {"max_episode_steps": 500}
IN_PIECES = {"t_max": 5, "update_every": "t_max", "standardise": False}


def config_of(workers="3", episodes=60, exchange=None, **settings):
    exchange = {"trainers": 1, **(exchange or {})}
    given = {"runtime": "processes", "environment": SHORT, "topology": "ga3c", "exchange": exchange, **settings}
    return RunConfig.model_validate({"workers": workers, "episodes": episodes, **given})


@pytest.mark.parametrize("learner", [{}, IN_PIECES], ids=["episodes", "pieces"])
@pytest.mark.parametrize("runtime", ["processes", "threads"])
def test_every_trajectory_has_one_outcome(runtime, learner, tmp_path):
    summary = train(config_of(runtime=runtime, learner=learner, exchange={"train_min": 100}), tmp_path)
    assert summary.episodes == 60
    assert summary.gradients_sent == summary.gradients_applied == summary.update_rows
    updates = pq.read_table(tmp_path / "updates.parquet").to_pandas()
    episodes = pq.read_table(tmp_path / "episodes.parquet").to_pandas()
    batches = updates.groupby("version")["batch_steps"].first()
    assert batches.sum() == episodes["steps"].sum()
    assert (batches[:-1] >= 100).all()  # the last is what is left
    assert (updates["lag_mean"] >= 0).all()
    assert (updates.groupby("version")["staleness"].max() >= updates.groupby("version")["lag_mean"].first()).all()
    assert (episodes["entropy"].between(0, np.log(2) + 1e-6)).all()


def test_predictors_look_at_frames_too(tmp_path):
    frames = {"observation": "frames", "max_episode_steps": 60}
    settings = {"model": "conv", "engine": "tensorflow", "learner": IN_PIECES, "environment": frames}
    summary = train(config_of("2", 8, {"train_min": 15}, runtime="threads", **settings), tmp_path)
    assert summary.episodes == 8
    assert summary.gradients_sent == summary.gradients_applied
    assert 0 < summary.worker_act_s < summary.worker_play_s
    assert summary.worker_play_s + summary.worker_wait_s < 2 * summary.wall_s  # none counts twice
    batches = pq.read_table(tmp_path / "updates.parquet").to_pandas().groupby("version")["batch_steps"].first()
    assert (batches[:-1] >= 15).all()
    begun = parts_of(config_of(**settings)).model.initial_parameters(0)
    assert not np.array_equal(checkpoints.load(tmp_path).parameters, begun)


def test_any_game_is_predicted_for():
    settings = {"engine": "tensorflow", "environment": {"id": "CartPole-v1", "max_episode_steps": 50}}
    summary, records = collect(config_of("2", 6, runtime="threads", **settings))
    assert_each_once(summary, records, 6)


@pytest.mark.parametrize("engine", ["compiled", "tensorflow"])
def test_what_predictors_answer_is_what_the_network_says(engine):
    config = config_of(engine=engine)
    model, outputs = parts_of(config).model, outputs_of(config)
    parameters = model.initial_parameters(3)
    observations = np.random.default_rng(0).normal(size=(7, 8)).astype(np.float32)
    expected = [make_engine(config_of(engine="tensorflow")).forward(parameters)(one) for one in observations]
    for ours, theirs in zip(outputs(parameters, observations), zip(*expected, strict=True), strict=True):
        np.testing.assert_allclose(ours, np.stack(theirs), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "setting", "reason"),
    [
        ({"engine": "report"}, "engine", "one observation at a time"),
        ({"engine": "tensorflow", "model": "lstm", "learner": IN_PIECES}, "model", "remembers"),
        ({"engine": "tensorflow", "runtime": "simulate"}, "engine", "in virtual time"),
    ],
)
def test_what_it_can_not_do_is_said(settings, setting, reason):
    found = misfit(config_of(**settings))
    assert found is not None
    assert found[0] == setting
    assert reason in found[1]


def test_one_agent_plays_what_one_worker_plays():
    """Before the first update: the same streams, so the same actions."""
    _, records = collect(config_of("1", 3, {"train_min": 10_000}))
    worker = RunConfig(workers="1", episodes=3, environment=SHORT)
    engine, parameters = make_engine(worker), new_learner(worker).parameters
    environment = engine.new_environment()
    for record in records:
        environment.begin_episode(worker.seed, 0, record.worker_episode)
        assert engine.play(parameters, environment).env_steps == record.steps


def test_a_run_without_its_predictor_fails(monkeypatch):
    def broken(self, slots):
        raise RuntimeError("no more")

    monkeypatch.setattr("a3c_core.real.ga3c_predictor.Predictor._answer", broken)
    with pytest.raises(RunFailed, match="a predictor has ended: RuntimeError: no more"):
        Run(config_of(), None).finish()


def test_predictors_share_the_agents(monkeypatch):
    pools = []
    opened = AgentPool.__init__
    monkeypatch.setattr(AgentPool, "__init__", lambda self, *parts: (opened(self, *parts), pools.append(self))[0])
    summary, records = collect(config_of("3", 30, {"predictors": 2, "predict_max": 1}, runtime="threads"))
    assert_each_once(summary, records, 30)
    assert [len(pool._predictors) for pool in pools] == [2]


@pytest.mark.slow
def test_it_learns():
    learner = {"learning_rate": 5e-3}
    config = config_of("8", 30_000, {"train_min": 100}, learner=learner, environment={"max_episode_steps": 2000})
    assert learns(config, pipes=5, episodes=200)
