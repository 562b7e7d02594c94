"""One of Gorila's bundles as a process: an actor, its replay memory and its learner, in step.

To its worker it is an engine, whose gradients are of minibatches instead of what was just played.
"""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from a3c_core.config import RunConfig
from a3c_core.engines.base import Engine, Play, Rollout
from a3c_core.learners.replay import Replayer, ReplayMemory
from a3c_core.models.parameters import Vector
from a3c_core.progress import START, Progress


class Bundle:
    """Plays, remembers, and differentiates a minibatch. What others ask of an engine, the one inside answers."""

    def __init__(self, config: RunConfig, number: int, engine: Any):
        settings: Any = config.learner
        exchange: Any = config.exchange
        self._engine, self._size = engine, engine.model.spec.size
        self._memory = ReplayMemory(settings.memory_steps, engine.packing.spaces)
        self._replayer = Replayer(number, config.seed, engine, self._memory, settings, exchange.outliers)
        self.play_share = 0.5

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def rollout(self, published: Vector, environment: Any, progress: Progress = START) -> Rollout:
        gradient, (play,) = self.rollout_together(published, [environment], progress)
        return Rollout(**vars(play), gradient=gradient)

    def rollout_together(
        self, published: Vector, environments: Sequence[Any], progress: Progress = START
    ) -> tuple[Vector, Sequence[Play]]:
        began = time.perf_counter()
        experience, plays = self._engine.rollout_together(published[: self._size], environments, progress)
        played = time.perf_counter()
        for trajectory in self._engine.packing.unpack(experience):
            self._memory.add(trajectory)
        gradient = self._gradient(published)
        self.play_share = (played - began) / (time.perf_counter() - began)
        return gradient, plays

    def _gradient(self, published: Vector) -> Vector:
        """Return a gradient; where there is none yet, or its loss is outlying, one that will be rejected."""
        if self._replayer.may_learn:
            made = self._replayer.make(published)
            if not made.is_outlying:
                return made.gradient
        return np.full(self._size, np.nan, np.float32)


def bundled(config: RunConfig, number: int, engine: Engine) -> Engine:
    """Return the engine of worker `number`, which is a bundle where workers would hand over experience."""
    if config.topology != "gorila":
        return engine
    bundle: Any = Bundle(config, number, engine)
    its_engine: Engine = bundle
    return its_engine
