"""The predictors of `ga3c` with real processes: threads of the master's process, each with a share of the slots."""

import contextlib
import os
import select
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from a3c_core.build import make_engine, parts_of
from a3c_core.config import RunConfig
from a3c_core.games.base import Spaces
from a3c_core.models.base import Outputs
from a3c_core.models.parameters import Vector
from a3c_core.real.local_pool import LocalPool
from a3c_core.real.shared_memory import ANSWERED, SharedArrays, SharedBlock
from a3c_core.real.worker import why
from a3c_core.real.worker_manager import RunFailed

_LOOK_S = 0.1  # between two looks, if nobody rings


class Predictor:
    """Answers all agents of its slots who wait, together, by the parameters that were published last."""

    def __init__(
        self,
        outputs: Callable[[Vector, NDArray[Any]], Outputs],
        spaces: Spaces,
        arrays: SharedArrays,
        slots: NDArray[np.intp],
        most: int,
        wake: Callable[[int], None],
    ):
        """`outputs`: of observations [B, ...]; `most`: states answered together; `wake`: wakes the agent of a slot."""
        self._outputs, self._spaces, self._arrays = outputs, spaces, arrays
        self._slots, self._most, self._wake = slots, most, wake
        self._published = np.empty(arrays.parameters.shape[1], np.float32)
        self._bell, self.button = os.pipe()
        for descriptor in (self._bell, self.button):
            os.set_blocking(descriptor, False)
        self.error: str | None = None  # that ended it
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="a3c-predictor", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it; nobody may ask any more."""
        self._is_stopping = True
        with contextlib.suppress(BlockingIOError):
            os.write(self.button, b"!")
        self._thread.join()
        for descriptor in (self._bell, self.button):
            os.close(descriptor)

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._bell, select.POLLIN)
        try:
            while not self._is_stopping:
                if poll.poll(_LOOK_S * 1000):
                    os.read(self._bell, 65_536)
                while (asking := self._asking()).size:
                    self._answer(asking[: self._most])
        except Exception as error:  # the run must not go on without it
            self.error = why(error)

    def _asking(self) -> NDArray[np.intp]:
        rows = self._arrays.slots
        return self._slots[rows["asked"][self._slots] != rows["answered"][self._slots]]

    def _answer(self, slots: NDArray[np.intp]) -> None:
        arrays, rows = self._arrays, self._arrays.slots
        asked = rows["asked"][slots]
        version = arrays.read_latest(self._published)
        states = arrays.states[slots].view(self._spaces.observation_dtype)
        observations = states.reshape(len(slots), *self._spaces.observation_shape)
        arrays.answers[slots] = np.concatenate(self._outputs(self._published, observations), axis=1)
        arrays.answerers[slots] = version
        rows["answered"][slots] = asked  # last: only now is the answer the agent's
        for slot in slots[rows["waiting"][slots] == ANSWERED].tolist():
            rows["waiting"][slot] = 0
            self._wake(slot)


class AgentPool(LocalPool):
    """Agents on this machine, and the predictors whom they ask."""

    def __init__(self, config: RunConfig, block: SharedBlock):
        super().__init__(config, block)
        self._lock = threading.Lock()  # predictors wake agents that the master may be clearing away
        exchange: Any = config.exchange
        slots, spaces = np.arange(len(block.arrays.slots)), parts_of(config).game.spaces
        given = [slots[number :: exchange.predictors] for number in range(exchange.predictors)]
        self._predictors = [
            Predictor(outputs_of(config), spaces, block.arrays, share, exchange.predict_max, self.wake)
            for share in given
            if share.size
        ]

    def look(self) -> None:
        """Give up if a predictor has ended: its agents would wait for ever."""
        for predictor in self._predictors:
            if predictor.error is not None:
                raise RunFailed(f"a predictor has ended: {predictor.error}")

    def wake(self, slot: int) -> None:
        with self._lock:
            if slot in self.members:
                super().wake(slot)

    def remove(self, slot: int) -> None:
        with self._lock:
            super().remove(slot)

    def close(self) -> None:
        super().close()
        for predictor in self._predictors:
            predictor.close()

    def button_of(self, slot: int) -> int:
        return self._predictors[slot % len(self._predictors)].button


def outputs_of(config: RunConfig) -> Callable[[Vector, NDArray[Any]], Outputs]:
    """Return the network as a function of (parameters, observations [B, ...]), for one thread."""
    model = parts_of(config).model
    if model.numpy_forward(model.initial_parameters(config.seed)) is None:
        engine: Any = make_engine(config)
        outputs: Callable[[Vector, NDArray[Any]], Outputs] = engine.outputs
        return outputs

    def outputs_by_numpy(parameters: Vector, observations: NDArray[Any]) -> Outputs:
        forward: Any = model.numpy_forward(parameters)
        answers: Outputs = forward(observations)
        return answers

    return outputs_by_numpy
