"""Atari's games: Gymnasium's very frames, games that are saved, and runs on them. Skipped without the extra `atari`."""

import importlib.util
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from a3c.play.policies import environment_of, play_game, policy_of
from a3c_core.build import misfit, parts_of
from a3c_core.config import RunConfig
from a3c_core.games import make_game
from a3c_core.games.base import EnvironmentConfig
from a3c_core.records import checkpoints
from a3c_core.records.tables import read_records
from a3c_core.train import train
from experiments.grid.file import find_grid, read_grid
from experiments.grid.validation import validated_cells

if importlib.util.find_spec("ale_py") is None:
    pytest.skip("the extra `atari` is not installed: make test-atari adds it", allow_module_level=True)

GAMES = ("ALE/Pong-v5", "ALE/Breakout-v5", "ALE/SpaceInvaders-v5")
STEPS = 1_000
PIECES = {"t_max": 5, "update_every": "t_max", "standardise": False, "gamma": 0.99}


def game_of(name, **settings):
    return make_game(EnvironmentConfig(id=name, **settings))


def gymnasiums(name, life=False):
    import ale_py

    gymnasium.register_envs(ale_py)
    env = gymnasium.make(name, frameskip=1, repeat_action_probability=0.0)
    env = gymnasium.wrappers.AtariPreprocessing(env, terminal_on_life_loss=life)
    return gymnasium.wrappers.FrameStackObservation(env, 4)


def random_actions(game, count=STEPS):
    return np.random.default_rng(1).integers(0, game.spaces.actions, count).tolist()


def same(frames, stack):
    return np.array_equal(np.moveaxis(stack, 0, -1), frames)


@pytest.mark.parametrize("name", GAMES)
def test_a_network_sees_the_field_as_nothing(name):
    game = game_of(name)
    env = game.make(None)
    frames = [env.begin(3), *(env.step(action)[0] for action in random_actions(game, 100))]
    zero, unit = game.spaces.scaling
    seen = (np.array(frames) - zero) / unit
    assert np.median(seen) == 0.0
    assert np.abs(seen).max() <= 2.0


@pytest.mark.parametrize("name", GAMES)
def test_frames_rewards_and_ends_are_gymnasiums(name):
    game, theirs = game_of(name), gymnasiums(name)
    ours, seed = game.make(None), 3
    assert same(ours.begin(seed), theirs.reset(seed=seed)[0])
    for action in random_actions(game):
        frames, reward, terminated, *_ = ours.step(action)
        stack, their_reward, their_end, *_ = theirs.step(action)
        assert same(frames, stack)
        assert (reward, terminated) == (their_reward, their_end)
        if terminated:
            seed += 1
            assert same(ours.begin(seed), theirs.reset(seed=seed)[0])


def test_a_life_ends_an_episode_where_gymnasium_says_so_and_the_game_goes_on():
    game, theirs = game_of("ALE/Breakout-v5", atari={"unit": "life"}), gymnasiums("ALE/Breakout-v5", life=True)
    ours = game.make(None)
    assert same(ours.begin(5), theirs.reset(seed=5)[0])
    lives = ours.ale.lives()
    for action in random_actions(game):
        frames, reward, terminated, *_ = ours.step(action)
        stack, their_reward, their_end, *_ = theirs.step(action)
        assert same(frames, stack)
        assert (reward, terminated) == (their_reward, their_end)
        if terminated:
            break
    assert ours.ale.lives() == lives - 1
    ours.begin(6)
    assert ours.ale.lives() == lives - 1  # the same game, its next life


def test_the_native_vector_environment_shows_the_same_frames_but_saves_no_game():
    from ale_py.vector_env import AtariVectorEnv

    game = game_of("ALE/Pong-v5", atari={"noops": 0})
    ours = game.make(None)
    native = AtariVectorEnv("pong", 2, noop_max=0, use_fire_reset=False, reward_clipping=False)
    newest = native.reset(seed=1)[0][:, -1]
    assert np.array_equal(newest, [ours.begin(1)[..., -1]] * 2)
    for action in random_actions(game, 100):
        newest = native.step(np.array([action, action]))[0][:, -1]
        assert np.array_equal(newest, [ours.step(action)[0][..., -1]] * 2)
    assert not [
        name for name in dir(native.ale) if "state" in name.lower() and name[0] != "_"
    ]  # why single games are used


@pytest.mark.parametrize("atari", [{}, {"sticky": 0.25}, {"unit": "life"}])
def test_a_saved_game_goes_on_elsewhere(atari):
    game = game_of("ALE/Breakout-v5", atari=atari, clip_rewards=True)
    one, other = game.new_environment(), game.new_environment()
    one.begin_episode(3, 1, 7)
    other.begin_episode(3, 1, 8)
    for place, action in enumerate(random_actions(game, 400)):
        if place == 50:
            other.set_state(one.get_state())
        ended = one.step(action)
        if place >= 50:
            assert other.step(action) == ended
            assert np.array_equal(one.observation, other.observation)
            assert one.score == other.score
        if any(ended[1:]):
            one.begin_episode(3, 1, 9 + place)
            if place >= 50:
                other.begin_episode(3, 1, 9 + place)


def test_sticky_actions_repeat_the_last_one_by_chance():
    env = game_of("ALE/Pong-v5", atari={"sticky": 0.25}).make(None)
    env.begin(0)
    frames = [env._stuck(place % 2) == place % 2 for place in range(4_000)]
    assert 0.77 < np.mean(frames) < 0.83  # in an alternation, the last but one comes again by itself


def test_an_episode_belongs_to_its_seed_worker_and_number_alone():
    game = game_of("ALE/Pong-v5")
    fresh, used = game.new_environment(), game.new_environment()
    used.begin_episode(0, 0, 0)
    for action in random_actions(game, 50):
        used.step(action)
    starts = []
    for episode in (4, 5):
        for environment in (fresh, used):
            environment.begin_episode(1, 2, episode)
        assert np.array_equal(fresh.observation, used.observation)
        fresh.step(0), used.step(0)
        starts.append((fresh.env.ale.getEpisodeFrameNumber(), fresh.env.ale.getRAM().tolist()))
        assert fresh.env.ale.getRAM().tolist() == used.env.ale.getRAM().tolist()
    assert starts[0] != starts[1]


def test_rewards_are_clipped_and_the_score_is_not():
    game = game_of("ALE/SpaceInvaders-v5", clip_rewards=True)
    environment = game.new_environment()
    environment.begin_episode(0, 0, 0)
    rewards = [environment.step(action)[0] for action in random_actions(game, 300)]
    assert set(rewards) == {0.0, 1.0}
    assert environment.score > sum(rewards)


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"id": "ALE/Pog-v5"}, "did you mean ALE/Pong-v5?"),
        ({"id": "ALE/Pong-v5", "observation": "raw"}, "must be frames or frame"),
        ({"id": "ALE/Pong-v5", "reward": "alive"}, "of Flappy Bird"),
    ],
)
def test_what_can_not_be_played_is_refused(environment, reason):
    setting, said = misfit(RunConfig(engine="tensorflow", model="conv", environment=environment, learner=PIECES))
    assert setting == "environment.id"
    assert reason in said


def test_the_model_takes_the_scaling_that_the_game_declares():
    config = RunConfig(engine="tensorflow", model="conv", environment={"id": "ALE/Pong-v5"}, learner=PIECES)
    assert parts_of(config).model.scaling == (87.0, 128.0)


@pytest.mark.parametrize(
    "name", ["pong", "breakout", "invaders", "atari_documents", "hours", "ablation_breakout", "pong_workers"]
)
def test_shipped_grids_are_valid(name):
    assert validated_cells(read_grid(find_grid(name)))


@pytest.mark.parametrize("model", ["conv", "lstm"])
def test_a_run_in_virtual_time_resumes_to_the_same_bytes(model, tmp_path):
    short = {"id": "ALE/Pong-v5", "max_episode_steps": 12}
    config = RunConfig(
        workers="2",
        engine="tensorflow",
        model=model,
        episodes=10,
        profile="uniform",
        environment=short,
        learner=PIECES,
        network={"units": 16},
        checkpoint_s=1e-9,
    )

    def stop(record):
        if record.episode == 4:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        train(config, tmp_path / "cut", on_episode=stop)
    train(config, tmp_path / "cut")
    train(config, tmp_path / "whole")
    cut, whole = ((tmp_path / name / "episodes.parquet").read_bytes() for name in ("cut", "whole"))
    assert cut == whole
    assert read_records(tmp_path / "whole")["steps"].to_pylist() == [12] * 10


@pytest.mark.parametrize(
    ("name", "greedy", "games", "least"),  # chance scores -20, 1 and 157; scores of single games differ widely
    [("pong", True, 1, 10), ("breakout", False, 6, 4), ("invaders", True, 6, 200)],
)
def test_the_committed_checkpoints_play(name, greedy, games, least):
    checkpoint = checkpoints.load(Path(__file__).parents[1] / "results/atari" / name)
    environment = environment_of(checkpoint)
    policy = policy_of(checkpoint, environment, greedy=greedy)
    assert np.mean([play_game(policy, environment, seed=1, episode=game).score for game in range(games)]) >= least
