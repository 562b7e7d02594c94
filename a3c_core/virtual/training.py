"""What the trainers of `ga3c` share: trajectories that wait, and the batches that are made of them."""

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from a3c_core.algorithms.base import Trajectory
from a3c_core.engines.base import Engine
from a3c_core.episode_log import Parcel
from a3c_core.models.parameters import Vector
from a3c_core.runtime import Arrays


class Experience(NamedTuple):
    """A trajectory on its way to a trainer."""

    parcel: Parcel
    trajectory: Trajectory
    mean_version: float  # over its steps

    @property
    def steps(self) -> int:
        return self.trajectory.env_steps


class Training(NamedTuple):
    """A batch that a trainer has under way."""

    experiences: list[Experience]
    gradient: Vector

    @property
    def steps(self) -> int:
        """Of all its trajectories."""
        return sum(experience.steps for experience in self.experiences)


class Waiting:
    """Trajectories that wait for a trainer, oldest first."""

    def __init__(self) -> None:
        self._experiences: deque[Experience] = deque()
        self._losses: dict[int, float] = {}  # of episodes of which so far only pieces were taken, by worker
        self.steps = 0

    def __len__(self) -> int:
        return len(self._experiences)

    def append(self, experience: Experience) -> None:
        self._experiences.append(experience)
        self.steps += experience.steps

    def take(self, least: int, most: int) -> list[Experience]:
        """Return the oldest trajectories: just enough for `least` steps, and more while these are at most `most`."""
        taken, steps = [], 0
        while self._experiences and (steps < least or steps + self._experiences[0].steps <= most):
            taken.append(self._experiences.popleft())
            steps += taken[-1].steps
        self.steps -= steps
        return taken

    def learn(self, engine: Engine, parameters: Vector, taken: Sequence[Experience]) -> Training:
        """Return the gradient of a batch, summed over its trajectories, by the present parameters."""
        gradient = None
        for experience in taken:
            added, loss, _ = engine.gradient(parameters, experience.trajectory)
            gradient = added if gradient is None else gradient + added
            self._set_loss(experience.parcel, loss)
        assert gradient is not None
        return Training(list(taken), gradient)

    def _set_loss(self, parcel: Parcel, loss: float) -> None:
        """Note the loss of the episode that a parcel ends: only trainers know it, piece by piece."""
        loss += self._losses.pop(parcel.worker, 0.0)
        if not parcel.episodes:
            self._losses[parcel.worker] = loss
        parcel.episodes = tuple([episode._replace(loss=loss) for episode in parcel.episodes])

    def save(self, arrays: Arrays) -> dict[str, Any]:
        return {"experiences": save_experiences(list(self._experiences), "waiting", arrays), "losses": self._losses}

    def restore(self, numbers: dict[str, Any], arrays: Arrays) -> None:
        for experience in restore_experiences(numbers["experiences"], "waiting", arrays):
            self.append(experience)
        self._losses = {int(worker): loss for worker, loss in numbers["losses"].items()}


def save_experiences(experiences: Sequence[Experience], key: str, arrays: Arrays) -> list[Any]:
    """Return numbers for JSON; the steps go to `arrays`."""
    trajectories = [experience.trajectory for experience in experiences]
    if trajectories:
        columns = [np.stack((one.actions, one.rewards, one.values)).astype(np.float32) for one in trajectories]
        arrays[f"{key}_columns"] = np.concatenate(columns, axis=1)
        arrays[f"{key}_observations"] = np.concatenate([one.observations for one in trajectories])
    return [
        [one.parcel.save(), one.mean_version, one.steps, one.trajectory.bootstrap_value, one.trajectory.terminated]
        for one in experiences
    ]


def restore_experiences(saved: Sequence[Any], key: str, arrays: Arrays) -> list[Experience]:
    """Return what `save_experiences` saw."""
    experiences, start = [], 0
    for parcel, mean_version, steps, bootstrap_value, terminated in saved:
        rows = slice(start, start + steps)
        actions, rewards, values = arrays[f"{key}_columns"][:, rows]
        observations = np.array(arrays[f"{key}_observations"][rows])
        whole = observations, actions.astype(np.uint8), np.array(rewards), np.array(values), bootstrap_value, terminated
        restored = Parcel.restored(parcel)
        truncated = any(episode.truncated for episode in restored.episodes)
        experiences.append(Experience(restored, Trajectory(*whole, truncated), mean_version))
        start += steps
    return experiences
