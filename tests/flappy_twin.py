"""Flappy Bird once more, slow and obvious, to check the compiled game against: PLE's rules in plain Python."""

import numpy as np


class Pipe:
    def __init__(self, x: float, gap_start: int):
        self.x, self.gap_start = x, gap_start

    @property
    def left(self) -> int:
        return int(self.x - 26)

    def overlaps_bird(self) -> bool:
        return set(range(self.left, self.left + 52)) & set(range(40, 74)) != set()

    def misses_gap(self, y: float) -> bool:
        return y <= self.gap_start or y + 24 > self.gap_start + 100


class PleStream:
    """PLE's random numbers: one legacy generator, which also picks colours at every reset."""

    def __init__(self, seed: int):
        self.random = np.random.RandomState(seed)
        self.random.rand()
        for _ in range(3):
            self.gap_start()

    def before_reset(self) -> None:
        for colours in (2, 3, 2):
            self.random.choice(colours)

    def gap_start(self) -> int:
        return int(self.random.randint(25, 193))


class EpisodeStream:
    """An episode's own random numbers: the upper halves of xoshiro256++, in Python's unbounded integers."""

    def __init__(self, words: np.ndarray):
        self.words = [int(word) for word in words]

    def gap_start(self) -> int:
        while True:
            value = (self._next() >> 32) % 256
            if value <= 192 - 25:
                return 25 + value

    def _next(self) -> int:
        a, b, c, d = self.words
        result = (_rotate(a + d, 23) + a) % 2**64
        c, d = c ^ a, d ^ b
        self.words = [a ^ d, b ^ c, c ^ (b << 17) % 2**64, _rotate(d, 45)]
        return result


def _rotate(word: int, bits: int) -> int:
    word %= 2**64
    return (word << bits | word >> (64 - bits)) % 2**64


class FlappyTwin:
    def __init__(self, stream: PleStream | EpisodeStream):
        self.stream = stream
        self.speed = 0.0
        self.reset()

    def reset(self) -> None:
        if isinstance(self.stream, PleStream):
            self.stream.before_reset()
        else:
            self.speed = 0.0
        self.y = 256.0
        self.flap_pending, self.thrusting = True, False
        self.pipes = [Pipe(x, self.stream.gap_start()) for x in (340.0, 484.0, 628.0)]

    def state(self) -> list[float]:
        ahead = sorted((pipe for pipe in self.pipes if pipe.x + 26 > 57), key=lambda pipe: pipe.x)
        numbers = [self.y, self.speed]
        for pipe in ahead[:2]:
            numbers += [pipe.x + 26 - 57, pipe.gap_start, pipe.gap_start + 100]
        return numbers

    def act(self, flap: bool) -> tuple[float, bool]:
        """Play a step and return (reward, whether the bird died)."""
        if flap and self.y > -48:
            self.speed, self.flap_pending = 0.0, True
        reward, dead = 0.0, False
        for pipe in self.pipes:
            inside = pipe.x - 46 <= 57 < pipe.x + 26
            if inside and any(other.overlaps_bird() and other.misses_gap(self.y) for other in self.pipes):
                dead = True
            if pipe.x - 26 <= 57 < pipe.x - 22:
                reward += 1
            if pipe.x < -52:
                pipe.x, pipe.gap_start = 288 + 52 + 288 * 0.2, self.stream.gap_start()
        if self.y >= 0.79 * 512 - 24 or self.y <= 0:
            dead = True
        self._move()
        return (reward - 5 if dead else reward), dead

    def _move(self) -> None:
        if self.speed < 10 and not self.thrusting:
            self.speed += 1
        if not self.thrusting and self.flap_pending:
            self.thrusting = True
            self.speed -= 9
        else:
            self.thrusting = self.flap_pending = False
        self.y += self.speed
        for pipe in self.pipes:
            pipe.x -= 4
