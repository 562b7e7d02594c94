"""An agent's end of `ga3c`: it asks a predictor for every action, and hands over what it has played."""

import contextlib
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from a3c_core.build import parts_of
from a3c_core.config import RunConfig
from a3c_core.engines.base import OneAfterAnother, Rollout, play_of
from a3c_core.engines.packing import Packing
from a3c_core.engines.python_rollout import play_steps
from a3c_core.games.base import Environment
from a3c_core.models.base import Outputs
from a3c_core.models.parameters import Vector
from a3c_core.progress import START, Progress
from a3c_core.real.shared_memory import ANSWERED
from a3c_core.real.transport import SharedChannel, Stopped
from a3c_core.worker import Work

_NOTHING = np.empty(0, np.float32)


class AgentChannel(SharedChannel):
    """States to a predictor and its answers back, through the agent's slot; trajectories as others send gradients."""

    def __init__(self, *channel: Any, predictor: int):
        """`predictor`: descriptor whose other end wakes it."""
        super().__init__(*channel)
        self._predictor, self._asked = predictor, 0
        self.versions: list[int] = []  # that have answered since the last trajectory was begun

    def pull(self) -> tuple[int, Vector]:
        """Take nothing: an agent has no parameters."""
        self.versions = []
        return 0, _NOTHING

    def ask(self, observation: NDArray[Any]) -> Vector:
        """Return what a predictor says of an observation: the outputs of all heads."""
        if self._is_unwanted():
            raise Stopped
        number, slot = self._slot_number, self._slot
        self._arrays.states[number] = np.ascontiguousarray(observation).reshape(-1).view(np.uint8)
        self._asked += 1
        slot["asked"] = self._asked  # last: only now is the state the predictor's
        with contextlib.suppress(BlockingIOError):  # full: it has been rung for long enough
            os.write(self._predictor, b"!")
        self._wait(ANSWERED, lambda: slot["answered"] == self._asked)
        self.versions.append(int(self._arrays.answerers[number]))
        return self._arrays.answers[number].copy()

    def deliver(self, work: Work, version: int) -> None:
        """Hand over a trajectory, whose version is the oldest of its steps'."""
        super().deliver(work, min(self.versions))


class AskingEngine(OneAfterAnother):
    """Plays by what others predict."""

    sample_times, play_share, act_share = False, 1.0, 0.0

    def __init__(self, config: RunConfig, channel: AgentChannel):
        self._game, self.model, self._algorithm = parts_of(config)
        self._packing, self._channel = Packing(self._game.spaces), channel
        self._ends = np.cumsum([size for _, size in self.model.heads])[:-1]
        self._entropies: list[float] = []
        self._asked_s = 0.0  # spent on waiting for a predictor's answers, since a rollout began

    def new_environment(self) -> Environment:
        environment: Environment = self._game.new_environment()
        return environment

    def rollout(self, published: Vector, environment: Environment, progress: Progress = START) -> Rollout:
        began, self._asked_s, self._entropies = time.perf_counter(), 0.0, []
        trajectory = play_steps(self._predicted, self._algorithm, environment, progress)
        self.act_share = self._asked_s / (time.perf_counter() - began)
        steps = trajectory.env_steps
        versions = np.array(self._channel.versions[:steps], np.float32)  # the last may be of a bootstrap alone
        parcel = self._packing.pack([replace(trajectory, log_probabilities=versions)])
        play = play_of(trajectory, environment.score, 0.0, float(np.mean(self._entropies[:steps])))
        return Rollout(**vars(play), gradient=parcel)

    def _predicted(self, environment: Environment) -> Outputs:
        began = time.perf_counter()
        observation = np.asarray(environment.observation, self._game.spaces.observation_dtype)
        outputs: Sequence[Vector] = np.split(self._channel.ask(observation), self._ends)
        self._asked_s += time.perf_counter() - began
        self._entropies.append(_entropy(outputs[0]))
        return tuple(outputs)


def _entropy(policy_logits: Vector) -> float:
    exponentials = np.exp(policy_logits - policy_logits.max(), dtype=np.float64)
    policy = exponentials / exponentials.sum()
    return -float(np.sum(policy * np.log(np.maximum(policy, 1e-300))))
