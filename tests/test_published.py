"""The report's published code as settings: each against its arithmetic, and all together on every clock."""

import itertools

import numpy as np
import pytest

from a3c_core.algorithms.returns import learning_targets
from a3c_core.build import make_engine, misfit
from a3c_core.config import RunConfig
from a3c_core.engines.actor_critic_kernels import new_buffers
from a3c_core.games.flappy import FlappyBird
from a3c_core.games.flappy_env import FlappyBirdEnv
from a3c_core.games.ple import as_pixels
from a3c_core.models.dense import DenseModel
from a3c_core.streams import shared_actions, stream_words, uniform
from a3c_core.system.tensorflow import import_tensorflow
from a3c_core.train import train
from tests import published_code
from tests.learner_cases import relative_error
from tests.published_code import PUBLISHED
from tests.test_flappy import RECORDINGS

ENGINES = ("compiled", "tensorflow", "report")


def published(**changes):
    return RunConfig.model_validate({**PUBLISHED, **changes})


def played(engine, episode, parameters):
    """Return the trajectory of a worker's first episode, at some (seed, worker)."""
    environment = engine.new_environment()
    environment.begin_episode(episode, 0, 0)
    return engine.play(parameters, environment)


# Discounts


@pytest.mark.parametrize("steps", [1, 2, 3, 20, 61, 500])
def test_stretched_discounts_are_those_of_the_published_code(steps):
    rewards = (np.random.default_rng(steps).random(steps) < 0.1).astype(np.float32)
    rewards[-1] = -5
    found = learning_targets(rewards, rewards, 0.0, True, 0.99, 0, True, True)
    np.testing.assert_allclose(found, published_code.targets(np.float64(rewards)), atol=2e-5)


def test_stretched_discounts_matter_most_in_short_episodes():
    rewards = np.array([0, 0, -5], np.float32)
    raw = learning_targets(rewards, rewards, 0.0, True, 0.5, 0, False, True)
    np.testing.assert_allclose(raw, [-5 * 0.5**3, -5 * 0.5**1.5, -5], rtol=1e-6)


def test_stretched_discounts_and_a_t_max_exclude_each_other():
    with pytest.raises(ValueError, match="stretched go by the whole episode"):
        published(learner={"discounts": "stretched", "t_max": 5, "standardise": False})


# The gradient


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_gradients_are_those_of_the_published_code(name, scale):
    """Fresh networks that pixels make nearly sure of themselves, and some that hesitate; some episodes of each."""
    tf, model, engine = import_tensorflow(), DenseModel(), make_engine(published(engine=name))
    for episode in range(4):
        parameters = np.float32(scale) * model.initial_parameters(episode)
        trajectory = played(engine, episode, parameters)
        assert trajectory.terminated
        weights = list(model.spec.views(parameters).values())
        rewards = np.float64(trajectory.rewards)
        expected, loss = published_code.gradient(tf, weights, trajectory.observations, trajectory.actions, rewards)
        gradient, found_loss, _ = engine.gradient(parameters, trajectory)
        assert relative_error(gradient, expected) < 1e-4
        assert found_loss == pytest.approx(loss, rel=1e-4)


def test_a_nearly_sure_policy_keeps_its_small_gradient():
    """At a preference of 20 the other action has a probability of 2e-9, which 1 - p rounds to nothing."""
    found = {}
    for name in ("compiled", "tensorflow"):
        engine, model = make_engine(published(engine=name)), DenseModel()
        parameters = np.zeros_like(model.initial_parameters(0))
        model.spec.views(parameters)["policy_logits/bias"][1] = 20
        trajectory = played(engine, 1, parameters)
        gradient = engine.gradient(parameters, trajectory)[0]
        found[name] = model.spec.views(gradient)["policy_logits/bias"][0]
    assert found["tensorflow"] != 0
    assert found["compiled"] == pytest.approx(found["tensorflow"], rel=1e-3)


# What is seen


def test_pixels_are_the_game_state_relative_to_the_bird():
    game, env = FlappyBird(seed=24), FlappyBirdEnv("pixels", seeding="ple")
    game.reset_game()
    observation, _ = env.reset(seed=24)
    for step in range(60):
        y, speed, *pipes = game.game_state().tolist()
        relative = [pipes[0], pipes[1] - y, pipes[2] - y, pipes[3], pipes[4] - y, pipes[5] - y]
        np.testing.assert_array_equal(observation, np.array([y, speed, *relative], np.float32), strict=True)
        np.testing.assert_array_equal(as_pixels(game.game_state()), observation, strict=True)
        assert env.observation_space.contains(observation)
        flap = step % 17 == 0
        game.act(flap)
        observation, *_ = env.step(int(flap))
        if game.game_over:
            break


@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_engines_play_the_same_published_games(scale):
    engines = [make_engine(published(engine=name)) for name in ENGINES]
    parameters = np.float32(scale) * DenseModel().initial_parameters(3)
    worlds = [engine.new_environment() for engine in engines]
    for episode in range(4):
        trajectories = []
        for engine, world in zip(engines, worlds, strict=True):
            world.begin_episode(7, 2, episode)
            trajectories.append(engine.play(parameters, world))
        for other in trajectories[1:]:
            np.testing.assert_array_equal(trajectories[0].observations, other.observations)
            np.testing.assert_array_equal(trajectories[0].actions, other.actions)


# What is drawn


@pytest.mark.parametrize("path", [path for path in RECORDINGS if "fall-recreate" in path.stem], ids=lambda p: p.stem)
def test_recreated_games_have_the_pipes_of_the_published_environment(path):
    """The recorder played on from the game's making, where the published code resets it once more."""
    recording = dict(np.load(path))
    first_steps = np.flatnonzero(np.concatenate([[0], recording["done"][:-1]]))
    env = FlappyBirdEnv("raw", seeding="recreated")
    for number, step in enumerate(first_steps[:20]):
        observation, _ = env.reset(seed=int(recording["seed"])) if number == 0 else env.reset()
        assert observation[[3, 6]].tolist() == recording["state"][step][[3, 6]].tolist()
        while not env.step(0)[2]:
            pass


@pytest.mark.parametrize("name", ["compiled", "tensorflow"])
def test_all_workers_draw_the_same_actions_on_across_their_episodes(name):
    engine = make_engine(published(engine=name))
    worlds = [engine.new_environment() for _ in range(3)]
    expected = shared_actions(5)
    for world, worker, first in zip(worlds, (0, 3, 40), (0, 0, 17), strict=True):  # one replaces a lost one
        world.begin_episode(5, worker, first)
        assert world.stream.tolist() == expected.tolist()
        uniform(world.stream)
        world.begin_episode(5, worker, first + 1)
    uniform(expected)
    assert all(world.stream.tolist() == expected.tolist() for world in worlds)
    other = engine.new_environment()
    other.set_state(worlds[0].get_state())
    other.begin_episode(5, 0, 2)
    assert other.stream.tolist() == expected.tolist()


def test_the_shared_stream_is_none_of_an_episodes():
    shared = shared_actions(5).tolist()
    streams = [stream_words(5, *key).tolist() for key in itertools.product(range(3), range(3))]
    assert all(shared not in pair for pair in streams)


@pytest.mark.parametrize("engine", ["compiled", "tensorflow"])
def test_workers_begin_with_the_same_episode(engine):
    """Equal pipes, actions and parameters: what each plays first is one and the same."""
    told = []
    train(published(engine=engine, workers="4", episodes=8), on_episode=told.append)
    first = [record for record in told if record.worker_episode == 0]
    assert len(first) == 4
    assert len({(record.steps, record.loss, record.return_) for record in first}) == 1


# A limit that does not matter


def test_memory_for_long_episodes_is_not_touched_before_they_come():
    def resident_pages():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1])

    before = resident_pages()
    buffers = new_buffers(1_000_000)
    assert (resident_pages() - before) * 4096 < 0.1 * sum(buffer.nbytes for buffer in buffers)


def test_only_our_own_game_is_reset_as_published():
    setting, reason = misfit(
        RunConfig.model_validate({"environment": {"id": "ple/FlappyBird-v0", "seeding": "recreated"}})
    )
    assert (setting, "recreated is for a3c_core/FlappyBird-v0" in reason) == ("environment.id", True)
