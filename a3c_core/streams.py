"""Random streams that compiled code can draw from, seeded by NumPy.

Two generators: xoshiro256++ (Blackman & Vigna 2019) for training, where every (run, worker, episode) has a stream of
its own, and MT19937, which continues NumPy's legacy `RandomState` word for word, for playing PLE's very game.
"""

import numpy as np
from numpy.typing import NDArray

from a3c_core.system.jit import exact

MT_WORDS = 624
_POOL = 4  # words of a SeedSequence's pool
ONE_WORD = 1 << 32  # seeds and keys below it are streams that compiled code can make
_MOST_KEYS = 8


def stream_words(seed: int, *key: int) -> NDArray[np.uint64]:
    """Return uint64 [2, 4]: seeds of two independent streams (game, actions) that belong to `seed` and `key` alone."""
    words = np.empty((2, 4), np.uint64)
    if seed < ONE_WORD and all(part < ONE_WORD for part in key) and len(key) <= _MOST_KEYS:
        write_words(np.array((seed, 0, 0, 0, *key), np.uint32), words)
    else:
        words[:] = np.random.SeedSequence(seed, spawn_key=key).generate_state(8, np.uint64).reshape(2, 4)
    return words


def shared_actions(seed: int) -> NDArray[np.uint64]:
    """Return uint64 [4], the seed of the one stream that all workers begin alike: that of forked processes.

    The published code draws actions from NumPy's global generator, and forks its workers, which inherit its state.
    """
    return stream_words(seed)[1]


@exact(allocates=True)
def write_words(entropy, words):
    """Write into `words` (uint64 [2, 4]) what NumPy's SeedSequence makes of `entropy` (uint32 [4 or more]).

    NumPy's own object takes 40 µs for it, twice as long as an untrained bird's episode. The constants and the order of
    operations are those of NumPy's `SeedSequence` (O'Neill's seed_seq_fe), which a test compares.
    """
    pool = np.empty(_POOL, np.uint32)
    constant = np.uint32(0x43B0D7E5)
    for i in range(_POOL):
        pool[i], constant = _hashed(entropy[i], constant, np.uint32(0x931E8875))
    for source in range(_POOL):
        for target in range(_POOL):
            if source != target:
                value, constant = _hashed(pool[source], constant, np.uint32(0x931E8875))
                pool[target] = _mixed(pool[target], value)
    for source in range(_POOL, entropy.size):
        for target in range(_POOL):
            value, constant = _hashed(entropy[source], constant, np.uint32(0x931E8875))
            pool[target] = _mixed(pool[target], value)
    constant = np.uint32(0x8B51F9DD)
    flat = words.reshape(8)
    for i in range(8):
        low, constant = _hashed(pool[2 * i % _POOL], constant, np.uint32(0x58F38DED))
        high, constant = _hashed(pool[(2 * i + 1) % _POOL], constant, np.uint32(0x58F38DED))
        flat[i] = np.uint64(low) | (np.uint64(high) << np.uint64(32))


@exact
def _hashed(value, constant, multiplier):
    """Return (hashed value, next constant), all uint32."""
    value = np.uint32(value ^ constant)
    constant = np.uint32(constant * multiplier)
    value = np.uint32(value * constant)
    return np.uint32(value ^ (value >> np.uint32(16))), constant


@exact
def _mixed(x, y):
    """Return uint32: two words as one."""
    result = np.uint32(np.uint32(x * np.uint32(0xCA01F9DD)) - np.uint32(y * np.uint32(0x4973F715)))
    return np.uint32(result ^ (result >> np.uint32(16)))


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
def shuffle(items, stream):
    """Bring `items` [N] into a random order, in place (Fisher & Yates)."""
    for i in range(items.size - 1, 0, -1):
        j = int(uniform(stream) * (i + 1))
        items[i], items[j] = items[j], items[i]


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
