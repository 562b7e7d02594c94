"""An environment with its agent's memory beside it: one begins with the other, and they are saved together."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from a3c_core.games.base import Environment

Memory = NDArray[np.float32]


class Remembering:
    """The environment and what the agent remembers of its episode, nothing at its start.

    Who looks at the environment says what would be remembered then, `next_memory`; it becomes the memory with the step
    that follows. So looking twice, as at the end of a piece and at the start of the next, does not count twice.
    """

    def __init__(self, environment: Environment, memory_shape: tuple[int, ...]):
        self._environment = environment
        self.memory: Memory = np.zeros(memory_shape, np.float32)  # never written to: trajectories hold on to it
        self.next_memory = self.memory

    @property
    def stream(self) -> NDArray[np.uint64]:
        return self._environment.stream

    @property
    def observation(self) -> NDArray[Any]:
        return self._environment.observation

    @property
    def score(self) -> float:
        return self._environment.score

    @property
    def chosen(self) -> int:
        return self._environment.chosen

    @chosen.setter
    def chosen(self, action: int) -> None:
        self._environment.chosen = action

    def begin_episode(self, seed: int, worker: int, episode: int) -> None:
        self._environment.begin_episode(seed, worker, episode)
        self.memory = self.next_memory = np.zeros_like(self.memory)

    def step(self, action: int) -> tuple[float, bool, bool]:
        """Play `action`; return (reward, terminated, truncated)."""
        self.memory = self.next_memory
        return self._environment.step(action)

    def get_state(self) -> NDArray[np.uint8]:
        return np.concatenate([np.frombuffer(self.memory.tobytes(), np.uint8), self._environment.get_state()])

    def set_state(self, state: NDArray[np.uint8]) -> None:
        ours = self.memory.nbytes
        self.memory = np.frombuffer(state[:ours].tobytes(), np.float32).reshape(self.memory.shape)
        self._environment.set_state(state[ours:])
