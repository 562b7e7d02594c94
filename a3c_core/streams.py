"""Random streams that compiled code can draw from, seeded by NumPy.

Two generators: xoshiro256++ (Blackman & Vigna 2019) for training, where every (run, worker, episode) has a stream of
its own, and MT19937, which continues NumPy's legacy `RandomState` word for word, for playing PLE's very game.
"""

import numpy as np
from numpy.typing import NDArray

from a3c_core.jit import exact

MT_WORDS = 624


def stream_words(seed: int, *key: int) -> NDArray[np.uint64]:
    """Return uint64 [2, 4]: seeds of two independent streams (game, actions) that belong to `seed` and `key` alone."""
    words: NDArray[np.uint64] = np.random.SeedSequence(seed, spawn_key=key).generate_state(8, np.uint64)  # type: ignore[assignment]
    return words.reshape(2, 4)


@exact
def _rotate_left(word: np.uint64, bits: np.uint64) -> np.uint64:
    return (word << bits) | (word >> (np.uint64(64) - bits))


@exact
def next_word(stream):
    """Return the next 64 random bits of `stream` (uint64 [4], advanced in place)."""
    result = _rotate_left(stream[0] + stream[3], np.uint64(23)) + stream[0]
    shifted = stream[1] << np.uint64(17)
    stream[2] ^= stream[0]
    stream[3] ^= stream[1]
    stream[1] ^= stream[2]
    stream[0] ^= stream[3]
    stream[2] ^= shifted
    stream[3] = _rotate_left(stream[3], np.uint64(45))
    return result


@exact
def uniform(stream):
    """Return a float64 in [0, 1) with 53 random bits."""
    return (next_word(stream) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@exact
def _twist(words):
    for i in range(MT_WORDS):
        y = (words[i] & np.uint32(0x80000000)) | (words[(i + 1) % MT_WORDS] & np.uint32(0x7FFFFFFF))
        shifted = y >> np.uint32(1)
        if y & np.uint32(1):
            shifted ^= np.uint32(0x9908B0DF)
        words[i] = words[(i + 397) % MT_WORDS] ^ shifted


@exact
def next_legacy_word(words, position):
    """Return (uint32 word, new position) of the MT19937 state `words` (uint32 [624], advanced in place)."""
    if position >= MT_WORDS:
        _twist(words)
        position = 0
    y = words[position]
    y ^= y >> np.uint32(11)
    y ^= (y << np.uint32(7)) & np.uint32(0x9D2C5680)
    y ^= (y << np.uint32(15)) & np.uint32(0xEFC60000)
    y ^= y >> np.uint32(18)
    return y, position + 1
