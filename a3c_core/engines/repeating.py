"""An engine for workers that differentiate what they have played again and again, each time by newer parameters.

What is held of a piece of play, and how often it is still to be differentiated, is kept beside its environment, and
saved with it. Agents of one worker may be at different epochs: one that has waited for an episode has just begun.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from a3c_core.algorithms.base import Trajectory
from a3c_core.algorithms.dppo import DPPO
from a3c_core.algorithms.trajectories import batch_of
from a3c_core.engines.base import Play, Rollout
from a3c_core.engines.packing import Packing
from a3c_core.games.base import Spaces
from a3c_core.models.parameters import Vector
from a3c_core.progress import START, Progress

_HEADER = 3  # float64 numbers: gradients left, score, size of the packed trajectory


class Held(NamedTuple):
    """A piece of play that is still to be differentiated."""

    left: int  # gradients
    score: float  # at its end
    trajectory: Trajectory
    targets: NDArray[np.float32]  # [T, columns]


class Holding:
    """An environment with what is held of its agent's last piece of play."""

    def __init__(self, environment: Any, packing: Packing, columns: int):
        self.environment = environment
        self.held: Held | None = None
        self._packing, self._columns = packing, columns

    def begin_episode(self, seed: int, worker: int, episode: int) -> None:
        self.environment.begin_episode(seed, worker, episode)
        self.held = None

    def get_state(self) -> NDArray[np.uint8]:
        header, kept = np.zeros(_HEADER), []
        if self.held is not None:
            parcel = self._packing.pack([self.held.trajectory])
            header[:] = self.held.left, self.held.score, parcel.size
            kept = [parcel.view(np.uint8), self.held.targets.reshape(-1).view(np.uint8)]
        return np.concatenate([header.view(np.uint8), *kept, self.environment.get_state()])

    def set_state(self, state: NDArray[np.uint8]) -> None:
        header, state = np.split(state, [8 * _HEADER])
        left, score, size = np.frombuffer(header.tobytes())
        self.held = None
        if left:
            parcel, state = np.split(state, [4 * int(size)])
            (trajectory,) = self._packing.unpack(np.frombuffer(parcel.tobytes(), np.float32))
            targets, state = np.split(state, [4 * self._columns * trajectory.env_steps])
            columns = np.frombuffer(targets.tobytes(), np.float32).reshape(-1, self._columns)
            self.held = Held(int(left), float(score), trajectory, columns)
        self.environment.set_state(state)


class Repeating:
    """Lets the engine inside play and differentiate batches; what else is asked of an engine, that one answers."""

    def __init__(self, engine: Any, algorithm: DPPO, spaces: Spaces):
        """`engine`: one that serves a learner of trajectories with `algorithm.batches`."""
        self._engine, self._algorithm, self._packing = engine, algorithm, Packing(spaces)
        self.play_share = 0.5

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def new_environment(self) -> Holding:
        return Holding(self._engine.new_environment(), self._packing, self._algorithm.batches.target_columns)

    def play(self, published: Vector, environment: Holding, progress: Progress = START) -> Trajectory:
        """Play on, and hold nothing of it."""
        trajectory: Trajectory = self._engine.play(published, environment.environment, progress)
        return trajectory

    def rollout(self, published: Vector, environment: Holding, progress: Progress = START) -> Rollout:
        gradient, (play,) = self.rollout_together(published, [environment], progress)
        return Rollout(**vars(play), gradient=gradient)

    def rollout_together(
        self, published: Vector, environments: Sequence[Holding], progress: Progress = START
    ) -> tuple[Vector, Sequence[Play]]:
        """Return (the mean gradient over the steps of what all hold, the news of each).

        Those that hold nothing play first. A piece's steps, reward, loss and entropy are told with its first gradient,
        with the others none; the loss is that of the first. That its episode is over is told with the last.
        """
        began = time.perf_counter()
        plays = self._play(published, environments, progress)
        played = time.perf_counter()
        gradient, measured = self._differentiate(published, environments)
        self.play_share = (played - began) / (time.perf_counter() - began)
        told = [_count(one, play, measured) for one, play in zip(environments, plays, strict=True)]
        return gradient, told

    def _play(self, published: Vector, environments: Sequence[Holding], progress: Progress) -> list[Play | None]:
        """Let those that hold nothing play, side by side; return what they have played, and None for the others."""
        idle = [one for one in environments if one.held is None]
        news = iter(self._hold(published, idle, progress) if idle else ())
        return [next(news) if one in idle else None for one in environments]

    def _hold(self, published: Vector, idle: list[Holding], progress: Progress) -> list[Play]:
        """Let all of `idle` play and hold it, with targets as of one batch; return what each has played."""
        algorithm, inside = self._algorithm, [one.environment for one in idle]
        parcel, plays = self._engine.rollout_together(published, inside, progress)
        trajectories = self._packing.unpack(parcel)
        batch = batch_of(trajectories)
        targets = algorithm.batches.batch_targets(batch, lambda: self._engine.evaluate(published, batch))
        ends = np.cumsum(batch.lengths)[:-1]
        losses = np.split(algorithm.first_losses(batch, targets), ends)
        for one, *kept in zip(idle, plays, trajectories, np.split(targets, ends), strict=True):
            play, trajectory, its_targets = kept
            one.held = Held(algorithm.gradients_of_play, play.score, trajectory, its_targets)
        return [replace(play, loss=float(loss.sum())) for play, loss in zip(plays, losses, strict=True)]

    def _differentiate(self, published: Vector, environments: Sequence[Holding]) -> tuple[Vector, dict[str, float]]:
        """Return (mean gradient [P] over the steps of all that is held, what is measured there, if it is finite)."""
        algorithm, held = self._algorithm.batches, [one.held for one in environments if one.held is not None]
        batch = batch_of([one.trajectory for one in held])
        targets = np.concatenate([one.targets for one in held])
        rows = np.arange(batch.env_steps)
        gradient, log_probabilities = self._engine.batch_gradient(published, batch, targets, rows)
        measured = algorithm.measured(log_probabilities, batch, targets)
        named = dict(zip(algorithm.statistics, measured, strict=True)) if np.isfinite(measured).all() else {}
        return gradient / np.float32(batch.env_steps), named


def _count(environment: Holding, play: Play | None, measured: dict[str, float]) -> Play:
    """Count a gradient of what an environment holds, and let go of it after the last; return the news."""
    held = environment.held
    assert held is not None
    trajectory, is_last = held.trajectory, held.left == 1
    environment.held = None if is_last else held._replace(left=held.left - 1)
    if play is None:
        nothing = Play(0.0, 0.0, 0, 0.0, held.score, terminated=False, truncated=False)
        play = replace(nothing, repeated_steps=trajectory.env_steps)
    is_over = {"terminated": trajectory.terminated and is_last, "truncated": trajectory.truncated and is_last}
    return replace(play, **is_over, measured=measured)
