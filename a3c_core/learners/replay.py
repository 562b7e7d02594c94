"""Experience: as a parcel, in a replay memory, and how one of Gorila's learners makes gradients of it.

A memory holds the latest steps that actors have handed over; each draw from it belongs to (seed, learner, gradient).
"""

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from a3c_core.algorithms.base import Trajectory
from a3c_core.engines.packing import ExperiencePacking, Transitions
from a3c_core.games.base import Spaces
from a3c_core.models.parameters import Vector
from a3c_core.streams import stream_words, uniform
from a3c_core.system.jit import exact

_DRAW_KEY = 3  # keeps the streams of draws apart from those of play, of costs and of minibatches
_KEPT = 0.99  # of the running averages of losses, by every further one
_JUDGED_FROM = 100  # losses seen before any counts as outlying


class ReplayMemory:
    """The latest steps, of any number of actors."""

    def __init__(self, steps: int, spaces: Spaces):
        shape, dtype = (steps, *spaces.observation_shape), spaces.observation_dtype
        self._steps = Transitions(  # zeros that nobody has written to take no memory
            np.zeros(shape, dtype),
            np.zeros(steps, np.int32),
            np.zeros(steps, np.float32),
            np.zeros(shape, dtype),
            np.zeros(steps, np.float32),
        )
        self.added = 0  # steps, ever

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    @property
    def capacity(self) -> int:
        """How many steps it holds at most."""
        return len(self._steps.actions)

    def add(self, trajectory: Trajectory) -> None:
        """Take a trajectory's steps over, in place of the oldest."""
        beyond = trajectory.next_observation
        last = np.zeros_like(trajectory.observations[0]) if beyond is None else beyond
        following = np.concatenate([trajectory.observations[1:], last[None]])
        goes_on = np.ones(trajectory.env_steps, np.float32)
        goes_on[-1] = not trajectory.terminated
        new = trajectory.observations, trajectory.actions, trajectory.rewards, following, goes_on
        rows = (self.added + np.arange(trajectory.env_steps)) % self.capacity
        for kept, values in zip(self._steps, new, strict=True):
            kept[rows] = values
        self.added += trajectory.env_steps

    def sample(self, steps: int | None, stream: NDArray[np.uint64]) -> Transitions:
        """Return so many steps, each drawn from all, or (None) all of them, the oldest first."""
        if steps is None:
            rows = (self.added - len(self) + np.arange(len(self))) % self.capacity
        else:
            rows = drawn(steps, len(self), stream)
        return Transitions._make(kept[rows] for kept in self._steps)

    def save(self) -> tuple[int, dict[str, NDArray[Any]]]:
        """Return (steps that were ever added, what it holds)."""
        return self.added, {name: kept[: len(self)] for name, kept in self._steps._asdict().items()}

    def restore(self, added: int, arrays: dict[str, NDArray[Any]]) -> None:
        self.added = added
        for name, kept in self._steps._asdict().items():
            kept[: len(self)] = arrays[name]


@exact(allocates=True)
def drawn(count, size, stream):
    """Return `count` whole numbers below `size`, drawn with replacement."""
    rows = np.empty(count, np.int64)
    for i in range(count):
        rows[i] = int(uniform(stream) * size)
    return rows


class ReplayEngine(Protocol):
    """What engines offer where actors hand over experience."""

    packing: ExperiencePacking

    def replay_gradient(self, published: Vector, batch: Transitions) -> tuple[Vector, float]:
        """Return (gradient of the summed loss [P], that loss) by what was published: parameters, target network."""
        ...


class ReplaySettings(Protocol):
    """What a learner needs of its algorithm's settings."""

    minibatch: int | None
    learn_from: int


class Made(NamedTuple):
    """A gradient, and what is known of it."""

    gradient: Vector
    loss: float  # mean per step
    is_outlying: bool


class Replayer:
    """One of Gorila's learners: draws from its memory, differentiates, and knows which losses are usual."""

    def __init__(
        self,
        number: int,
        seed: int,
        engine: ReplayEngine,
        memory: ReplayMemory,
        settings: ReplaySettings,
        outliers: float | None,
    ):
        """`outliers`: by how many standard deviations a loss may exceed the mean of those seen; None: by any."""
        self.number, self.memory, self.made = number, memory, 0
        self._seed, self._engine, self._settings, self._outliers = seed, engine, settings, outliers
        self._mean = self._square = 0.0  # running averages of losses and of their squares

    @property
    def may_learn(self) -> bool:
        """Whether there is enough in its memory."""
        return len(self.memory) >= min(self._settings.learn_from, self.memory.capacity)

    def make(self, published: Vector) -> Made:
        """Return the next gradient."""
        batch = self.memory.sample(
            self._settings.minibatch, stream_words(self._seed, self.number, self.made, _DRAW_KEY)[0]
        )
        gradient, loss = self._engine.replay_gradient(published, batch)
        return Made(gradient, loss / len(batch.actions), self._judge(loss / len(batch.actions)))

    def _judge(self, loss: float) -> bool:
        """Return whether a loss is outlying; from now on it counts among those seen, or nothing new would be usual."""
        deviation = math.sqrt(max(0.0, self._square - self._mean**2))
        judged = self._outliers is not None and self.made >= _JUDGED_FROM
        is_outlying = judged and loss > self._mean + (self._outliers or 0.0) * deviation
        kept = min(_KEPT, self.made / (self.made + 1))  # a plain mean to begin with
        if math.isfinite(loss):
            self._mean += (loss - self._mean) * (1 - kept)
            self._square += (loss * loss - self._square) * (1 - kept)
        self.made += 1
        return is_outlying

    def save(self) -> list[float]:
        """Return all but the memory, as numbers for JSON."""
        return [self.made, self._mean, self._square]

    def restore(self, numbers: list[float]) -> None:
        made, self._mean, self._square = numbers
        self.made = int(made)
