"""Working memory of the compiled engine's kernels, which lies in one array and is seen as many."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from a3c_core.games.flappy import STATE_SIZE
from a3c_core.system.jit import compilable

UNITS = 128
INPUTS = STATE_SIZE + 1  # the last is the constant 1 that carries the bias
_HEADS = 3  # logit of action 0, logit of action 1, value
BLOCK = 16  # steps whose hidden units and errors stay in the first-level cache; a multiple of add_product's eight
_LINE = 16  # float32 in a line of the cache


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
    hidden_weights: NDArray[np.float32]  # [9, 128], the parameters' own
    heads: NDArray[np.float32]  # [3, 128], those of both heads, transposed
    biases: NDArray[np.float32]  # [3]
    hidden_gradient: NDArray[np.float32]  # [9, 128]
    heads_gradient: NDArray[np.float32]  # [3, 128]


def aligned(*shape: int) -> NDArray[np.float32]:
    """Return zeros whose first is the first of a line of the cache.

    A vector of numbers that lies across two lines is loaded twice: that costs a third of a forward or backward pass.
    """
    size = math.prod(shape)
    memory = np.zeros(size + _LINE, np.float32)
    start = -(memory.ctypes.data // memory.itemsize) % _LINE
    return memory[start : start + size].reshape(shape)


def new_buffers(steps: int) -> Buffers:
    """Return working memory for rollouts of up to `steps` steps; what none has needed yet takes no real memory."""
    return buffers_in(new_memory(steps), steps)


def new_memory(steps: int) -> NDArray[np.float32]:
    """Return where `buffers_in` finds working memory for rollouts of up to `steps` steps."""
    by_step = INPUTS + 2 + 1 + _HEADS + 1  # as they follow each other there; the last has the actions' bytes
    return aligned(_rows_of_units(steps) * UNITS + (steps + 1) * by_step + _HEADS)


@compilable
def _rows_of_units(steps):
    return steps + 1 + BLOCK + 2 * (INPUTS + _HEADS)


@compilable
def buffers_in(memory, steps):
    """Return the working memory that lies in one array: to hand over each of its parts takes Python far longer.

    Rows of 128 come first, cut from one table: to reshape takes compiled code far longer than to cut.
    """
    rows = steps + 1
    hidden_errors_at = rows
    weights_at = hidden_errors_at + BLOCK
    heads_at = weights_at + INPUTS
    gradient_at = heads_at + _HEADS
    heads_gradient_at = gradient_at + INPUTS
    observations_at = _rows_of_units(steps) * UNITS
    preferences_at = observations_at + rows * INPUTS
    values_at = preferences_at + rows
    rewards_at = values_at + rows
    errors_at = rewards_at + steps
    biases_at = errors_at + steps * _HEADS
    actions_at = biases_at + _HEADS
    units = memory[:observations_at].reshape((_rows_of_units(steps), UNITS))
    return Buffers(
        memory[observations_at:preferences_at].reshape((rows, INPUTS)),
        units[:rows],
        memory[preferences_at:values_at],
        memory[values_at:rewards_at],
        memory[actions_at : actions_at + rows].view(np.uint8)[:steps],
        memory[rewards_at:errors_at],
        memory[errors_at:biases_at].reshape((steps, _HEADS)),
        units[hidden_errors_at:weights_at],
        units[weights_at:heads_at],
        units[heads_at:gradient_at],
        memory[biases_at:actions_at],
        units[gradient_at:heads_gradient_at],
        units[heads_gradient_at:],
    )
