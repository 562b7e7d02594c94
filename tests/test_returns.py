"""Returns: special cases that can be checked by hand, and the twin for all others."""

import numpy as np
import pytest

from a3c_core.algorithms.returns import cut_returns, discounted_returns, learning_targets, standardised
from tests import learner_twin

REWARDS = np.array([1, 0, 0, 2, -5], np.float32)
VALUES = np.array([10, 20, 30, 40, 50], np.float32)


def found(rewards=REWARDS, values=VALUES, bootstrap_value=0.0, gamma=0.5, t_max=0):
    return discounted_returns(rewards, values, bootstrap_value, gamma, t_max).tolist()


def test_discount_of_zero_leaves_the_rewards():
    assert found(gamma=0.0) == REWARDS.tolist()


def test_discount_of_one_sums_what_is_left():
    assert found(gamma=1.0) == [-2, -3, -3, -3, -5]


@pytest.mark.parametrize(("bootstrap_value", "expected"), [(0.0, -5.0), (8.0, -1.0)])
def test_one_step_ends_in_death_or_goes_on_by_the_critic(bootstrap_value, expected):
    assert found(REWARDS[-1:], VALUES[-1:], bootstrap_value) == [expected]


def test_death_is_final_and_a_time_limit_is_not():
    death = [1 + 2 / 8 - 5 / 16, 2 / 4 - 5 / 8, 2 / 2 - 5 / 4, 2 - 5 / 2, -5]
    assert found() == death
    assert found(bootstrap_value=32.0) == [a + b for a, b in zip(death, [1, 2, 4, 8, 16], strict=True)]


def test_chunks_go_on_by_the_critic_inside_a_trajectory():
    assert found(t_max=2, bootstrap_value=4.0) == [1 + 30 / 4, 30 / 2, 1 + 50 / 4, 2 + 50 / 2, -5 + 2]
    assert found(t_max=1) == [1 + 10, 15, 20, 2 + 25, -5]


@pytest.mark.parametrize("t_max", [5, 6, 1000])
def test_chunk_no_shorter_than_the_trajectory_changes_nothing(t_max):
    assert found(t_max=t_max, bootstrap_value=4.0) == found(bootstrap_value=4.0)


@pytest.mark.parametrize("t_max", [0, 1, 7, 20, 99, 100, 101])
def test_twin_agrees(t_max):
    random = np.random.default_rng(t_max)
    rewards, values = random.normal(size=(2, 100)).astype(np.float32)
    fast = discounted_returns(rewards, values, 3.0, 0.99, t_max)
    assert fast.dtype == np.float32
    np.testing.assert_allclose(fast, learner_twin.returns(rewards, values, 3.0, 0.99, t_max), rtol=1e-5, atol=1e-5)


def test_standardised_returns_have_mean_0_and_deviation_1():
    result = standardised(np.array([1, 2, 3, 10], np.float32))
    assert result.mean() == pytest.approx(0, abs=1e-6)
    assert result.std() == pytest.approx(1, abs=1e-6)
    assert np.array_equal(np.argsort(result), [0, 1, 2, 3])


@pytest.mark.parametrize("steps", [1, 4])
def test_returns_that_are_all_alike_become_zero(steps):
    assert standardised(np.full(steps, 7, np.float32)).tolist() == [0] * steps


def test_targets_are_standardised_only_if_asked():
    arguments = REWARDS, VALUES, 0.0, True, 0.5, 0
    assert learning_targets(*arguments, False, False).tolist() == found()
    assert learning_targets(*arguments, True, False).std() == pytest.approx(1, abs=1e-6)


# An episode that was cut off


def long_flight(steps=3_000, seed=0):
    """Return (rewards [steps], their true returns [steps]) of an episode that ends in death."""
    rewards = (np.random.default_rng(seed).random(steps) < 0.03).astype(np.float32)
    rewards[-1] = -5
    return rewards, learner_twin.returns(np.float64(rewards), None, 0.0, 0.99, None)


@pytest.mark.parametrize("standardise", [False, True])
@pytest.mark.parametrize("cut_at", [40, 200, 1_000, 2_900, 2_999])
def test_a_cut_changes_no_target_if_the_critic_knows_the_true_return(cut_at, standardise):
    rewards, returns = long_flight()
    mean, deviation = (returns[:cut_at].mean(), returns[:cut_at].std()) if standardise else (0.0, 1.0)
    expected = (returns[:cut_at] - mean) / deviation
    known = (returns[cut_at] - mean) / deviation  # of the state after the cut
    values = expected.astype(np.float32)
    found = learning_targets(rewards[:cut_at], values, known, False, 0.99, 0, standardise, False)
    np.testing.assert_allclose(found, expected, atol=2e-5 * max(1.0, abs(expected).max()))


@pytest.mark.parametrize("value", [-3.0, -0.4, 0.0, 0.4, 3.0])
@pytest.mark.parametrize("steps", [2, 7, 60, 1_000])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.99])
def test_twin_agrees_on_the_returns_of_a_cut_episode(value, steps, gamma):
    rewards = np.random.default_rng(steps).normal(size=steps).astype(np.float32)
    bootstrap = learner_twin.raw_bootstrap(np.float64(rewards), value, np.float64(np.float32(gamma)))
    expected = learner_twin.returns(np.float64(rewards), None, bootstrap, np.float64(np.float32(gamma)), None)
    np.testing.assert_allclose(cut_returns(rewards, value, gamma), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("value", [0.0, 1.0, -1e3, 1e30, 1e200, np.inf, np.nan])
@pytest.mark.parametrize("gamma", [0.0, 0.99, 0.999999, 1.0])
@pytest.mark.parametrize("rewards", [[0.0], [1.0], [0, 0, 0], [1, 1, 1, 1], [1, 0, 0, 2, -5], [1.0] * 20_000])
def test_targets_of_a_cut_episode_are_finite(rewards, gamma, value):
    rewards = np.array(rewards, np.float32)
    found = learning_targets(rewards, rewards, value, False, gamma, 0, True, False)
    assert np.isfinite(found).all()
    if gamma == 0.99 and len(set(rewards.tolist())) == 1:  # as good as ever: nothing to tell one step from another
        assert abs(found).max() < 0.1
