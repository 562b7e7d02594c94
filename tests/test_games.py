"""Any discrete Gymnasium game: played, saved, scored and learned from its id alone, or refused with the reason."""

import sys

import gymnasium
import numpy as np
import pytest

from a3c_core.build import parts_of
from a3c_core.config import RunConfig
from a3c_core.games import atari, make_game, score_of
from a3c_core.games.base import EnvironmentConfig, Score
from a3c_core.games.flappy_env import OBSERVATIONS
from a3c_core.games.flappy_game import OBSERVED
from a3c_core.records.tables import EpisodeRecord, RecordWriter, read_records
from a3c_core.train import train
from run_sweep import main as run_sweep

CARTPOLE = {"workers": "2", "engine": "tensorflow", "environment": {"id": "CartPole-v1"}, "profile": "uniform"}


def game_of(**settings):
    return make_game(EnvironmentConfig(**settings))


@pytest.mark.parametrize("name", ["CartPole-v1", "Acrobot-v1", "FrozenLake-v1", "Blackjack-v1"])
def test_a_saved_episode_goes_on_elsewhere(name):
    game = game_of(id=name)
    one, other = game.new_environment(), game.new_environment()
    actions = np.random.default_rng(0).integers(0, game.spaces.actions, 60).tolist()
    one.begin_episode(3, 1, 7)
    other.begin_episode(3, 1, 8)
    for place, action in enumerate(actions):
        assert one.observation.shape == game.spaces.observation_shape
        assert one.observation.dtype == game.spaces.observation_dtype
        if place == 5:
            other.set_state(one.get_state())
        ended = one.step(action)
        if place >= 5:
            assert other.step(action) == ended
            assert np.array_equal(one.observation, other.observation)
            assert (one.score, one.stream.tolist()) == (other.score, other.stream.tolist())
        if any(ended[1:]):
            break


def test_the_games_own_time_limit_holds_and_ours_can_shorten_it():
    def steps(**settings):
        environment = game_of(id="Acrobot-v1", **settings).new_environment()
        environment.begin_episode(0, 0, 0)
        count = 1
        while not environment.step(1)[2]:
            count += 1
        return count

    assert steps() == 500
    assert steps(max_episode_steps=70) == 70


def test_scores_are_said_by_the_game_without_building_it():
    assert score_of("a3c_core/FlappyBird-v0") == Score(
        "pipes passed", "pipes", 1.0, (1, 5, 10, 20, 50, 100), whole=True
    )
    assert score_of("CartPole-v1") == Score("return", "points", 475.0, (475.0,))
    for unknown in ("Nonsense-v3", "no_such_module:Game-v0", "no_such_module:Game", "", "ple/Snake-v0", ":", "a b"):
        assert isinstance(score_of(unknown), Score)


def test_scores_that_are_not_whole_are_kept_as_they_are(tmp_path):
    values = {"run": "r", "status": "applied", "truncated": False}
    record = EpisodeRecord(**{name: values.get(name, 1) for name in EpisodeRecord._fields})
    writer = RecordWriter(tmp_path, whole_scores=False)
    for episode, score in enumerate((-0.5, 2)):
        writer.append(record._replace(episode=episode, score=score))
    writer.finish()
    assert read_records(tmp_path)["score"].to_pylist() == [-0.5, 2.0]
    whole = RecordWriter()
    whole.append(record._replace(score=0.5))
    with pytest.raises(OverflowError, match="does not hold"):
        whole.flush()


def test_a_run_resumes_to_the_same_bytes(tmp_path):
    pieces = {"t_max": 20, "update_every": "t_max", "standardise": False}
    config = RunConfig.model_validate({**CARTPOLE, "episodes": 60, "learner": pieces, "checkpoint_s": 1e-9})

    def stop(record):
        if record.episode == 25:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        train(config, tmp_path / "cut", on_episode=stop)
    train(config, tmp_path / "cut")
    train(config, tmp_path / "whole")
    cut, whole = ((tmp_path / name / "episodes.parquet").read_bytes() for name in ("cut", "whole"))
    assert cut == whole
    records = read_records(tmp_path / "whole")
    assert records["score"].to_pylist() == records["return"].to_pylist() == records["steps"].to_pylist()


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["simulate", "processes"])
def test_two_workers_learn_to_balance(runtime):
    config = {**CARTPOLE, "episodes": 300, "runtime": runtime, "learner": {"learning_rate": 3e-3}}
    scores: list[float] = []
    train(RunConfig.model_validate(config), on_episode=lambda record: scores.append(record.score))
    assert np.mean(scores[:50]) < 60
    assert np.mean(scores[-100:]) > 150


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Pendulum-v1", "takes actions from Box"),
        ("CartPol-v1", "CartPole"),
        ("CartPole-v7", "knows no environment 'CartPole-v7'; did you mean CartPole-v1?"),
        ("no_such_module:Game-v0", "module 'no_such_module' can't be imported"),
    ],
)
@pytest.mark.parametrize("engine", ["compiled", "tensorflow"])
def test_a_dry_run_refuses_what_can_not_be_learned(name, engine, reason, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = f"name: g\nquestion: Why?\nbase: {{engine: {engine}, environment: {{id: {name}}}}}\n"
    (tmp_path / "g.yaml").write_text(text)
    assert run_sweep(["--grid", "g.yaml", "--dry-run"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert reason in said
    assert "environment.id" in said


def test_virtual_time_refuses_games_that_can_not_be_saved():
    gymnasium.register("Dice-v0", "gymnasium.envs.classic_control.cartpole:CartPoleEnv", nondeterministic=True)
    try:
        config = RunConfig.model_validate({**CARTPOLE, "environment": {"id": "Dice-v0"}})
        with pytest.raises(
            ValueError, match="virtual time needs games that can be saved: Dice-v0 is not deterministic"
        ):
            parts_of(config)
        assert parts_of(config.model_copy(update={"runtime": "processes"})).game.spaces.actions == 2
    finally:
        gymnasium.registry.pop("Dice-v0")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"model": "conv"}, "conv needs pictures"),
        ({"environment": {"id": "CartPole-v1", "reward": "alive"}}, "environment.reward is a setting of Flappy Bird"),
        ({"network": {"unts": 3}}, "unts"),
        ({"learner": {"learning_rate": "fast"}}, "learning_rate"),
    ],
)
def test_settings_of_others_are_refused(settings, reason):
    with pytest.raises(ValueError, match=reason):
        parts_of(RunConfig.model_validate({**CARTPOLE, **settings}))


def test_atari_without_its_extra_is_one_clear_answer(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "ale_py", None)  # as if it were not installed
    atari.import_ale.cache_clear()
    atari._actions_and_background.cache_clear()
    text = "name: g\nquestion: Why?\nbase: {engine: tensorflow, environment: {id: ALE/Pong-v5}}\n"
    (tmp_path / "g.yaml").write_text(text)
    assert run_sweep(["--grid", "g.yaml", "--dry-run"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "make setup-atari" in said
    assert score_of("ALE/Pong-v5").learned_above == -19.0  # whoever reads results needs no extra


@pytest.mark.parametrize("name", ["CartPole-v1", "a3c_core/FlappyBird-v0"])
def test_settings_of_atari_are_refused_by_other_games(name):
    assert "environment.atari" in game_of(id=name, atari={"unit": "life"}).why_not()


def test_any_games_rewards_can_be_clipped_and_its_score_is_not():
    environment = game_of(clip_rewards=True).new_environment()
    environment.begin_episode(0, 0, 0)
    rewards = [0.0]
    while rewards[-1] >= 0:
        rewards.append(environment.step(0)[0])
    assert rewards[-1] == -1.0  # the bird's death pays -5


def test_what_flickers_shows_nothing_by_a_chance_that_belongs_to_the_episode():
    shown = []
    for flicker in (0.0, 0.5, 0.5):
        environment = game_of(observation="frame", flicker=flicker).new_environment()
        environment.begin_episode(0, 0, 0)
        assert environment.observation.std() > 0  # the first is always shown
        frames = []
        while not environment.step(0)[1]:
            frames.append(environment.observation)
        shown.append(frames)
    blank = [(frame == 173).all() for frame in shown[1]]  # the sky, which the network sees as 0
    assert 0.2 < np.mean(blank) < 0.8
    for place, frame in enumerate(shown[1]):
        assert blank[place] or np.array_equal(frame, shown[0][place])
    assert np.array_equal(shown[1], shown[2])
    with pytest.raises(ValueError, match="its game does not flicker"):
        parts_of(RunConfig(environment={"flicker": 0.5}))


def test_a_row_of_numbers_that_is_not_shown_is_zeros():
    environment = game_of(flicker=0.9).new_environment()
    environment.begin_episode(0, 0, 0)
    for _ in range(10):
        environment.step(0)
    assert not environment.observation.any()


def test_flappy_bird_is_learned_from_what_its_environment_shows():
    spaces = {name: (space.shape, str(space.dtype)) for name, (space, *_) in OBSERVATIONS.items()}
    assert spaces == OBSERVED
