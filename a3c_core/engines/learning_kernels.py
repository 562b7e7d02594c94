"""Compiled gradients of minibatches: what a learner of trajectories needs of the dense model."""

from typing import NamedTuple

import numpy as np

from a3c_core.engines.kernels import backward, forward, unpack
from a3c_core.games.flappy import STATE_SIZE
from a3c_core.system.jit import fast

_ZERO, _ONE = np.float32(0), np.float32(1)


class LearningSettings(NamedTuple):
    """The scalars of a loss, float32 unless said otherwise."""

    clips: bool  # whether the policy's loss is PPO's, or else that of an actor-critic
    clip: np.float32
    huber: bool
    value_coefficient: np.float32
    entropy_coefficient: np.float32


@fast
def log_probability(preference, flapped):
    """Return the logarithm of the action's probability, given the logit of action 1 less that of action 0."""
    log_p_1 = min(preference, _ZERO) - np.log1p(np.exp(-abs(preference)))
    return log_p_1 if flapped else log_p_1 - preference


@fast
def write_log_probabilities(preferences, actions, log_probabilities):
    """Write the logarithms [T] of the probabilities of `actions` [T]."""
    for t in range(actions.size):
        log_probabilities[t] = log_probability(preferences[t], actions[t] == 1)


@fast
def evaluate_batch(parameters, observations, actions, buffers, log_probabilities, values):
    """Write what the network says of N steps: the actions' log-probabilities, and the values."""
    unpack(parameters, buffers)
    for t in range(actions.size):
        for i in range(STATE_SIZE):
            buffers.observations[0, i] = observations[t, i]
        forward(buffers, 0)
        log_probabilities[t] = log_probability(buffers.preferences[0], actions[t] == 1)
        values[t] = buffers.values[0]


@fast
def batch_gradient(parameters, observations, actions, targets, rows, settings, buffers, gradient, log_probabilities):
    """Write the gradient [P] of the loss summed over the steps `rows` [n], and their actions' log-probabilities [n]."""
    unpack(parameters, buffers)
    for t in range(rows.size):
        for i in range(STATE_SIZE):
            buffers.observations[t, i] = observations[rows[t], i]
        forward(buffers, t)
        _write_errors(t, actions[rows[t]] == 1, targets[rows[t]], settings, buffers, log_probabilities)
    backward(rows.size, buffers, gradient)


@fast
def _write_errors(t, flapped, target, settings, buffers, log_probabilities):
    """Write d loss / d (logit 0, logit 1, value) of one step, and its action's log-probability."""
    preference = buffers.preferences[t]
    p_1 = _ONE / (_ONE + np.exp(-preference))
    log_p_1 = log_probability(preference, True)
    log_p = log_p_1 if flapped else log_p_1 - preference
    entropy = -(p_1 * log_p_1 + (_ONE - p_1) * (log_p_1 - preference))
    push = target[0]  # by how much the policy's loss falls with the action's log-probability
    if settings.clips:
        push *= target[3] * _slope(np.exp(log_p - target[2]), push, settings.clip)
    error = push * (p_1 - (_ONE if flapped else _ZERO)) + settings.entropy_coefficient * p_1 * (log_p_1 + entropy)
    value_error = target[1] - buffers.values[t]
    if settings.huber:
        value_error = min(max(value_error, -_ONE), _ONE)
    buffers.errors[t, 0] = -error  # two probabilities sum to one, so their logits' errors to zero
    buffers.errors[t, 1] = error
    buffers.errors[t, 2] = -settings.value_coefficient * value_error
    log_probabilities[t] = log_p


@fast
def _slope(ratio, advantage, clip):
    """Return the slope of PPO's bounded ratio: its own, or 0 where it has moved too far to the advantage's side."""
    too_far = ratio > _ONE + clip if advantage > _ZERO else ratio < _ONE - clip
    return _ZERO if too_far else ratio
