"""A model: two hidden layers instead of one. All weights must be trained, and each output is a layer of its name."""

import keras


def build(spaces, outputs):
    """model: two_layers:build"""
    observations = hidden = keras.Input(spaces.observation_shape, dtype=spaces.observation_dtype)
    for units in (32, 32):
        hidden = keras.layers.Dense(units, activation="tanh", kernel_initializer="orthogonal")(hidden)
    heads = [keras.layers.Dense(size, name=name)(hidden) for name, size in outputs.items()]
    return keras.Model(observations, heads)
