"""What parameters start from: functions of (shape, seed). Keras's `GlorotUniform` to the last bit, without TensorFlow.

Runs of the compiled engine start from the very numbers that Keras would draw, but need not pay TensorFlow's four
seconds and 700 MB for them. The generator is Philox4x32-10 (Salmon et al. 2011) with TensorFlow's key schedule; a
test holds it to Keras.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Initialiser = Callable[[tuple[int, ...], int], NDArray[np.float32]]

_MULTIPLIERS = np.array([0xD2511F53, 0xCD9E8D57], np.uint64)
_KEY_STEPS = np.array([0x9E3779B9, 0xBB67AE85], np.uint64)
_SCRAMBLING_KEY = np.array([0x3EC8F720, 0x02461E29], np.uint64)  # TensorFlow's, for turning a seed into a key
_LOW = np.uint64(0xFFFFFFFF)
_SEEDS = 2**31 - 2  # Keras takes a seed modulo this


def zeros(shape: tuple[int, ...], seed: int) -> NDArray[np.float32]:
    """Return zeros, whatever the seed."""
    return np.zeros(shape, np.float32)


def glorot_uniform(shape: tuple[int, ...], seed: int) -> NDArray[np.float32]:
    """Return what `keras.initializers.GlorotUniform(seed)` draws for a kernel: [..., inputs, outputs]."""
    *window, inputs, outputs = shape
    limit = math.sqrt(6.0 / (math.prod(window) * (inputs + outputs)))
    uniforms = _uniforms(_stateless_words(seed % _SEEDS, math.prod(shape)))
    low, high = np.float32(-limit), np.float32(limit)
    return (uniforms * (high - low) + low).reshape(shape)


def orthogonal(shape: tuple[int, ...], seed: int) -> NDArray[np.float32]:
    """Return what `keras.initializers.Orthogonal(seed)` draws for a kernel [inputs, outputs], but for rounding."""
    inputs, outputs = shape
    tall = max(shape), min(shape)
    normals = _normals(seed % _SEEDS, math.prod(shape)).reshape(tall)
    q, r = np.linalg.qr(normals)  # in float64, so that all machines round to the same float32
    q *= np.sign(np.diag(r))
    return (q.T if inputs < outputs else q).astype(np.float32)


def unit_forget(shape: tuple[int, ...], seed: int) -> NDArray[np.float32]:
    """Return the biases of an LSTM's gates, 0 but for the forget gates' 1: at first, everything is kept."""
    biases = np.zeros(shape, np.float32)
    units = shape[0] // 4  # the gates are in Keras's order: input, forget, cell, output
    biases[units : 2 * units] = 1
    return biases


def _normals(seed: int, count: int) -> NDArray[np.float64]:
    """Return float64 [count]: TensorFlow's stateless normal numbers, by Box and Muller's method."""
    uniforms = _uniforms(_stateless_words(seed, -(-count // 4) * 4)).astype(np.float64).reshape(-1, 2)
    radii = np.sqrt(-2 * np.log(np.maximum(uniforms[:, 0], 1e-7)))
    angles = 2 * np.pi * uniforms[:, 1]
    return np.stack([np.sin(angles) * radii, np.cos(angles) * radii], axis=1).ravel()[:count]


def _uniforms(words: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Return float32 numbers in [0, 1) made of 23 bits of each word."""
    mantissas = (words & np.uint32(0x7FFFFF)) | np.uint32(0x3F800000)
    return mantissas.view(np.float32) - np.float32(1.0)


def _stateless_words(seed: int, count: int) -> NDArray[np.uint32]:
    """Return uint32 [count]: TensorFlow's stateless stream for the seed pair (seed, 0)."""
    seed_counter = np.array([[seed, 0, 0, 0]], np.uint64)
    mixed = _philox(seed_counter, _SCRAMBLING_KEY)[0]
    blocks = -(-count // 4)
    counters = np.zeros((blocks, 4), np.uint64)
    counters[:, 0] = np.arange(blocks)
    counters[:, 2:] = mixed[2:]
    return _philox(counters, mixed[:2]).astype(np.uint32).ravel()[:count]


def _philox(counters: NDArray[np.uint64], key: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return uint64 [n, 4] (32 random bits each) for counters uint64 [n, 4] and a key uint64 [2]."""
    c0, c1, c2, c3 = counters.T
    k0, k1 = key
    for _ in range(10):
        product0, product1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (product1 >> 32) ^ c1 ^ k0, product1 & _LOW, (product0 >> 32) ^ c3 ^ k1, product0 & _LOW
        k0, k1 = (k0 + _KEY_STEPS[0]) & _LOW, (k1 + _KEY_STEPS[1]) & _LOW
    return np.stack([c0, c1, c2, c3], axis=1)
