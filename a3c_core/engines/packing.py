"""Trajectories as parcels: packed into one flat vector of float32, of as many numbers as they need, up to a capacity.

A parcel is the number of its trajectories, then of each: env steps, whether it was terminated or truncated, the value
of the state after its end, then its observations, and its actions, rewards, values and log-probabilities.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from a3c_core.algorithms.base import Trajectory
from a3c_core.games.base import Spaces
from a3c_core.models.parameters import Vector

_HEADER = 4  # steps, terminated, truncated, bootstrap value


class Packing:
    """How trajectories of a game are packed. Observations keep their type: four bytes of a picture make one float."""

    columns = 4  # actions, rewards, values, log-probabilities
    observations_beyond = 0  # after the last step

    def __init__(self, spaces: Spaces):
        self.spaces = spaces
        self._shape, self._dtype = spaces.observation_shape, np.dtype(spaces.observation_dtype)
        self._bytes = math.prod(self._shape) * self._dtype.itemsize  # of an observation
        self._floats = -(-self._bytes // 4)  # that it takes

    def capacity(self, agents: int, horizon: int) -> int:
        """Return how many numbers a parcel of `agents` trajectories takes, each of at most `horizon` steps."""
        return 1 + agents * self._size(horizon)

    def pack(self, trajectories: Sequence[Trajectory]) -> Vector:
        """Return trajectories as one vector, which belongs to the receiver."""
        parts: list[Any] = [[len(trajectories)]]
        for one in trajectories:
            parts.append([one.env_steps, one.terminated, one.truncated, one.bootstrap_value])
            parts += self._parts(one)
        return np.concatenate([np.asarray(part, np.float32) for part in parts])

    def unpack(self, parcel: Vector) -> list[Trajectory]:
        """Return the trajectories of a parcel, which may be longer than they need; they share its memory."""
        return [self._trajectory(parcel, start, steps) for start, steps in self._places(parcel)]

    def env_steps(self, parcel: Vector) -> int:
        """Return how many steps a parcel holds."""
        return sum(steps for _, steps in self._places(parcel))

    def without_rest(self, parcel: Vector) -> Vector:
        """Return a copy of a parcel that is no longer than its trajectories need."""
        start, steps = list(self._places(parcel))[-1]
        return parcel[: start + self._size(steps)].copy()

    def is_finite(self, parcel: Vector) -> bool:
        """Return whether all numbers of a parcel without rest are finite; bytes of pictures always are."""
        if self._dtype == np.float32:
            return bool(np.isfinite(parcel).all())
        names = ("rewards", "values", "log_probabilities", "observations", "bootstrap_value")
        return all(np.isfinite(getattr(one, name)).all() for one in self.unpack(parcel) for name in names)

    def _size(self, steps: int) -> int:
        return _HEADER + (steps + self.observations_beyond) * self._floats + steps * self.columns

    def _places(self, parcel: Vector) -> Iterator[tuple[int, int]]:
        """Yield where each trajectory begins, and its steps."""
        start = 1
        for _ in range(int(parcel[0])):
            steps = int(parcel[start])
            yield start, steps
            start += self._size(steps)

    def _trajectory(self, parcel: Vector, start: int, steps: int) -> Trajectory:
        begin, seen = start + _HEADER, steps + self.observations_beyond
        end = begin + seen * self._floats
        observations = self._as_observations(parcel[begin:end], seen)
        columns = parcel[end : end + steps * self.columns].reshape(self.columns, steps)
        return self._unpacked(observations, columns, parcel[start:begin].tolist())

    def _parts(self, one: Trajectory) -> list[Any]:
        """Return what a parcel holds of a trajectory after its header."""
        return [self._as_floats(one.observations), one.actions, one.rewards, one.values, one.log_probabilities]

    def _unpacked(self, observations: NDArray[Any], columns: Vector, header: Sequence[float]) -> Trajectory:
        _, terminated, truncated, bootstrap_value = header
        actions, rewards, values, log_probabilities = columns
        return Trajectory(
            observations=observations,
            actions=actions.astype(np.int32),
            rewards=rewards,
            values=values,
            bootstrap_value=bootstrap_value,
            terminated=bool(terminated),
            truncated=bool(truncated),
            log_probabilities=log_probabilities,
        )

    def _as_floats(self, observations: NDArray[Any]) -> Vector:
        if self._dtype == np.float32:
            return observations.ravel()
        steps = len(observations)
        kept = np.ascontiguousarray(observations, self._dtype).reshape(steps, -1).view(np.uint8)
        padded = np.zeros((steps, 4 * self._floats), np.uint8)
        padded[:, : self._bytes] = kept
        return padded.view(np.float32).ravel()

    def _as_observations(self, floats: Vector, steps: int) -> NDArray[Any]:
        if self._dtype == np.float32:
            return floats.reshape(steps, *self._shape)
        padded = floats.view(np.uint8).reshape(steps, 4 * self._floats)
        kept = np.ascontiguousarray(padded[:, : self._bytes]).view(self._dtype)
        return kept.reshape(steps, *self._shape)


class ExperiencePacking(Packing):
    """Trajectories with the observation after their last step, and without what the network said."""

    columns = 2  # actions, rewards
    observations_beyond = 1

    def _parts(self, one: Trajectory) -> list[Any]:
        beyond = np.zeros_like(one.observations[0]) if one.next_observation is None else one.next_observation
        return [self._as_floats(np.concatenate([one.observations, beyond[None]])), one.actions, one.rewards]

    def _unpacked(self, observations: NDArray[Any], columns: Vector, header: Sequence[float]) -> Trajectory:
        _, terminated, truncated, _ = header
        actions, rewards = columns
        beyond = None if terminated else observations[-1]
        unknown = np.zeros_like(rewards)
        numbers = observations[:-1], actions.astype(np.int32), rewards, unknown, 0.0
        return Trajectory(*numbers, bool(terminated), bool(truncated), beyond)


class Transitions(NamedTuple):
    """Steps, each with the state that followed."""

    observations: NDArray[Any]  # [n, ...]
    actions: NDArray[np.int32]  # [n]
    rewards: NDArray[np.float32]  # [n]
    next_observations: NDArray[Any]  # [n, ...]; zeros after the end
    goes_on: NDArray[np.float32]  # [n]: 0 where the game ended, else 1
