"""DQN: gradients of minibatches against finite differences, engines that agree, and what a replay memory holds."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from a3c_core.algorithms.base import Trajectory
from a3c_core.build import make_engine
from a3c_core.config import RunConfig
from a3c_core.engines.packing import ExperiencePacking, Transitions
from a3c_core.games.base import Spaces
from a3c_core.learners.replay import Made, Replayer, ReplayMemory
from a3c_core.models.dense import DenseModel
from a3c_core.progress import Progress
from a3c_core.streams import stream_words
from tests import value_twin
from tests.learner_cases import relative_error

MODEL = DenseModel(heads=(("action_values", 2),))
ENGINES = ("compiled", "tensorflow")


def config_of(engine="compiled", environment=None, **learner):
    parts = {"algorithm": "dqn", "topology": "gorila", "engine": engine}
    return RunConfig.model_validate({**parts, "learner": learner, "environment": environment or {}})


@cache
def engine(name, max_episode_steps=200, **learner):
    return make_engine(config_of(name, {"max_episode_steps": max_episode_steps}, **learner))


def published(seed=0):
    """Return parameters and a target network that differ."""
    return np.concatenate([2 * MODEL.initial_parameters(seed), 2 * MODEL.initial_parameters(seed + 1)])


def minibatch(steps, seed=0):
    random = np.random.default_rng([steps, seed])
    observations, following = random.uniform(-1, 1, (2, steps, 8)).astype(np.float32)
    goes_on = (random.random(steps) > 0.3).astype(np.float32)
    rewards = (2 * random.normal(size=steps)).astype(np.float32)
    return Transitions(observations, random.integers(0, 2, steps).astype(np.int32), rewards, following, goes_on)


# Gradients


@pytest.mark.parametrize("value_loss", ["squared", "huber"])
@pytest.mark.parametrize("double", [False, True])
def test_finite_differences_confirm_the_gradients_of_both_engines(double, value_loss):
    for steps in (1, 32):
        batch, vector, huber = minibatch(steps), published(steps), value_loss == "huber"
        parameters, target = np.split(vector, 2)
        goals = value_twin.replay_goals(parameters, target, batch, 0.9, double)
        inputs = batch.observations.astype(np.float64), batch.actions, goals
        expected = value_twin.slopes(parameters, *inputs, huber=huber)
        for name in ENGINES:
            one = engine(name, gamma=0.9, double=double, value_loss=value_loss)
            gradient, loss = one.replay_gradient(vector, batch)
            assert relative_error(gradient, expected) < 1e-4, (name, steps)
            assert loss == pytest.approx(value_twin.loss(parameters, *inputs, huber), rel=1e-4)


def test_agreement_can_fail():
    """On the same minibatch settings make a difference, and so does the end of a game."""
    batch, vector = minibatch(32), published()
    settings = [{}, {"double": False}, {"value_loss": "huber"}, {"gamma": 0.5}]
    gradients = [engine("compiled", **one).replay_gradient(vector, batch)[0] for one in settings]
    endless = batch._replace(goes_on=np.ones_like(batch.goes_on))
    gradients.append(engine("compiled").replay_gradient(vector, endless)[0])
    for i, one in enumerate(gradients):
        assert all(relative_error(one, other) > 1e-3 for other in gradients[:i])


def test_a_large_minibatch_after_a_small_one():
    small, large = minibatch(3), minibatch(200)
    for name in ENGINES:
        one = engine(name)
        parts = [Transitions(*(column[rows] for column in large)) for rows in (slice(0, 90), slice(90, 200))]
        first = one.replay_gradient(published(), small)[0]
        whole = one.replay_gradient(published(), large)[0]
        assert relative_error(sum(one.replay_gradient(published(), part)[0] for part in parts), whole) < 1e-5
        assert np.array_equal(first, one.replay_gradient(published(), small)[0])


@pytest.mark.parametrize("model", [{"network": {"units": 16}}, {"model": "conv", "observation": "frames"}])
def test_tensorflow_learns_with_other_models(model):
    environment = {"observation": model.pop("observation")} if "observation" in model else {}
    config = config_of("tensorflow", environment, t_max=5).model_dump(mode="json")
    one = make_engine(RunConfig.model_validate({**config, "network": {}, **model}))
    vector = np.concatenate([one.model.initial_parameters(0), one.model.initial_parameters(1)])
    world, memory = one.new_environment(), ReplayMemory(20, one.packing.spaces)
    world.begin_episode(0, 0, 0)
    for trajectory in one.packing.unpack(one.rollout(vector, world).gradient):
        memory.add(trajectory)
    gradient, loss = one.replay_gradient(vector, memory.sample(None, stream_words(0)[0]))
    assert gradient.shape == (vector.size // 2,)
    assert np.isfinite(loss)
    assert gradient.any()


# Play


def play(one, vector, episode, progress):
    """Return the pieces of an episode."""
    world = one.new_environment()
    world.begin_episode(1, 0, episode)
    pieces = [one.play(vector, world, progress)]
    while not (pieces[-1].terminated or pieces[-1].truncated):
        pieces.append(one.play(vector, world, progress))
    return pieces


@pytest.mark.parametrize("limit", [30, 200])
def test_engines_play_identical_games(limit):
    for episode in range(6):
        progress = Progress(0.5, 600_000, 0.5)
        both = [play(engine(name, limit, t_max=7), published(episode), episode, progress) for name in ENGINES]
        for one, other in zip(*both, strict=True):
            for name in ("observations", "actions", "rewards", "terminated", "truncated"):
                assert np.array_equal(getattr(one, name), getattr(other, name)), name
            assert (one.next_observation is None) == (other.next_observation is None) == one.terminated
            assert one.terminated or np.array_equal(one.next_observation, other.next_observation)
        for piece, following in zip(both[0], both[0][1:], strict=False):
            assert np.array_equal(piece.next_observation, following.observations[0])


# Memory


def trajectory_of(steps, first=0, terminated=False, dtype="float32", shape=(2,)):
    """Return a trajectory whose observations, actions and rewards count on from `first`."""
    numbers = np.arange(first, first + steps + 1)
    seen = np.broadcast_to(numbers.reshape(-1, *(1 for _ in shape)), (steps + 1, *shape)).astype(dtype)
    nothing, rewards = np.zeros(steps, np.float32), numbers[:-1].astype(np.float32)
    beyond = None if terminated else seen[-1]
    return Trajectory(seen[:-1], numbers[:-1].astype(np.int32), rewards, nothing, 0.0, terminated, False, beyond)


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_a_parcel_holds_experience_to_the_bit(dtype):
    packing = ExperiencePacking(Spaces((3, 5), dtype, 4))
    given = [trajectory_of(steps, 7, steps == 1, dtype, (3, 5)) for steps in (1, 6, 4)]
    given[2] = replace(given[2], truncated=True)
    parcel = packing.pack(given)
    assert packing.pack(given[1:2]).size == packing.capacity(agents=1, horizon=6)
    for one, found in zip(given, packing.unpack(parcel), strict=True):
        for name in ("observations", "actions", "rewards", "terminated", "truncated"):
            assert np.array_equal(getattr(one, name), getattr(found, name)), name
        assert (one.next_observation is None) == (found.next_observation is None)
        assert one.terminated or np.array_equal(one.next_observation, found.next_observation)


def test_a_memory_holds_the_latest_steps_in_their_order():
    memory = ReplayMemory(5, Spaces((2,), "float32", 2))
    for first, steps in ((0, 3), (3, 1), (4, 4)):
        memory.add(trajectory_of(steps, first, terminated=first == 3))
    held = memory.sample(None, stream_words(0)[0])
    assert held.actions.tolist() == held.rewards.tolist() == [3, 4, 5, 6, 7]
    assert held.goes_on.tolist() == [0, 1, 1, 1, 1]
    assert held.next_observations[:, 0].tolist() == [0, 5, 6, 7, 8]


def test_one_longer_than_a_memory_leaves_its_end():
    memory = ReplayMemory(3, Spaces((2,), "float32", 2))
    memory.add(trajectory_of(8))
    assert memory.sample(None, stream_words(0)[0]).actions.tolist() == [5, 6, 7]


def test_draws_are_even_and_belong_to_their_stream():
    memory = ReplayMemory(10, Spaces((2,), "float32", 2))
    memory.add(trajectory_of(7))
    draws = [memory.sample(7_000, stream_words(0, number)[0]).actions for number in (1, 1, 2)]
    assert np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])
    assert np.bincount(draws[0], minlength=7) == pytest.approx(1_000, abs=150)


def test_a_memory_is_restored_to_the_byte():
    memory, other = (ReplayMemory(5, Spaces((2,), "float32", 2)) for _ in range(2))
    for first in (0, 4):
        memory.add(trajectory_of(4, first))
        added, arrays = memory.save()
        other.restore(added, {name: values.copy() for name, values in arrays.items()})
        for one in (memory, other):
            one.add(trajectory_of(1, 50 + first))
        for mine, its in zip(memory.sample(None, None), other.sample(None, None), strict=True):
            assert mine.tobytes() == its.tobytes()


# Outlying losses


class Losses:
    """An engine that gives the losses it is told."""

    def __init__(self, losses):
        self._losses = iter(losses)

    def replay_gradient(self, published, batch):
        return np.zeros(1, np.float32), 2 * next(self._losses)  # summed over two steps


def judged(losses, outliers):
    memory = ReplayMemory(2, Spaces((2,), "float32", 2))
    memory.add(trajectory_of(2))
    settings = config_of(minibatch=2, learn_from=1).learner
    replayer = Replayer(0, 0, Losses(losses), memory, settings, outliers)
    return [Made(*replayer.make(np.zeros(2, np.float32))).is_outlying for _ in losses]


def test_losses_far_above_the_usual_are_outlying():
    usual = np.random.default_rng(0).normal(10, 1, 300).clip(7.5, 12.5).tolist()
    losses = [*usual, 14.0, 100.0, *usual]
    assert [place for place, found in enumerate(judged(losses, 3.0)) if found] == [300, 301]
    assert not any(judged(losses, None))
    assert not any(judged([1e3, *losses[:50]], 1.0))  # too few to judge by


def test_a_new_level_becomes_usual():
    found = judged([1.0, 1.1] * 200 + [5.0, 5.1] * 300, 3.0)
    assert found[400]
    assert not any(found[500:])
