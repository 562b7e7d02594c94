"""Flappy Bird behind Gymnasium: its contract, its endings and rewards, its state, and what it refuses."""

import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import a3c_core  # noqa: F401  registers the environments
from a3c_core.games.flappy import FlappyBird
from a3c_core.games.flappy_env import OBSERVATIONS, FlappyBirdEnv
from a3c_core.streams import stream_words

ENV = "a3c_core/FlappyBird-v0"


def play(env, steps, seed=0, flap=0.08):
    """Return what `steps` steps of a random policy give, resetting where an episode ends."""
    random = np.random.default_rng(seed)
    transitions = []
    for _ in range(steps):
        observation, reward, terminated, truncated, info = env.step(int(random.random() < flap))
        transitions.append((observation.tobytes(), reward, terminated, truncated, info))
        if terminated or truncated:
            transitions.append((env.reset()[0].tobytes(),))
    return transitions


@pytest.mark.parametrize("observation", OBSERVATIONS)
@pytest.mark.parametrize("seeding", ["episode", "ple", "recreated", "resets_4"])
def test_gymnasium_finds_nothing_to_complain_about(observation, seeding, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")  # the check opens a window, too
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(ENV, observation=observation, seeding=seeding).unwrapped)


@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_observations_stay_in_their_space(observation):
    env = FlappyBirdEnv(observation, seeding="ple")
    random = np.random.default_rng(0)
    for flap in (0.0, 0.1, 0.5, 1.0):
        seen, _ = env.reset(seed=1)
        for _ in range(300):
            assert seen in env.observation_space
            seen, _, terminated, _, _ = env.step(int(random.random() < flap))
            if terminated:
                assert seen in env.observation_space
                seen, _ = env.reset()


def test_importing_the_package_loads_nothing_heavy():
    heavy = "numpy", "numba", "pydantic", "gymnasium", "pygame", "tensorflow"
    code = f"import sys, a3c_core; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_same_seed_same_play_other_seed_other_play():
    runs = []
    for seed in (11, 11, 12):
        env = FlappyBirdEnv()
        first, _ = env.reset(seed=seed)
        runs.append([first.tobytes(), *play(env, 300)])
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_episodes_without_a_seed_differ():
    first, second = (FlappyBirdEnv("raw").reset()[0].tolist() for _ in range(2))
    assert first != second


def test_every_episode_has_the_stream_of_its_number():
    env = FlappyBirdEnv("raw")
    firsts = [env.reset(seed=5)[0], env.reset()[0], env.reset()[0]]
    for episode, first in enumerate(firsts):
        np.testing.assert_array_equal(first, FlappyBird.with_streams(5, 0, episode).game_state())


def test_given_words_decide_the_episode():
    env = FlappyBirdEnv("raw")
    first, _ = env.reset(options={"words": stream_words(5, 3, 8)[0]})
    np.testing.assert_array_equal(first, FlappyBird.with_streams(5, 3, 8).game_state())


@pytest.mark.parametrize("seed", [None, 9])
def test_ple_seeding_is_the_class_for_people(seed):
    env = FlappyBirdEnv("raw", seeding="ple")
    game = FlappyBird(24 if seed is None else seed)
    observation, _ = env.reset(seed=seed)
    game.reset_game()
    random = np.random.default_rng(0)
    for _ in range(500):
        np.testing.assert_array_equal(observation, game.game_state(), strict=True)
        flap = random.random() < 0.08
        observation, reward, terminated, _, info = env.step(int(flap))
        assert (reward, terminated, info["score"]) == (game.act(flap), game.game_over, game.score)
        if terminated:
            game.reset_game()
            observation, _ = env.reset()


def rewards_of_a_fall(**options):
    env = FlappyBirdEnv(**options)
    env.reset(seed=1)
    rewards, terminated, truncated = [], False, False
    while not (terminated or truncated):
        _, reward, terminated, truncated, info = env.step(0)
        rewards.append(reward)
    return rewards, terminated, truncated, info


def test_rewards_of_a_death():
    ple, terminated, truncated, info = rewards_of_a_fall(reward="ple")
    assert (ple[-1], set(ple[:-1]), terminated, truncated) == (-5.0, {0.0}, True, False)
    assert info == {"score": 0, "steps": len(ple)}
    alive, *_ = rewards_of_a_fall(reward="alive")
    assert alive == [1.0] * (len(ple) - 1) + [-1000.0]


def test_reward_of_a_pipe():
    env = FlappyBirdEnv("raw")
    state, _ = env.reset(seed=4)
    rewards = []
    while sum(rewards) < 3:
        state, reward, terminated, _, info = env.step(int(state[0] + 24 + state[1] > state[4] - 14))
        assert not terminated
        rewards.append(reward)
        assert info["score"] == sum(rewards)


def test_truncation_is_no_death_and_says_why():
    rewards, terminated, truncated, info = rewards_of_a_fall(max_episode_steps=10, reward="alive")
    assert (rewards, terminated, truncated) == ([1.0] * 10, False, True)
    assert info == {"score": 0, "steps": 10, "truncated_by": "max_episode_steps=10"}


def test_death_in_the_last_allowed_step_is_a_death():
    steps = len(rewards_of_a_fall()[0])
    _, terminated, truncated, info = rewards_of_a_fall(max_episode_steps=steps)
    assert (terminated, truncated) == (True, False)
    assert "truncated_by" not in info


@pytest.mark.parametrize("observation", OBSERVATIONS)
@pytest.mark.parametrize("seeding", ["episode", "ple", "recreated", "resets_4"])
def test_saved_environment_goes_on_exactly(observation, seeding):
    env, other = (FlappyBirdEnv(observation, seeding=seeding, max_episode_steps=40) for _ in range(2))
    env.reset(seed=3)
    play(env, 130)
    state = env.get_state()
    other.reset(seed=99)
    other.set_state(state)
    assert other.get_state() == state
    assert play(env, 200, seed=1) == play(other, 200, seed=1)


def test_ended_episode_is_restored_as_ended():
    env, other = FlappyBirdEnv(max_episode_steps=1), FlappyBirdEnv(max_episode_steps=1)
    env.reset(seed=3)
    env.step(0)
    other.set_state(env.get_state())
    with pytest.raises(gymnasium.error.ResetNeeded, match="truncated after 1 step"):
        other.step(0)


@pytest.mark.parametrize(
    "state", [b"", b"x" * 5000, FlappyBirdEnv("raw").get_state(), FlappyBirdEnv(seeding="ple").get_state()]
)
def test_foreign_state_is_refused(state):
    with pytest.raises(ValueError, match="report/episode"):
        FlappyBirdEnv().set_state(state)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"observation": "reprot"}, r"unknown observation 'reprot': .*'report', 'pixels', .*mean 'report'"),
        ({"reward": "pipes"}, r"unknown reward 'pipes': .*'ple', 'alive'"),
        ({"seeding": "episodes"}, r"unknown seeding 'episodes': .*'episode', 'ple'.*mean 'episode'"),
        ({"render_mode": "rgb"}, r"unknown render_mode 'rgb': .*None, 'rgb_array', 'human'"),
        ({"observation": ["raw"]}, r"unknown observation \['raw'\]"),
        ({"max_episode_steps": 0}, r"max_episode_steps must be .* at least 1, not 0"),
        ({"max_episode_steps": 2.5}, r"max_episode_steps must be a whole number.*not 2.5"),
    ],
)
def test_unknown_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        FlappyBirdEnv(**options)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"options": {"word": 1}}, "unknown reset option 'word'.*mean 'words'"),
        ({"options": {"words": [1, 2, 3]}}, r"words must be uint64 \[4\]"),
        ({"options": {"words": np.zeros(4, np.uint64)}}, "not all zero"),
        ({"options": {"words": stream_words(1)[0]}, "seed": 1}, "no seed beside them"),
    ],
)
def test_wrong_reset_options_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        FlappyBirdEnv().reset(**arguments)


@pytest.mark.parametrize("action", [2, -1, 0.5, "flap", None, [1], np.array([0, 1])])
def test_wrong_action_is_refused_and_plays_nothing(action):
    env = FlappyBirdEnv()
    env.reset(seed=1)
    before = env.get_state()
    with pytest.raises(gymnasium.error.InvalidAction, match=r"unknown action .*0 \(nothing\), 1 \(flap\)"):
        env.step(action)
    assert env.get_state() == before


@pytest.mark.parametrize("action", [1, True, np.int64(1), np.uint8(1), np.array(1)])
def test_any_integer_type_will_do(action):
    env = FlappyBirdEnv("raw")
    env.reset(seed=1)
    env.step(0)
    env.step(0)
    assert env.step(action)[0][1] == -8


def test_step_needs_a_running_episode():
    env = FlappyBirdEnv()
    with pytest.raises(gymnasium.error.ResetNeeded, match="no episode has begun"):
        env.step(0)
    env.reset(seed=1)
    while not env.step(0)[2]:
        pass
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"the bird is dead: call reset\(\)"):
        env.step(0)
    env.reset()
    env.step(0)
