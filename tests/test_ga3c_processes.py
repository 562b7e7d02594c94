"""GA3C with real processes: every trajectory is dealt with once, whoever is killed, and lags are recorded."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from a3c_core.config import RunConfig
from a3c_core.learners.new import new_learner
from a3c_core.parts import make_engine
from a3c_core.real.predictors import AgentPool
from a3c_core.real.roster import RunFailed
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

    monkeypatch.setattr("a3c_core.real.predictors.Predictor._answer", broken)
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
