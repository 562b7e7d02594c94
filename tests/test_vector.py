import gymnasium
import numpy as np
import pytest

import a3c_core  # noqa: F401
from a3c_core.games.flappy_env import FlappyBirdEnv
from a3c_core.games.flappy_vector import FlappyBirdVectorEnv

GAME = "a3c_core/FlappyBird-v0"


def playing(env, steps: int, seed: int):
    """Yield everything that the environments give, for the same random actions."""
    yield env.reset(seed=seed)
    actions = np.random.default_rng(5)
    for _ in range(steps):
        yield env.step((actions.random(env.num_envs) < 0.09).astype(np.int64))


@pytest.mark.parametrize(
    "settings",
    [{}, {"observation": "raw"}, {"reward": "alive"}, {"max_episode_steps": 30}],
    ids=["plain", "raw", "alive", "cut"],
)
def test_its_games_are_those_of_single_environments(settings):
    slow = gymnasium.vector.SyncVectorEnv([lambda: FlappyBirdEnv(**settings)] * 7)
    fast = FlappyBirdVectorEnv(7, **settings)
    over = 0
    for expected, got in zip(playing(slow, 400, 3), playing(fast, 400, 3), strict=True):
        for one, other in zip(expected[:-1], got[:-1], strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(expected[-1]["score"], got[-1]["score"])
        over += 0 if len(got) == 2 else int((got[2] | got[3]).sum())
    assert over > 20


def test_a_reset_without_a_seed_begins_the_next_episodes():
    slow, fast = gymnasium.vector.SyncVectorEnv([FlappyBirdEnv] * 3), FlappyBirdVectorEnv(3)
    for env in (slow, fast):
        env.reset(seed=9)
    for _ in range(3):
        np.testing.assert_array_equal(slow.reset()[0], fast.reset()[0])


def test_gymnasium_finds_it_and_knows_the_time_limit():
    env = gymnasium.make_vec(GAME, num_envs=4, reward="alive")
    assert isinstance(env.unwrapped, FlappyBirdVectorEnv)
    assert env.reset(seed=1)[0].shape == (4, 8)
    assert gymnasium.spec(GAME).max_episode_steps == 20_000
    assert env.observation_space.contains(env.step(env.action_space.sample())[0])


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda env: env.step(np.zeros(3)), "call reset"),
        (lambda env: (env.reset(), env.step(np.zeros(2))), "3 times 0"),
        (lambda env: (env.reset(), env.step(np.full(3, 2))), "or 1 .flap"),
        (lambda env: env.reset(seed=-1), "at least 0"),
        (lambda env: env.reset(seed=2**32), "below"),
        (lambda env: env.reset(options={"words": 1}), "words"),
    ],
)
def test_misuse_is_refused(act, message):
    with pytest.raises((ValueError, gymnasium.error.Error), match=message):
        act(FlappyBirdVectorEnv(3))


def test_frames_are_for_single_environments():
    with pytest.raises(ValueError, match="'report', 'raw'"):
        gymnasium.make_vec(GAME, num_envs=2, observation="frames")
