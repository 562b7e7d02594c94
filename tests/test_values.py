"""Value methods: gradients against finite differences, exact special cases, exploration, and engines that agree."""

from functools import cache

import numpy as np
import pytest

from a3c_core.algorithms import make_algorithm
from a3c_core.algorithms.base import Trajectory
from a3c_core.algorithms.values import ValueSettings
from a3c_core.build import make_engine, new_learner, parts_of
from a3c_core.config import RunConfig
from a3c_core.engines.python_rollout import judged
from a3c_core.learners.gradients import GradientLearner
from a3c_core.models.dense import DenseModel
from a3c_core.progress import Progress, worker_draw
from tests import value_twin
from tests.learner_cases import relative_error

ALGORITHMS = ("q", "sarsa", "n_step_q")
MODEL = DenseModel(heads=(("action_values", 2),))
GREEDY = {"epsilon_steps": 0, "final_epsilons": (0.0, 0.0, 0.0)}
CASES = ((1, True, "random"), (1, False, "random"), (7, True, "random"), (23, False, "random"), (6, False, "equal"))


@cache
def engine(name, algorithm, max_episode_steps=20_000, **learner):
    environment = {"max_episode_steps": max_episode_steps}
    return make_engine(RunConfig(engine=name, algorithm=algorithm, learner=learner, environment=environment))


def published(seed=0):
    """Return parameters and a target network that differ."""
    return np.concatenate([2 * MODEL.initial_parameters(seed), 2 * MODEL.initial_parameters(seed + 1)])


def case(algorithm, steps, terminated, kind, gamma):
    """Return (parameters, trajectory, goals): the last by the twin, from the target network's plain action values."""
    random = np.random.default_rng([steps, terminated])
    parameters, target = np.split(published(steps), 2)
    observations = random.uniform(-1, 1, (steps + 1, 8)).astype(np.float32)
    actions = random.integers(0, 2, steps + 1)
    rewards = random.normal(size=steps).astype(np.float32)
    if kind == "equal":
        observations[:], actions[:], rewards[:] = observations[0], 1, 0.5
    values = value_twin.action_values(target, observations)
    goals = value_twin.targets(algorithm, rewards, values, actions, gamma, terminated)
    beyond = (None, -1) if terminated else (observations[-1], int(actions[-1]))
    trajectory = Trajectory(
        observations[:-1], actions[:-1], rewards, np.zeros(steps), 0.0, terminated, not terminated, *beyond
    )
    seen = values[:-1] if terminated else values
    of_it = make_algorithm(algorithm, ValueSettings(gamma=gamma))
    return parameters, judged(trajectory, (seen.astype(np.float32),), of_it), goals


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_finite_differences_confirm_the_gradients_of_both_engines(algorithm):
    for steps, terminated, kind in CASES:
        parameters, trajectory, goals = case(algorithm, steps, terminated, kind, 0.99)
        inputs = trajectory.observations.astype(np.float64), trajectory.actions, goals
        expected, loss = value_twin.slopes(parameters, *inputs), value_twin.loss(parameters, *inputs)
        for name in ("compiled", "tensorflow"):
            gradient, its_loss, entropy = engine(name, algorithm).gradient(parameters, trajectory)
            assert relative_error(gradient, expected) < 1e-4, (name, steps, terminated, kind)
            assert its_loss == pytest.approx(loss, rel=1e-4)
            assert entropy == 0


def test_agreement_can_fail():
    """On the same play the three algorithms differ, and each heeds γ."""
    settings = [(algorithm, gamma) for algorithm in ALGORITHMS for gamma in (0.99, 0.5)]
    goals = [case(algorithm, 23, False, "random", gamma)[2] for algorithm, gamma in settings]
    for i, one in enumerate(goals):
        assert all(relative_error(one, other) > 1e-2 for other in goals[:i])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_without_a_future_targets_are_the_rewards(algorithm):
    for steps, terminated, kind in CASES:
        _, trajectory, goals = case(algorithm, steps, terminated, kind, 0.0)
        targets = make_algorithm(algorithm, ValueSettings(gamma=0.0)).targets(trajectory)
        assert np.array_equal(targets, trajectory.rewards)
        assert np.array_equal(np.float32(goals), trajectory.rewards)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_cut_goes_on_with_the_target_network_and_a_death_does_not(algorithm):
    for limit, dies in ((20, False), (20_000, True)):
        for name in ("compiled", "tensorflow"):
            one = engine(name, algorithm, limit, t_max=1_000)
            world = one.new_environment()
            world.begin_episode(0, 0, 0)
            trajectory = one.play(published(), world)
            assert (trajectory.terminated, trajectory.truncated) == (dies, not dies)
            assert (trajectory.bootstrap_value == 0) == dies


def play(engine, vector, episode, progress, environment=None):
    """Return the pieces of an episode."""
    world = environment or engine.new_environment()
    world.begin_episode(1, 0, episode)
    pieces = [engine.play(vector, world, progress)]
    while not (pieces[-1].terminated or pieces[-1].truncated):
        pieces.append(engine.play(vector, world, progress))
    return pieces


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("t_max", [5, 1_000])
def test_engines_play_identical_games(algorithm, t_max):
    for draw, env_steps in ((0.0, 0), (0.0, 10**9), (0.5, 10**9), (0.9, 10**9)):
        progress = Progress(0.5, env_steps, draw)
        for episode in range(6):
            games = [
                play(engine(name, algorithm, 200, t_max=t_max), published(episode), episode, progress)
                for name in ("compiled", "tensorflow")
            ]
            for one, other in zip(*games, strict=True):
                for field in ("observations", "actions", "rewards"):
                    assert np.array_equal(getattr(one, field), getattr(other, field)), field
                np.testing.assert_allclose(one.values, other.values, rtol=1e-4, atol=1e-5)
                assert one.bootstrap_value == pytest.approx(other.bootstrap_value, rel=1e-4, abs=1e-5)
                assert (one.terminated, one.truncated) == (other.terminated, other.truncated)


def test_engines_play_identical_games_as_the_published_code_sees_them():
    world = {"observation": "pixels", "seeding": "recreated", "actions": "shared", "max_episode_steps": 200}
    both = [RunConfig(engine=name, algorithm="sarsa", environment=world) for name in ("compiled", "tensorflow")]
    engines = [make_engine(config) for config in both]
    worlds = [engine.new_environment() for engine in engines]
    for episode in range(4):
        progress = Progress(0.5, 400_000, 0.5)
        games = [play(one, published(), episode, progress, own) for one, own in zip(engines, worlds, strict=True)]
        for one, other in zip(*games, strict=True):
            assert np.array_equal(one.observations, other.observations)
            assert np.array_equal(one.actions, other.actions)
            assert np.abs(one.observations).max() > 100  # pixels


@pytest.mark.parametrize("name", ["compiled", "tensorflow"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_rollout_is_play_and_gradient(name, algorithm):
    one, vector, progress = engine(name, algorithm, 60), published(3), Progress(0.5, 300_000, 0.9)
    pieces, world = play(one, vector, 4, progress), one.new_environment()
    world.begin_episode(1, 0, 4)
    for piece in pieces:
        gradient, loss, _ = one.gradient(vector[: MODEL.spec.size], piece)
        rollout = one.rollout(vector, world, progress)
        assert relative_error(rollout.gradient, gradient) < 1e-5
        assert rollout.loss == pytest.approx(loss, rel=1e-5)
        assert rollout.env_steps == piece.env_steps


def test_agents_side_by_side_play_and_learn_as_one_after_the_other():
    progress, vector = Progress(0.5, 300_000, 0.9), published(3)
    for algorithm in ALGORITHMS:
        one = engine("tensorflow", algorithm, 60)
        worlds = [one.new_environment() for _ in range(6)]
        for number, world in enumerate(worlds):
            world.begin_episode(1, 0, number % 3)
        for _ in range(3):
            gradient, plays = one.rollout_together(vector, worlds[:3], progress)
            singles = [one.rollout(vector, world, progress) for world in worlds[3:]]
            assert relative_error(gradient, np.sum([single.gradient for single in singles], axis=0)) < 1e-5
            assert [each.env_steps for each in plays] == [single.env_steps for single in singles]


@pytest.mark.parametrize("name", ["compiled", "tensorflow"])
def test_sarsa_takes_the_action_that_it_has_counted(name):
    """The next piece begins with it, whatever other parameters would say."""
    one, flapping = engine(name, "sarsa", t_max=1, **GREEDY), np.zeros(2 * MODEL.spec.size, np.float32)
    flapping[MODEL.spec.slices["action_values/bias"].stop - 1] = 1.0  # flapping is worth more, everywhere
    world = one.new_environment()
    world.begin_episode(0, 0, 0)
    for vector, action in ((flapping, 1), (-flapping, 1), (-flapping, 0), (flapping, 0), (flapping, 1)):
        assert one.play(vector, world).actions.tolist() == [action]


@pytest.mark.parametrize("name", ["compiled", "tensorflow"])
def test_greedy_sarsa_with_its_own_parameters_as_target_is_q(name):
    parameters = 2 * MODEL.initial_parameters(0)
    vector = np.concatenate([parameters, parameters])
    for episode in range(5):
        gradients = []
        for algorithm in ("q", "sarsa"):
            one = engine(name, algorithm, 100, **GREEDY)
            world = one.new_environment()
            world.begin_episode(0, 0, episode)
            rollouts = [one.rollout(vector, world)]
            while not rollouts[-1].episode_over:
                rollouts.append(one.rollout(vector, world))
            gradients.append([rollout.gradient for rollout in rollouts])
        assert np.array_equal(*gradients)


# Exploration and the target network


def test_each_worker_draws_its_own_final_epsilon():
    algorithm = make_algorithm("q", ValueSettings())
    found = [algorithm.epsilon(Progress(1.0, 10**9, worker_draw(0, worker))) for worker in range(4_000)]
    shares = {epsilon: found.count(epsilon) / 4_000 for epsilon in (0.1, 0.01, 0.5)}
    assert shares == pytest.approx({0.1: 0.4, 0.01: 0.3, 0.5: 0.3}, abs=0.03)
    assert sum(shares.values()) == 1
    assert found[:50] != [algorithm.epsilon(Progress(1.0, 10**9, worker_draw(1, worker))) for worker in range(50)]


def test_epsilon_falls_with_the_runs_env_steps():
    algorithm = make_algorithm("q", ValueSettings(epsilon_steps=1_000))
    found = [algorithm.epsilon(Progress(0.0, steps, 0.9)) for steps in (0, 500, 1_000, 5_000)]
    assert found == pytest.approx([1.0, 0.75, 0.5, 0.5])
    assert make_algorithm("q", ValueSettings(epsilon_steps=0)).epsilon(Progress(0.0, 0, 0.5)) == 0.01


def test_the_target_is_set_when_the_runs_steps_pass_a_multiple():
    learner = new_learner(RunConfig(algorithm="q", learner={"target_every": 100, "optimizer": "sgd"}))
    size = learner.parameters.size
    assert (learner.parcel_size, learner.publication.size) == (size, 2 * size)
    start, gradient = learner.parameters.copy(), np.ones(size, np.float32)
    ages = []
    for env_steps in (40, 99, 130, 199, 205):
        learner.receive(gradient, Progress(0.0, env_steps))
        ages.append(learner.statistics(Progress(0.0, env_steps, 0.5))["target_age"])
        fresh = np.array_equal(learner.publication[size:], learner.publication[:size])
        assert fresh == (env_steps in (130, 205))
        assert np.array_equal(learner.publication[size:], start) == (env_steps < 100)
    assert ages == [40, 99, 0, 69, 0]
    other = new_learner(RunConfig(algorithm="q", learner={"target_every": 100}))
    other.restore(*learner.save())
    assert np.array_equal(other.target, learner.target)
    assert other.target_set_at == 205


def test_a3c_publishes_its_parameters_alone():
    learner = new_learner(RunConfig())
    assert type(learner) is GradientLearner
    assert learner.publication is learner.parameters
    assert learner.save() == ({}, {})


# What does not fit


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_setting_of_another_algorithm_is_refused(algorithm):
    with pytest.raises(ValueError, match="standardise"):
        RunConfig(algorithm=algorithm, learner={"standardise": False})
    with pytest.raises(ValueError, match="target_every"):
        RunConfig(learner={"target_every": 5})


def test_engines_say_what_they_can_not_do():
    with pytest.raises(ValueError, match="report can't run this: it knows no target networks"):
        parts_of(RunConfig(algorithm="q", engine="report"))
    with pytest.raises(ValueError, match="128 units"):
        parts_of(RunConfig(algorithm="q", network={"units": 64}))
