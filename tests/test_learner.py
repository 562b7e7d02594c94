"""The gradient: compiled, TensorFlow, the report's way and the NumPy twin agree, and finite differences confirm it."""

from functools import cache
from itertools import product

import numpy as np
import pytest

from a3c_core.build import make_engine
from a3c_core.config import LearnerConfig, RunConfig
from a3c_core.models.dense import DenseModel
from tests import learner_twin
from tests.learner_cases import LONG_FLIGHT, made_up_trajectory, relative_error, trained_parameters

RETURNS = {
    "standardised": {"standardise": True},
    "full": {"standardise": False},
    "n-step": {"standardise": False, "t_max": 20},
}
TOLERANCE = 1e-4  # of the gradient's length: sums of up to 20,000 float32 numbers in different orders


def learner(returns="standardised", value_loss="huber", entropy=0.0, **settings):
    return LearnerConfig(**RETURNS[returns], value_loss=value_loss, entropy_coefficient=entropy, **settings)


@cache
def engine(name, settings):
    return make_engine(RunConfig(engine=name, learner=settings))


@cache
def case(steps, terminated):
    parameters = 2 * DenseModel().initial_parameters(steps)
    return parameters, made_up_trajectory(steps, terminated, parameters)


@pytest.mark.parametrize("returns", RETURNS)
@pytest.mark.parametrize("value_loss", ["huber", "squared"])
@pytest.mark.parametrize("entropy", [0.0, 0.05])
def test_engines_and_twin_agree(returns, value_loss, entropy):
    settings = learner(returns, value_loss, entropy)
    for steps, terminated in (*product((1, 2, 60, 1_000), (True, False)), (20_000, False)):  # there the limit cuts
        parameters, trajectory = case(steps, terminated)
        expected, loss, mean_entropy = learner_twin.gradient(learner_twin.weights(parameters), trajectory, settings)
        for name in ("compiled", "tensorflow"):
            found = engine(name, settings).gradient(parameters, trajectory)
            assert relative_error(found[0], expected) < TOLERANCE, (name, steps, terminated)
            assert found[1] == pytest.approx(loss, rel=1e-4, abs=1e-4 * steps)
            assert found[2] == pytest.approx(mean_entropy, abs=1e-5)


def test_agreement_can_fail():
    """Each setting matters, so an engine that overlooked one would be noticed."""
    parameters, trajectory = case(60, False)
    settings = [learner(), learner("full"), learner("n-step"), learner(value_loss="squared"), learner(entropy=0.05)]
    settings += [learner(gamma=0.9), learner(value_coefficient=0.5)]
    gradients = [engine("compiled", each).gradient(parameters, trajectory)[0] for each in settings]
    for i, one in enumerate(gradients):
        assert all(relative_error(one, other) > 100 * TOLERANCE for other in gradients[:i])


def test_finite_differences_confirm_the_gradient():
    settings = learner("n-step", entropy=0.05)
    parameters, trajectory = case(60, False)
    arrays = learner_twin.weights(parameters)
    goals = learner_twin.targets(trajectory, settings)
    advantages = goals - learner_twin.forward(arrays, trajectory.observations).values
    slopes = []
    for array in arrays:
        for index in np.ndindex(array.shape):
            kept, sides = array[index], []
            for side in (kept + 1e-6, kept - 1e-6):
                array[index] = side
                sides.append(learner_twin.loss(arrays, trajectory, goals, advantages, settings))
            array[index] = kept
            slopes.append((sides[0] - sides[1]) / 2e-6)
    assert relative_error(learner_twin.gradient(arrays, trajectory, settings)[0], slopes) < 1e-6


def test_real_flight_of_20000_steps():
    parameters, settings = trained_parameters(), learner(entropy=0.01)
    compiled = engine("compiled", settings)
    environment = compiled.new_environment()
    environment.begin_episode(*LONG_FLIGHT)
    rollout = compiled.rollout(parameters, environment)
    assert (rollout.env_steps, rollout.terminated, rollout.truncated) == (20_000, False, True)
    assert rollout.score > 500
    environment.begin_episode(*LONG_FLIGHT)
    trajectory = compiled.play(parameters, environment)
    assert trajectory.bootstrap_value != 0
    expected, loss, _ = learner_twin.gradient(learner_twin.weights(parameters), trajectory, settings)
    reference, *_ = engine("tensorflow", settings).gradient(parameters, trajectory)
    assert relative_error(rollout.gradient, expected) < TOLERANCE
    assert relative_error(reference, expected) < TOLERANCE
    assert rollout.loss == pytest.approx(loss, rel=1e-4)


@pytest.mark.parametrize("returns", ["standardised", "n-step"])
def test_the_reports_way_agrees_on_short_trajectories(returns):
    settings = learner(returns, entropy=0.05)
    for steps, terminated in ((1, True), (2, False), (60, True)):
        parameters, trajectory = case(steps, terminated)
        expected, loss, _ = learner_twin.gradient(learner_twin.weights(parameters), trajectory, settings)
        gradient, its_loss, _ = engine("report", settings).gradient(parameters, trajectory)
        assert relative_error(gradient, expected) < TOLERANCE
        assert its_loss == pytest.approx(loss, rel=1e-4)


def test_certain_policy_gives_a_finite_gradient():
    """Where a probability underflows to 0, its logarithm must not become infinite."""
    parameters, trajectory = case(60, True)
    parameters = parameters * np.float32(30)
    settings = learner("full", entropy=0.01)
    expected, loss, _ = learner_twin.gradient(learner_twin.weights(parameters), trajectory, settings)
    assert (
        np.exp(learner_twin.forward(learner_twin.weights(parameters), trajectory.observations).log_policy).min() < 1e-45
    )
    for name in ("compiled", "tensorflow"):
        gradient, its_loss, _ = engine(name, settings).gradient(parameters, trajectory)
        assert relative_error(gradient, expected) < TOLERANCE
        assert its_loss == pytest.approx(loss, rel=1e-4)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_one_worker_learns_to_fly(seed):
    from a3c_core.optimizers import Optimizer

    compiled, parameters = engine("compiled", LearnerConfig()), DenseModel().initial_parameters(seed)
    environment, optimizer, scores = compiled.new_environment(), Optimizer(parameters.size, "adam", 1e-3), []
    for episode in range(3_000):
        environment.begin_episode(seed, 0, episode)
        rollout = compiled.rollout(parameters, environment)
        optimizer.apply(parameters, rollout.gradient)
        scores.append(rollout.score)
    assert np.mean(scores[:500]) < 1
    assert np.mean(scores[-500:]) >= 15
