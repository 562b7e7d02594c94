"""Learning from frames, and several agents per worker: batches change the cost of things, and nothing else."""

import resource

import numpy as np
import pytest

from a3c.benchmark.feeder import EXCHANGES
from a3c.play import __main__ as play
from a3c_core.build import make_engine, parts_of
from a3c_core.config import LearnerConfig, RunConfig
from a3c_core.games import frames
from a3c_core.models.conv import ConvModel
from a3c_core.models.dense import DenseModel
from a3c_core.records import checkpoints
from a3c_core.records.tables import EpisodeRecord
from a3c_core.train import train
from a3c_core.worker import Worker
from tests.learner_cases import relative_error, trained_parameters

IN_PIECES = LearnerConfig(t_max=10, update_every="t_max", standardise=False)
FRAMES = {"model": "conv", "engine": "tensorflow", "environment": {"observation": "frames"}, "learner": IN_PIECES}


def engine_of(name, model, learner):
    seen = {"observation": "frames"} if isinstance(model, ConvModel) else {}
    model = "conv" if seen else "dense"
    environment = {"max_episode_steps": 90, **seen}
    return make_engine(RunConfig(engine=name, model=model, environment=environment, learner=learner))


@pytest.fixture(scope="module")
def conv_engine():
    return engine_of("tensorflow", ConvModel(), IN_PIECES)


def begun(engine, agents):
    environments = [engine.new_environment() for _ in range(agents)]
    for episode, environment in enumerate(environments):
        environment.begin_episode(5, 1, episode)
    return environments


def assert_together_as_alone(engine, parameters):
    together, alone = begun(engine, 5), begun(engine, 5)
    for _ in range(3):
        gradient, plays = engine.rollout_together(parameters, together)
        rollouts = [engine.rollout(parameters, environment) for environment in alone]
        expected = sum(np.float64(rollout.gradient) for rollout in rollouts)
        assert relative_error(gradient, expected) < 1e-4
        for ours, theirs in zip(plays, rollouts, strict=True):
            assert (ours.env_steps, ours.reward, ours.score) == (theirs.env_steps, theirs.reward, theirs.score)
            assert (ours.terminated, ours.truncated) == (theirs.terminated, theirs.truncated)
            assert ours.loss == pytest.approx(theirs.loss, rel=1e-3, abs=1e-4)
            assert ours.entropy == pytest.approx(theirs.entropy, abs=1e-4)
        still = [place for place, play in enumerate(plays) if not play.episode_over]
        together, alone = ([agents[place] for place in still] for agents in (together, alone))


@pytest.mark.parametrize("learner", [IN_PIECES, LearnerConfig()])
@pytest.mark.parametrize("name", ["compiled", "tensorflow"])
def test_a_batch_of_agents_gives_the_sum_of_their_gradients(name, learner):
    engine = engine_of(name, DenseModel(), learner)
    if learner.update_every == "t_max":
        assert_together_as_alone(engine, trained_parameters())
    else:
        gradient, plays = engine.rollout_together(trained_parameters(), begun(engine, 4))
        rollouts = [engine.rollout(trained_parameters(), environment) for environment in begun(engine, 4)]
        assert relative_error(gradient, sum(np.float64(rollout.gradient) for rollout in rollouts)) < 1e-4
        assert [play.env_steps for play in plays] == [rollout.env_steps for rollout in rollouts]


def test_a_batch_of_frame_agents_too(conv_engine):
    assert_together_as_alone(conv_engine, ConvModel().initial_parameters(2))


def test_a_trainer_gets_the_sum_of_gradients_in_one_call(conv_engine):
    parameters = ConvModel().initial_parameters(2)
    trajectories = [conv_engine.play(parameters, environment) for environment in begun(conv_engine, 3)]
    expected = sum(np.float64(conv_engine.gradient(parameters, one)[0]) for one in trajectories)
    assert relative_error(conv_engine.gradient_together(parameters, trajectories), expected) < 1e-4


def test_agents_begin_only_what_they_may():
    worker = Worker(0, 0, engine_of("compiled", DenseModel(), IN_PIECES), agents=4)
    parameters = trained_parameters()
    assert worker.work(parameters, may_begin=3).began == 3
    assert worker.work(parameters, may_begin=0).began == 0
    numbers = set()
    while worker.in_episode:
        numbers |= {episode.number for episode in worker.work(parameters, may_begin=0).episodes}
    assert numbers == {0, 1, 2}
    assert worker.work(parameters, may_begin=9, now_s=7.0).began == 4


@pytest.mark.parametrize("settings", [{}, {"learner": IN_PIECES}])
def test_every_agents_episode_is_counted_once(settings):
    for runtime in ("simulate", "processes", "threads"):
        records: list[EpisodeRecord] = []
        config = RunConfig(workers="3", episodes=200, agents_per_worker=4, runtime=runtime, **settings)
        summary = train(config, on_episode=records.append)
        assert len({(record.worker, record.worker_episode) for record in records}) == len(records) == 200
        assert summary.env_steps == sum(record.steps for record in records)
        assert all(record.finished_s >= record.started_s for record in records)


def test_a_run_with_agents_resumes_to_the_same_bytes(tmp_path):
    config = RunConfig(workers="3", episodes=150, agents_per_worker=4, learner=IN_PIECES, checkpoint_s=1e-9)

    def stop(record):
        if record.episode == 70:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        train(config, tmp_path / "cut", on_episode=stop)
    train(config, tmp_path / "cut")
    train(config, tmp_path / "whole")
    files = [(tmp_path / name / "episodes.parquet").read_bytes() for name in ("cut", "whole")]
    assert files[0] == files[1]


@pytest.mark.parametrize(
    ("runtime", "transport", "workers"),
    [("simulate", "shared", "2"), ("processes", "queue", "1"), ("processes", "hogwild", "2")],  # each loads TensorFlow
)
def test_frames_run_everywhere_and_their_checkpoints_play(runtime, transport, workers, tmp_path, capsys):
    settings = {"agents_per_worker": 3, "runtime": runtime, **EXCHANGES[transport], **FRAMES}
    config = RunConfig(workers=workers, episodes=12, **settings)
    summary = train(config, tmp_path)
    assert summary.episodes == 12
    assert summary.updates > 12
    checkpoint = checkpoints.load(tmp_path)
    assert checkpoint.model == ConvModel()
    assert not np.array_equal(checkpoint.parameters, ConvModel().initial_parameters(0))
    if runtime == "simulate":
        play.main(["--checkpoint", str(tmp_path), "--episodes", "1", "--gif", str(tmp_path / "bird.gif")])
        assert "episode 0" in capsys.readouterr().out
        assert (tmp_path / "bird.gif").read_bytes()[:4] == b"GIF8"


def test_memory_stays_flat(conv_engine):
    agents, pieces = 8, 60
    worker = Worker(0, 0, conv_engine, agents=agents)
    parameters = ConvModel().initial_parameters(0)

    def play_on(pieces):
        for _ in range(pieces):
            worker.work(parameters)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    before_mb = play_on(pieces // 4)
    frames_mb = pieces * agents * IN_PIECES.t_max * 4 * frames.SIDE**2 / 2**20
    assert play_on(pieces) - before_mb < frames_mb / 2  # what TensorFlow needs may still grow, but no frames are kept


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"model": "conv"}, "need each other"),
        ({"environment": {"observation": "frames"}}, "need each other"),
        ({"model": "conv", "environment": {"observation": "frames"}}, "too large to hold"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, reason):
    with pytest.raises(ValueError, match=reason):
        parts_of(RunConfig(**settings))
