"""Compiled gradients of minibatches from a replay memory: the dense model with one head of two action values."""

from typing import NamedTuple

import numpy as np

from a3c_core.engines.kernels import POLICY_BIAS
from a3c_core.engines.value_kernels import backward, forward, judge_one, unpack
from a3c_core.games.flappy import STATE_SIZE
from a3c_core.system.jit import fast

_SIZE = POLICY_BIAS + 2  # of the parameters
_ZERO, _ONE, _TWO = np.float32(0), np.float32(1), np.float32(2)


class ReplaySettings(NamedTuple):
    """The scalars of a loss."""

    gamma: np.float32
    double: bool  # the network chooses the action that the target network values
    huber: bool


@fast
def replay_gradient(published, batch, settings, buffers, gradient):
    """Write the gradient [P] of the loss summed over the steps of `batch`, a Transitions; return that loss."""
    unpack(published[:_SIZE], buffers.hidden_weights, buffers.heads, buffers.biases)
    unpack(published[_SIZE:], buffers.target_hidden_weights, buffers.target_heads, buffers.target_biases)
    loss = 0.0
    for t in range(batch.actions.size):
        _write_value(batch.next_observations[t], settings.double, buffers, t)
        for i in range(STATE_SIZE):
            buffers.observations[t, i] = batch.observations[t, i]
        forward(buffers, t)
        goal = batch.rewards[t] + settings.gamma * (buffers.values[t] * batch.goes_on[t])
        action = batch.actions[t]
        error = goal - buffers.action_values[t, action]
        loss += np.float64(_loss(error, settings.huber))
        pull = min(max(error, -_ONE), _ONE) if settings.huber else error
        buffers.errors[t, action] = -_TWO * pull
        buffers.errors[t, 1 - action] = _ZERO
    backward(batch.actions.size, buffers, gradient)
    return loss


@fast
def _write_value(observation, double, buffers, t):
    """Write the target network's value of an observation, of its own best action or of the network's."""
    for i in range(STATE_SIZE):
        buffers.observations[t, i] = observation[i]
    if double:
        forward(buffers, t)
        buffers.actions[t] = buffers.action_values[t, 1] > buffers.action_values[t, 0]
    judge_one(double, buffers, t)


@fast
def _loss(error, huber):
    size = abs(error)
    return _TWO * size - _ONE if huber and size > _ONE else error * error
