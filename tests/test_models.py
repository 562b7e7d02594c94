"""The models: their flat vector and Keras's variables are the same thing."""

import numpy as np
import pytest

from a3c_core.models import MODELS
from a3c_core.models.base import heads_network
from a3c_core.models.conv import ConvModel
from a3c_core.models.dense import DenseModel
from a3c_core.models.initialisers import glorot_uniform
from a3c_core.models.lstm import LstmModel
from a3c_core.system.tensorflow import import_tensorflow


@pytest.fixture(scope="module")
def keras():
    import_tensorflow()  # which sets its thread limits
    import keras

    return keras


@pytest.mark.parametrize("seed", [0, 1, 24, 2**31 - 3, 2**31 - 2, 2**32 - 1])
@pytest.mark.parametrize("shape", [(8, 128), (128, 2), (128, 1), (3, 5), (1, 1), (8, 8, 4, 16)])
def test_glorot_is_that_of_keras_to_the_last_bit(seed, shape, keras):
    expected = keras.initializers.GlorotUniform(seed)(shape).numpy()
    assert glorot_uniform(shape, seed).tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    "model",
    [
        DenseModel(),
        DenseModel((4,), (("policy_logits", 3), ("value", 1)), units=16),
        DenseModel((4,), (("action_values", 2),)),
        ConvModel(),
        ConvModel((60, 44, 1)),
        LstmModel(),
        LstmModel((84, 84, 1), units=16, hidden=24),
    ],
)
def test_spec_names_the_variables_of_keras_in_order(model, keras):
    variables = model.build().trainable_variables
    assert {variable.path: tuple(variable.shape) for variable in variables} == dict(model.spec.shapes)
    assert [variable.path for variable in variables] == list(model.spec.shapes)


def test_keras_reads_and_writes_the_flat_vector(keras):
    model, network = DenseModel(), DenseModel().build()
    flat = np.random.default_rng(0).normal(size=model.spec.size).astype(np.float32)
    network.set_weights(list(model.spec.views(flat).values()))
    names = list(model.spec.shapes)
    assert np.array_equal(model.spec.flatten(dict(zip(names, network.get_weights(), strict=True))), flat)


def test_views_share_memory_and_refuse_another_size():
    spec, flat = DenseModel().spec, np.zeros(DenseModel().spec.size, np.float32)
    spec.views(flat)["value/bias"][0] = 7
    assert flat[-1] == 7
    with pytest.raises(ValueError, match="flat vector of 1539 parameters, got shape"):
        spec.views(flat[1:])


def test_numpy_forward_is_that_of_keras(keras):
    model, network = DenseModel(), DenseModel().build()
    parameters = 3 * model.initial_parameters(5)
    network.set_weights(list(model.spec.views(parameters).values()))
    observations = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    heads, (policies, values) = heads_network(model), (output.numpy() for output in network(observations))
    heads.set_weights(network.get_weights())
    logits = heads(observations)[0].numpy()
    forward = model.numpy_forward(parameters)
    for t, observation in enumerate(observations):
        found, value = forward(observation)
        np.testing.assert_allclose(found, logits[t], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(np.exp(found) / np.exp(found).sum(), policies[t], rtol=1e-5)
        assert value[0] == pytest.approx(values[t, 0], rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("name", MODELS.names())
def test_initial_parameters_belong_to_the_seed(name):
    model = MODELS.get(name)()
    assert np.array_equal(model.initial_parameters(3), model.initial_parameters(3))
    first, second = model.spec.views(model.initial_parameters(3)), model.spec.views(model.initial_parameters(4))
    for name in model.spec.shapes:
        assert np.array_equal(first[name], second[name]) == name.endswith("bias")
        assert first[name].any() != name.endswith("bias") or name == "lstm/bias"  # whose forget gates start at 1


def test_layers_of_one_model_start_from_different_numbers():
    model = DenseModel((128,), (("policy_logits", 1), ("value", 1)))
    views = model.spec.views(model.initial_parameters(0))
    assert not np.array_equal(views["policy_logits/kernel"], views["value/kernel"])
