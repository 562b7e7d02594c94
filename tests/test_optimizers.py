"""Optimizers against Keras and against obvious NumPy; what they refuse; what they count."""

import math

import numpy as np
import pytest

from a3c_core.optimizers import Optimizer
from tests.learner_cases import relative_error

SIZE = 1539


@pytest.fixture
def parameters():
    return np.random.default_rng(0).normal(size=SIZE).astype(np.float32)


def gradients(count, seed=1):
    """Yield gradients that differ by a factor of a thousand from entry to entry, and of ten from one to the next."""
    random = np.random.default_rng(seed)
    scales = 10 ** random.uniform(-2, 1, SIZE)
    for _ in range(count):
        yield (random.normal(size=SIZE) * scales * 10 ** random.uniform(0, 1)).astype(np.float32)


def test_adam_is_that_of_keras_over_1000_updates(parameters):
    from a3c_core.system.tensorflow import import_tensorflow

    tf = import_tensorflow()
    import keras

    adam, variable = keras.optimizers.Adam(1e-3), tf.Variable(parameters)
    adam.build([variable])
    apply = tf.function(lambda gradient: adam.apply([gradient], [variable]))
    start, optimizer = parameters.copy(), Optimizer(SIZE, learning_rate=1e-3)
    for gradient in gradients(1000):
        optimizer.apply(parameters, gradient)
        apply(tf.constant(gradient))
    assert relative_error(parameters, variable.numpy()) < 1e-6
    assert np.linalg.norm(parameters - start) > 0.1


@pytest.mark.parametrize(
    ("settings", "epsilon", "decay"), [({}, 0.1, 0.99), ({"epsilon": 1e-3, "decay": 0.9}, 1e-3, 0.9)]
)
def test_rmsprop_is_the_shared_one_of_the_paper(parameters, settings, epsilon, decay):
    expected, mean_square = parameters.astype(np.float64), np.zeros(SIZE)
    optimizer = Optimizer(SIZE, "rmsprop", learning_rate=1e-2, **settings)
    for gradient in gradients(100):
        optimizer.apply(parameters, gradient)
        mean_square = decay * mean_square + (1 - decay) * np.float64(gradient) ** 2
        expected -= 1e-2 * gradient / np.sqrt(mean_square + epsilon)
    assert relative_error(parameters, expected) < 1e-6
    assert relative_error(optimizer.slots[0], mean_square) < 1e-6


def test_adams_epsilon_can_be_set(parameters):
    moved = parameters.copy()
    Optimizer(SIZE, learning_rate=1.0, epsilon=1.0).apply(moved, np.full(SIZE, 0.5, np.float32))
    # The first step is rate * g / (|g| + epsilon / sqrt(1 - beta_2)).
    assert relative_error(parameters - moved, np.full(SIZE, 0.5 / (0.5 + 1 / np.sqrt(0.001)))) < 1e-3


def test_sgd_is_plain(parameters):
    expected, optimizer = parameters.astype(np.float64), Optimizer(SIZE, "sgd", learning_rate=0.1)
    for gradient in gradients(10):
        optimizer.apply(parameters, gradient)
        expected -= 0.1 * np.float64(gradient)
    assert relative_error(parameters, expected) < 1e-6
    assert optimizer.slots.shape == (0, SIZE)


def test_annealing_falls_linearly_to_zero_over_the_run():
    parameters, one = np.zeros(1, np.float32), np.ones(1, np.float32)
    optimizer = Optimizer(1, "sgd", learning_rate=0.5, anneal=True)
    rates = [optimizer.apply(parameters, one, progress).learning_rate for progress in (0, 0, 0.25, 0.5, 0.75, 1, 1.1)]
    assert rates == [0.5, 0.5, 0.375, 0.25, 0.125, 0, 0]
    assert parameters[0] == -1.75


@pytest.mark.parametrize(("clip_norm", "expected"), [(None, [-3, -4]), (10.0, [-3, -4]), (2.5, [-1.5, -2])])
def test_clipping_shortens_a_gradient_and_keeps_its_direction(clip_norm, expected):
    parameters = np.zeros(2, np.float32)
    result = Optimizer(2, "sgd", learning_rate=1.0, clip_norm=clip_norm).apply(parameters, np.float32([3, 4]))
    assert parameters.tolist() == expected
    assert result.gradient_norm == 5


def test_gradient_of_zero_is_applied_and_changes_nothing():
    parameters = np.ones(3, np.float32)
    assert Optimizer(3, "sgd", clip_norm=1.0).apply(parameters, np.zeros(3, np.float32)).applied
    assert parameters.tolist() == [1, 1, 1]


@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["adam", "rmsprop", "sgd"])
def test_gradient_that_is_not_finite_is_refused_and_counted(poison, name, parameters):
    optimizer = Optimizer(SIZE, name)
    for gradient in gradients(3):
        optimizer.apply(parameters, gradient)
    before, slots = parameters.copy(), optimizer.slots.copy()
    (bad,) = gradients(1, seed=2)
    bad[SIZE // 2] = poison
    result = optimizer.apply(parameters, bad)
    assert not result.applied
    assert not math.isfinite(result.gradient_norm)
    assert (optimizer.updates, optimizer.rejected) == (3, 1)
    assert np.array_equal(parameters, before)
    assert np.array_equal(optimizer.slots, slots)


@pytest.mark.parametrize("name", ["adam", "rmsprop"])
def test_averages_of_a_silent_unit_never_become_denormal(name):
    parameters, optimizer = np.zeros(1, np.float32), Optimizer(1, name)
    optimizer.apply(parameters, np.ones(1, np.float32))
    for _ in range(8000):
        optimizer.apply(parameters, np.zeros(1, np.float32))
        assert not np.any((optimizer.slots != 0) & (np.abs(optimizer.slots) < np.finfo(np.float32).tiny))
    assert optimizer.slots[0, 0] == 0
