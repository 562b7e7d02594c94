"""The real PLE behind Gymnasium: what can be checked without it, and the rest where it is installed."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import a3c_core  # noqa: F401  registers the environments
from a3c_core.games import PLE_GAMES
from a3c_core.games.flappy import FlappyBird, write_observation
from a3c_core.games.flappy_env import FlappyBirdEnv
from a3c_core.games.ple import PleEnv, as_report, flatten


@pytest.fixture
def needs_ple():
    pytest.importorskip("ple", reason="the real PLE is optional; `make setup-ple` brings it")


@pytest.mark.parametrize("game", PLE_GAMES)
def test_missing_ple_is_one_clear_error(game, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ple", None)
    with pytest.raises(gymnasium.error.DependencyNotInstalled, match=r"`make setup-ple`.* installs it"):
        gymnasium.make(f"ple/{game}-v0")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"game": "Snak"}, "unknown game 'Snak'.*mean 'Snake'"),
        ({"game": "Pong", "observation": "report"}, "unknown observation 'report'.*'raw', 'frames'"),
        ({"reward": "live"}, "unknown reward 'live'.*mean 'alive'"),
        ({"render_mode": "screen"}, "unknown render_mode 'screen'"),
    ],
)
def test_unknown_options_are_refused_with_or_without_ple(options, message):
    with pytest.raises(ValueError, match=message):
        PleEnv(**options)


def test_flatten_gives_lists_a_fixed_length():
    short = {"food_x": 3, "snake_body": [1.0, 2.0], "snake_body_pos": [[5, 6], [7, 8]]}
    flat = flatten(short)
    assert flat.shape == (1 + 32 + 64,)
    assert flat[:4].tolist() == [3, 1, 2, -1]
    assert flat[33:38].tolist() == [5, 6, 7, 8, -1]
    long = {"food_x": 3, "snake_body": list(range(50)), "snake_body_pos": [[i, i] for i in range(50)]}
    assert flatten(long).shape == flat.shape
    creeps = {"creep_dist": {"GOOD": [], "BAD": [4.0]}, "creep_pos": {"GOOD": [], "BAD": [[1, 2]]}}
    assert flatten(creeps).tolist() == [-1] * 3 + [4, -1, -1] + [-1] * 6 + [1, 2] + [-1] * 4


def test_report_observation_is_that_of_the_compiled_game():
    game, expected = FlappyBird(1), np.empty(8, np.float32)
    for _ in range(20):
        game.act(False)
        write_observation(game.record, expected)
        np.testing.assert_array_equal(as_report(game.game_state()), expected, strict=True)


@pytest.mark.usefixtures("needs_ple")
@pytest.mark.parametrize("game", PLE_GAMES)
@pytest.mark.parametrize("observation", ["raw", "frames"])
def test_every_game_keeps_to_gymnasium(game, observation, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = gymnasium.make(f"ple/{game}-v0", observation=observation).unwrapped
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*infinity")  # PLE states no bounds
        check_env(env)
    random = np.random.default_rng(0)
    env.reset(seed=1)
    for _ in range(100):
        seen, _, terminated, _, _ = env.step(random.integers(env.action_space.n))
        assert seen in env.observation_space
        if terminated:
            env.reset()


@pytest.mark.usefixtures("needs_ple")
@pytest.mark.parametrize("observation", ["report", "raw"])
@pytest.mark.parametrize("reward", ["ple", "alive"])
@pytest.mark.parametrize("seed", [24, 1, 99])
def test_flappy_bird_is_ours_to_the_last_bit(seed, reward, observation):
    real, ours = PleEnv("FlappyBird", observation, reward), FlappyBirdEnv(observation, reward, seeding="ple")
    random = np.random.default_rng(seed)
    seen = [env.reset(seed=seed) for env in (real, ours)]
    for _ in range(1000):
        np.testing.assert_array_equal(seen[0][0], seen[1][0], strict=True)
        assert seen[0][1:] == seen[1][1:]
        action = int(random.random() < 0.08)
        seen = [env.step(action) for env in (real, ours)]
        if seen[0][2]:
            seen = [env.reset() for env in (real, ours)]


@pytest.mark.usefixtures("needs_ple")
def test_endings_of_the_real_game():
    env = PleEnv("FlappyBird", max_episode_steps=5)
    with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
        env.step(0)
    env.reset(seed=1)
    with pytest.raises(gymnasium.error.InvalidAction, match=r"0 \(nothing\), 1 \(up\)"):
        env.step(2)
    for _ in range(5):
        _, _, terminated, truncated, info = env.step(0)
    assert (terminated, truncated, info["truncated_by"]) == (False, True, "max_episode_steps=5")
    with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
        env.step(0)
