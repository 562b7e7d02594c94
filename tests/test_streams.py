"""Random streams: the same words as NumPy's SeedSequence gives, for every key."""

import numpy as np
import pytest

from a3c_core.streams import stream_words


def by_numpy(seed, *key):
    return np.random.SeedSequence(seed, spawn_key=key).generate_state(8, np.uint64).reshape(2, 4)


def test_words_are_those_of_numpy_over_many_keys():
    draws = np.random.default_rng(7)
    for _ in range(3000):
        bits = draws.integers(1, 33)
        seed, *key = (int(word) for word in draws.integers(0, 1 << bits, size=draws.integers(1, 6)))
        np.testing.assert_array_equal(stream_words(seed, *key), by_numpy(seed, *key))


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1, 2**32, 2**70])
@pytest.mark.parametrize("key", [(), (0,), (0, 0, 0), (2**32 - 1, 1), (2**32, 1), (1,) * 9])
def test_words_are_those_of_numpy_at_the_edges(seed, key):
    np.testing.assert_array_equal(stream_words(seed, *key), by_numpy(seed, *key))


def test_another_key_gives_other_words():
    seen = {stream_words(*key).tobytes() for key in [(0,), (1,), (0, 0), (0, 1), (0, 1, 0), (1, 0), (1, 0, 0)]}
    assert len(seen) == 7
