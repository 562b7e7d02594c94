"""Working memory of the compiled engine's kernels, which lies in one array and is seen as many."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from a3c_core.games.flappy import STATE_SIZE
from a3c_core.machine.jit import compilable

UNITS = 128
INPUTS = STATE_SIZE + 1  # the last is the constant 1 that carries the bias
_HEADS = 3  # logit of action 0, logit of action 1, value
BLOCK = 64  # steps whose hidden errors stay in the first-level cache


class Buffers(NamedTuple):
    """Working memory for T steps, reused from rollout to rollout; float32 unless said otherwise."""

    observations: NDArray[np.float32]  # [T + 1, 9]
    hidden: NDArray[np.float32]  # [T + 1, 128]
    preferences: NDArray[np.float32]  # [T + 1], logit of action 1 less that of action 0
    values: NDArray[np.float32]  # [T + 1], the last is what returns are bootstrapped from
    actions: NDArray[np.uint8]  # [T]
    rewards: NDArray[np.float32]  # [T]
    errors: NDArray[np.float32]  # [T, 3], d loss / d heads
    hidden_errors: NDArray[np.float32]  # [BLOCK, 128], d loss / d hidden
    heads: NDArray[np.float32]  # [3, 128]
    biases: NDArray[np.float32]  # [3]
    heads_gradient: NDArray[np.float32]  # [3, 128]


def new_buffers(steps: int) -> Buffers:
    """Return working memory for rollouts of up to `steps` steps; what none has needed yet takes no real memory."""
    return buffers_in(new_memory(steps), steps)


def new_memory(steps: int) -> NDArray[np.float32]:
    """Return where `buffers_in` finds working memory for rollouts of up to `steps` steps."""
    by_step = UNITS + INPUTS + 2 + 1 + _HEADS + 1  # as they follow each other there; the last has the actions' bytes
    return np.zeros((steps + 1) * by_step + (BLOCK + 2 * _HEADS) * UNITS + _HEADS, np.float32)


@compilable
def buffers_in(memory, steps):
    """Return the working memory that lies in one array: to hand over each of its parts takes Python far longer."""
    rows = steps + 1
    hidden_errors_at = rows * UNITS
    heads_at = hidden_errors_at + BLOCK * UNITS
    gradient_at = heads_at + _HEADS * UNITS
    observations_at = gradient_at + _HEADS * UNITS
    preferences_at = observations_at + rows * INPUTS
    values_at = preferences_at + rows
    rewards_at = values_at + rows
    errors_at = rewards_at + steps
    biases_at = errors_at + steps * _HEADS
    actions_at = biases_at + _HEADS
    return Buffers(
        memory[observations_at:preferences_at].reshape((rows, INPUTS)),
        memory[:hidden_errors_at].reshape((rows, UNITS)),
        memory[preferences_at:values_at],
        memory[values_at:rewards_at],
        memory[actions_at : actions_at + rows].view(np.uint8)[:steps],
        memory[rewards_at:errors_at],
        memory[errors_at:biases_at].reshape((steps, _HEADS)),
        memory[hidden_errors_at:heads_at].reshape((BLOCK, UNITS)),
        memory[heads_at:gradient_at].reshape((_HEADS, UNITS)),
        memory[biases_at:actions_at],
        memory[gradient_at:observations_at].reshape((_HEADS, UNITS)),
    )
