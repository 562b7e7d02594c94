"""Runs of value methods: on every clock and topology, resumed to the same bytes, recorded, saved, watched."""

import os
import signal

import numpy as np
import pytest

from a3c.play.__main__ import main as play
from a3c_core.build import new_learner
from a3c_core.config import RunConfig
from a3c_core.progress import Progress
from a3c_core.real.ray_pool import RayWorker
from a3c_core.records import checkpoints
from a3c_core.records.tables import UPDATE_TABLE, read_records
from a3c_core.train import Run, train

ALGORITHMS = ("q", "sarsa", "n_step_q")
LEARNER = {"target_every": 1_000, "epsilon_steps": 5_000, "learning_rate": 1e-3}
MAILBOX = {"channel": "mailbox", "queue": "unbounded"}
VIRTUAL = {
    "master": {"workers": "4"},
    "mailboxes": {"workers": "3", "exchange": MAILBOX},
    "hogwild": {"workers": "3->5", "topology": "hogwild", "schedule": {"first_s": 0.1, "further_s": 0.05, "window": 9}},
    "agents": {"workers": "2", "agents_per_worker": 3},
    "synchronous": {"workers": "4", "topology": "synchronous", "exchange": {"backups": 1}},
    "sharded": {"workers": "4", "topology": "sharded", "exchange": {"shards": 3}},
    "remedies": {"workers": "6", "exchange": {"rate": "gap", "compensation": 0.1, "bound": 4, "batch": 2}},
}
REAL = {
    "processes": {"runtime": "processes"},
    "threads": {"runtime": "threads"},
    "mailboxes": {"runtime": "threads", "exchange": {"transport": "queue", "channel": "mailbox"}},
    "hogwild": {"runtime": "processes", "topology": "hogwild"},
    "synchronous": {"runtime": "threads", "topology": "synchronous"},
    "remedies": {"runtime": "processes", "exchange": {"rate": "gap", "bound": 1, "beyond": "wait"}},
}


def config_of(algorithm, **settings):
    return RunConfig.model_validate({"episodes": 60, "algorithm": algorithm, "learner": LEARNER, **settings})


def updates_of(directory):
    return read_records(directory, UPDATE_TABLE).to_pandas()


@pytest.mark.parametrize("kind", VIRTUAL)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_killed_and_resumed_run_ends_in_the_same_bytes(algorithm, kind, tmp_path):
    config = config_of(algorithm, **VIRTUAL[kind])
    train(config, tmp_path / "whole")
    for events in (333, 400):
        run = Run(config, tmp_path / "cut")
        run.runtime.start()
        run.advance(events)
        run.checkpoint()
        run.advance(77)  # lost: it comes after the checkpoint
    train(config, tmp_path / "cut")
    for name in ("episodes.parquet", "updates.parquet"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    ends = [checkpoints.load(tmp_path / name) for name in ("cut", "whole")]
    assert np.array_equal(ends[0].parameters, ends[1].parameters)
    assert np.array_equal(ends[0].extra["learning"]["target"], ends[1].extra["learning"]["target"])
    assert ends[0].info["learner"] == ends[1].info["learner"]


def test_one_step_of_many_is_one_step(tmp_path):
    """With t_max: 1, n_step_q and q are the same algorithm, to the byte."""
    for algorithm in ("q", "n_step_q"):
        train(config_of(algorithm, workers="2", episodes=30, learner={**LEARNER, "t_max": 1}), tmp_path / algorithm)
    for name in ("episodes.parquet", "updates.parquet"):
        assert (tmp_path / "q" / name).read_bytes() == (tmp_path / "n_step_q" / name).read_bytes()


def test_engines_agree_over_a_run(tmp_path):
    """Until rounding tells them apart: the first episodes, whose parameters hardly differ, are the same games."""
    found = []
    for engine in ("compiled", "tensorflow"):
        train(config_of("sarsa", workers="2", episodes=12, engine=engine), tmp_path / engine)
        found.append(read_records(tmp_path / engine).to_pandas()[["worker", "steps", "score"]])
    assert found[0].equals(found[1])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_updates_tell_the_targets_age_and_epsilon(algorithm, tmp_path):
    train(config_of(algorithm, workers="4"), tmp_path)
    updates = updates_of(tmp_path)
    assert updates.columns.tolist()[-2:] == ["target_age", "epsilon"]
    assert updates["target_age"].between(0, 1_000).all()
    assert (updates["target_age"].diff() < 0).sum() >= 2  # it was set anew
    assert updates["epsilon"].iloc[0] > 0.9
    assert updates.groupby("worker")["epsilon"].apply(lambda epsilon: epsilon.is_monotonic_decreasing).all()
    assert updates.groupby("worker")["epsilon"].min().round(2).nunique() > 1  # each falls to its own


def test_a_runs_file_has_only_the_columns_of_its_algorithm(tmp_path):
    train(RunConfig(workers="2", episodes=20), tmp_path)
    assert updates_of(tmp_path).columns.tolist() == UPDATE_TABLE.schema.names


def test_dropped_gradients_have_no_numbers(tmp_path):
    exchange = {"queue": "dropping", "queue_size": 1}
    train(config_of("q", workers="12", exchange=exchange), tmp_path)
    updates = updates_of(tmp_path)
    dropped = updates["status"] == "dropped"
    assert dropped.any()
    assert updates["epsilon"].isna().equals(dropped)
    assert updates["target_age"].isna().equals(dropped)


@pytest.mark.parametrize("kind", REAL)
def test_in_real_time(kind, tmp_path):
    algorithm = {"processes": "sarsa", "hogwild": "n_step_q"}.get(kind, "q")
    config = config_of(algorithm, workers="2", episodes=150, **REAL[kind])
    summary = train(config, tmp_path)
    records, updates = read_records(tmp_path).to_pandas(), updates_of(tmp_path)
    assert summary.episodes == len(records) == 150
    assert not records[["worker", "worker_episode"]].duplicated().any()
    assert (updates["target_age"].diff() < 0).sum() >= 4
    learner, saved = new_learner(config), checkpoints.load(tmp_path)
    assert not np.array_equal(saved.extra["learning"]["target"], learner.target)
    assert saved.info["learner"]["target_set_at"] > 4_000


def test_a_killed_worker_is_replaced(tmp_path):
    def kill(record):
        if record.episode == 40:
            os.kill(run.runtime.pool.members[0].body.pid, signal.SIGKILL)

    run = Run(config_of("sarsa", workers="2", episodes=150, runtime="processes"), tmp_path, kill)
    assert run.finish().crashes == 1
    records, updates = read_records(tmp_path).to_pandas(), updates_of(tmp_path)
    assert len(records) == 150
    assert not records[["worker", "worker_episode"]].duplicated().any()
    assert updates.groupby("worker")["epsilon"].apply(lambda epsilon: epsilon.is_monotonic_decreasing).all()


def test_a_ray_actor_plays_with_what_was_published():
    config = config_of("sarsa", workers="2", runtime="ray")
    published = new_learner(config).publication
    published.flags.writeable = False  # as Ray's are
    reply = RayWorker(config.model_dump(mode="json"), 0, 0).work(published, 1, 0.0, Progress(0.0, 10_000))
    assert (reply.work.env_steps, reply.work.gradient.size) == (5, published.size // 2)
    assert reply.in_episode


def test_a_real_run_goes_on_with_its_target(tmp_path):
    config = config_of("q", workers="2", episodes=200, runtime="threads")

    def give_up(record):
        if record.episode == 100:
            run.checkpoint()
            raise KeyboardInterrupt

    run = Run(config, tmp_path, give_up)
    with pytest.raises(KeyboardInterrupt):
        run.finish()
    saved = checkpoints.load(tmp_path)
    resumed = Run(config, tmp_path)
    assert resumed.learner.target_set_at == saved.info["learner"]["target_set_at"] > 0
    assert np.array_equal(resumed.learner.target, saved.extra["learning"]["target"])
    assert resumed.finish().episodes == 200


def test_a_checkpoint_without_its_target_is_refused(tmp_path, monkeypatch):
    config = config_of("q", workers="2")
    run = Run(config, tmp_path)
    monkeypatch.setattr(type(run.learner), "save", lambda self: ({}, {}))
    run.runtime.start()
    run.advance(100)
    run.checkpoint()
    with pytest.raises(checkpoints.CheckpointError, match="target_set_at"):
        Run(config, tmp_path)


def test_keras_opens_the_one_headed_network_and_play_shows_it(tmp_path, capsys):
    import keras

    train(config_of("q", workers="2", episodes=30), tmp_path)
    checkpoint = checkpoints.load(tmp_path)
    observations = np.random.default_rng(0).uniform(-1, 1, (5, 8)).astype(np.float32)
    forward = checkpoint.model.numpy_forward(checkpoint.parameters)
    network = keras.models.load_model(checkpoint.path / "model.keras")
    np.testing.assert_allclose(network(observations), [forward(one)[0] for one in observations], rtol=1e-4, atol=1e-5)
    for greedy in ([], ["--greedy"]):
        play(["--checkpoint", str(tmp_path), "--episodes", "3", *greedy])
        assert "dense after" in capsys.readouterr().out
