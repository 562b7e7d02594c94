"""Playing environments step by step in Python, for the engines that do not compile the game."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from a3c_core.algorithms.actor_critic import log_chosen
from a3c_core.algorithms.base import Algorithm, Trajectory
from a3c_core.engines.base import NOT_CHOSEN, chosen_action, memory_of
from a3c_core.games.base import Environment
from a3c_core.models.base import Outputs
from a3c_core.progress import Progress

LookAt = Callable[[Environment], Outputs]  # [size] of each head, for what an environment shows
LookAtAll = Callable[[Sequence[Environment]], Outputs]  # [B, size] of each head


def play_steps(look_at: LookAt, algorithm: Algorithm, environment: Environment, progress: Progress) -> Trajectory:
    """Return the trajectory of playing to the episode's end, or for as many steps as the algorithm plays at once."""
    record = _Record(algorithm, environment, progress)
    while not record.over and len(record.actions) != algorithm.steps_at_once:
        record.step(look_at(environment))
    if not record.terminated:
        record.cut_off(look_at(environment))
    return record.trajectory()


def play_together(
    look_at_all: LookAtAll,
    algorithm: Algorithm,
    environments: Sequence[Environment],
    progress: Progress,
) -> list[Trajectory]:
    """Return one trajectory per environment, stepped side by side; all that still play are looked at at once."""
    records = [_Record(algorithm, environment, progress) for environment in environments]
    playing = records
    while playing and len(playing[0].actions) != algorithm.steps_at_once:
        for record, outputs in zip(playing, _each(look_at_all, playing), strict=True):
            record.step(outputs)
        playing = [record for record in playing if not record.over]
    cut_short = [record for record in records if not record.terminated]
    if cut_short:
        for record, outputs in zip(cut_short, _each(look_at_all, cut_short), strict=True):
            record.cut_off(outputs)
    return [record.trajectory() for record in records]


def judged(trajectory: Trajectory, outputs: Outputs, algorithm: Algorithm) -> Trajectory:
    """Return the trajectory with values by a target network's `outputs`, [T, size] of each head, or [T + 1, size]."""
    actions = [*trajectory.actions.tolist(), trajectory.next_action]
    values = [
        _value(algorithm, each, action) for each, action in zip(zip(*outputs, strict=True), actions, strict=False)
    ]
    beyond = 0.0 if trajectory.terminated else values.pop()
    return replace(trajectory, values=np.array(values, np.float32), bootstrap_value=beyond)


class _Record:
    """What is written down while one environment is played."""

    def __init__(self, algorithm: Algorithm, environment: Environment, progress: Progress):
        self.environment = environment
        self._algorithm, self._progress = algorithm, progress
        self.observations: list[NDArray[Any]] = []
        self.actions: list[int] = []
        self.rewards: list[float] = []
        self.values: list[float] = []
        self.outputs: list[NDArray[Any]] = []  # of the first head, where trajectories are handed over
        self.bootstrap_value, self.next_action = 0.0, NOT_CHOSEN
        self._memory = memory_of(environment)
        self.terminated = self.truncated = False

    @property
    def over(self) -> bool:
        return self.terminated or self.truncated

    def step(self, outputs: Outputs) -> None:
        self.observations.append(self.environment.observation)
        self.actions.append(self._action(outputs))
        self.values.append(_value(self._algorithm, outputs, self.actions[-1]))
        if self._algorithm.hands_over == "trajectory":
            self.outputs.append(outputs[0])
        reward, self.terminated, self.truncated = self.environment.step(self.actions[-1])
        self.rewards.append(reward)

    def cut_off(self, outputs: Outputs) -> None:
        """Note what the state after the last step is worth, given its outputs; it was not the game's end."""
        if hasattr(self._algorithm, "value_of"):
            self.next_action = self._algorithm.act(outputs, self.environment.stream, self._progress)
            self.environment.chosen = NOT_CHOSEN if self.truncated else self.next_action
        self.bootstrap_value = _value(self._algorithm, outputs, self.next_action)

    def trajectory(self) -> Trajectory:
        return Trajectory(
            observations=np.stack(self.observations),
            actions=np.array(self.actions, np.int32),
            rewards=np.array(self.rewards, np.float32),
            values=np.array(self.values, np.float32),
            bootstrap_value=self.bootstrap_value,
            terminated=self.terminated,
            truncated=self.truncated,
            log_probabilities=log_chosen(np.stack(self.outputs), np.array(self.actions)) if self.outputs else None,
            next_observation=None if self.terminated else self.environment.observation,
            next_action=self.next_action,
            memory=self._memory,
        )

    def _action(self, outputs: Outputs) -> int:
        """Return the action that was chosen with the last piece of play, or else one that is chosen now."""
        chosen = chosen_action(self.environment)
        if chosen == NOT_CHOSEN:
            return self._algorithm.act(outputs, self.environment.stream, self._progress)
        self.environment.chosen = NOT_CHOSEN
        return chosen


def _value(algorithm: Algorithm, outputs: Outputs, action: int) -> float:
    value_of = getattr(algorithm, "value_of", None)
    return algorithm.value(outputs) if value_of is None else value_of(outputs, action)


def _each(look_at_all: LookAtAll, records: list[_Record]) -> list[Outputs]:
    """Return each record's outputs, [size] of each head, from one call for all of them."""
    outputs = look_at_all([record.environment for record in records])
    return list(zip(*outputs, strict=True))
