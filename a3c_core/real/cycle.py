"""A worker whose cycle is one compiled call: Python for each gradient would cost more than a short episode."""

import sys
from typing import Any, TypeGuard

import numpy as np

from a3c_core.config import RunConfig
from a3c_core.engines import actor_critic_kernels
from a3c_core.engines.base import Engine
from a3c_core.engines.compiled import CompiledEngine
from a3c_core.real.cycle_kernel import NUMBERS, Place, Player, work_on
from a3c_core.real.shared_memory import SharedArrays
from a3c_core.real.transport import SharedChannel
from a3c_core.streams import ONE_WORD, shared_actions
from a3c_core.system.system_calls import new_desk

_PIECES = np.int64(1000)  # of work in one call


def can_be_compiled(engine: Engine, config: RunConfig, channel: SharedChannel) -> TypeGuard[CompiledEngine]:
    """Return whether a worker does nothing in its cycle that compiled code can't."""
    if type(engine) is not CompiledEngine or type(channel) is not SharedChannel or sys.platform != "linux":
        return False
    single = config.agents_per_worker == 1 and not config.gradients.carries_parameters
    timely = not config.is_paced and not config.environment.wait_s
    small = config.seed < ONE_WORD
    return single and timely and small and isinstance(engine.settings, actor_critic_kernels.Settings)


class CompiledCycle:
    """Plays episode after episode; Python is needed where there is something to wait for."""

    def __init__(
        self, config: RunConfig, slot: int, episode: int, engine: CompiledEngine, arrays: SharedArrays, channel: Any
    ):
        self._channel = channel
        environment, size = engine.new_environment(), engine.model.spec.size
        environment.stream[:] = shared_actions(config.seed)
        ways = dict(zip(("own_streams", "own_actions", "resets"), environment.ways, strict=True))
        limits = {"steps_at_once": engine.steps_at_once, "max_steps": config.environment.max_episode_steps}
        self._numbers = np.zeros(1, NUMBERS)
        self._numbers["next_episode"], self._numbers["sent"] = episode, channel.sent
        self._player = Player(
            _record({"seed": config.seed, "worker": slot, **limits, **ways, **channel.settings()}),
            self._numbers,
            environment.game,
            environment.stream,
            entropy=np.zeros(6, np.uint32),
            words=np.zeros((2, 4), np.uint64),
            parameters=np.zeros(size, np.float32),
            gradient=np.zeros(size, np.float32),
            settings=engine.settings,
            buffers=engine.buffers,
            desk=new_desk(),
        )
        self._place = _place(arrays, slot)
        work_on(self._place, self._player, np.int64(0))  # loads or compiles it before anyone counts on this worker

    def work_on(self) -> None:
        """Work until there is something to wait for, and wait for it; raise Stopped when that is nothing any more."""
        need = work_on(self._place, self._player, _PIECES)
        numbers = self._numbers[0]
        self._channel.sent = int(numbers["sent"])
        self._channel.await_need(need, int(numbers["next_episode"]))


def _place(arrays: SharedArrays, slot: int) -> Place:
    own = arrays.slots[slot : slot + 1], arrays.messages[slot], arrays.episodes[slot, :, 0], arrays.gradients[slot]
    return Place(*own, arrays.inbox, arrays.versions, arrays.current, arrays.parameters)


def _record(numbers: dict[str, Any]) -> np.ndarray:
    """Return whole numbers as a record [1], which compiled code reads by their names."""
    return np.array([tuple(map(int, numbers.values()))], [(name, "i8") for name in numbers])
