"""Compiled play and gradient of value methods: the dense model with one head of two action values, on Flappy Bird.

Parameters have the layout of the hidden layer and the policy in `actor_critic_kernels`. Where there is a target
network, its parameters follow in the same layout. Gradients of minibatches from a replay memory come last.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from a3c_core.algorithms.returns import discounted_returns
from a3c_core.engines.actor_critic_kernels import (
    BLOCK,
    HIDDEN_END,
    INPUTS,
    POLICY_BIAS,
    UNITS,
    add_product,
    aligned,
    observe,
)
from a3c_core.games.flappy import STATE_SIZE, step
from a3c_core.streams import uniform
from a3c_core.system.jit import fast

_ACTIONS = 2
_SIZE = POLICY_BIAS + _ACTIONS  # of the parameters
_NOT_CHOSEN = -1
_ZERO, _ONE, _TWO = np.float32(0), np.float32(1), np.float32(2)


class Settings(NamedTuple):
    """The scalars of a run, float32 unless said otherwise."""

    gamma: np.float32
    one_step: bool  # a return goes on with a value after one reward, or only at the end
    follows: bool  # with the value of the action that is taken there, or of the best one
    pixels: bool  # observations are not scaled
    reward_pipe: np.float32
    reward_death: np.float32
    reward_alive: np.float32
    reward_limit: np.float32  # rewards are clipped to it, above and below


class Buffers(NamedTuple):
    """Working memory for T steps, reused from rollout to rollout; float32 unless said otherwise."""

    observations: NDArray[np.float32]  # [T + 1, 9], the last input is the constant 1
    hidden: NDArray[np.float32]  # [T + 1, 128]
    action_values: NDArray[np.float32]  # [T + 1, 2]
    values: NDArray[np.float32]  # [T + 1], by the target network
    actions: NDArray[np.uint8]  # [T + 1]
    rewards: NDArray[np.float32]  # [T]
    errors: NDArray[np.float32]  # [T, 2], d loss / d action values
    hidden_errors: NDArray[np.float32]  # [BLOCK, 128], d loss / d hidden
    hidden_weights: NDArray[np.float32]  # [9, 128], the parameters' own
    heads: NDArray[np.float32]  # [2, 128]
    biases: NDArray[np.float32]  # [2]
    target_hidden_weights: NDArray[np.float32]  # [9, 128]
    target_heads: NDArray[np.float32]  # [2, 128]
    target_biases: NDArray[np.float32]  # [2]
    heads_gradient: NDArray[np.float32]  # [2, 128]
    epsilon: NDArray[np.float64]  # [1], given: how often to act at random
    chosen: NDArray[np.int64]  # [1], given and left: the action that was already chosen for the next step, or -1


def new_buffers(steps: int) -> Buffers:
    """Return working memory for rollouts of up to `steps` steps; what none has needed yet takes no real memory."""
    return Buffers(
        observations=aligned(steps + 1, INPUTS),
        hidden=aligned(steps + 1, UNITS),
        action_values=aligned(steps + 1, _ACTIONS),
        values=aligned(steps + 1),
        actions=np.zeros(steps + 1, np.uint8),
        rewards=aligned(steps),
        errors=aligned(steps, _ACTIONS),
        hidden_errors=aligned(BLOCK, UNITS),
        hidden_weights=aligned(INPUTS, UNITS),
        heads=aligned(_ACTIONS, UNITS),
        biases=aligned(_ACTIONS),
        target_hidden_weights=aligned(INPUTS, UNITS),
        target_heads=aligned(_ACTIONS, UNITS),
        target_biases=aligned(_ACTIONS),
        heads_gradient=aligned(_ACTIONS, UNITS),
        epsilon=np.zeros(1),
        chosen=np.full(1, _NOT_CHOSEN),
    )


@fast
def rollout(published, games, stream, steps_left, settings, buffers, gradient):
    """Play and differentiate into `gradient` [P]; return (steps, died, summed reward, summed loss, mean entropy)."""
    steps, died = play(published, games, stream, steps_left, settings, buffers)
    loss, entropy = differentiate(steps, died, settings, buffers, gradient)
    reward = 0.0
    for t in range(steps):
        reward += buffers.rewards[t]
    return steps, died, reward, loss, entropy


@fast
def play(published, games, stream, steps_left, settings, buffers):
    """Play up to `steps_left` steps of the one game in `games` [1]; return (steps, died), the buffers being written."""
    steps, died = explore(published[:_SIZE], games[0], stream, steps_left, settings, buffers)
    judge(published, 1 if settings.one_step else steps, steps, died, settings, buffers)
    return steps, died


@fast
def explore(parameters, game, stream, steps_left, settings, buffers):
    """Do what `play` does, without asking the target network."""
    unpack(parameters, buffers.hidden_weights, buffers.heads, buffers.biases)
    for t in range(steps_left):
        observe(game, settings.pixels, buffers.observations[t])
        forward(buffers, t)
        flap = _choose(stream, buffers, t)
        passed, died = step(game, flap)
        outcome = settings.reward_death if died else settings.reward_alive
        reward = settings.reward_pipe * np.float32(passed) + outcome
        buffers.rewards[t] = min(max(reward, -settings.reward_limit), settings.reward_limit)
        if died:
            return t + 1, True
    observe(game, settings.pixels, buffers.observations[steps_left])
    if settings.follows:
        forward(buffers, steps_left)
        buffers.chosen[0] = _choose(stream, buffers, steps_left)
    return steps_left, False


@fast
def _choose(stream, buffers, t):
    """Return whether to flap at step `t`: as was chosen before, or at random, or by the larger value."""
    if buffers.chosen[0] != _NOT_CHOSEN:
        flap = buffers.chosen[0] == 1
        buffers.chosen[0] = _NOT_CHOSEN
    elif uniform(stream) < buffers.epsilon[0]:
        flap = uniform(stream) >= 0.5
    else:
        flap = buffers.action_values[t, 1] > buffers.action_values[t, 0]
    buffers.actions[t] = flap
    return flap


@fast
def judge(published, first, steps, died, settings, buffers):
    """Write what the target network says of the states from number `first` on, the one after the last step included."""
    unpack(published[_SIZE:], buffers.target_hidden_weights, buffers.target_heads, buffers.target_biases)
    for t in range(first, steps if died else steps + 1):
        judge_one(settings.follows, buffers, t)
    if died:
        buffers.values[steps] = _ZERO


@fast
def evaluate(parameters, steps, buffers):
    """Write hidden units and action values of the first `steps` observations in the buffers."""
    unpack(parameters, buffers.hidden_weights, buffers.heads, buffers.biases)
    for t in range(steps):
        forward(buffers, t)


@fast(allocates=True)
def differentiate(steps, died, settings, buffers, gradient):
    """Write the gradient [P] of what the buffers hold; return (summed loss, mean entropy, of which there is none)."""
    rewards, values, errors = buffers.rewards[:steps], buffers.values, buffers.errors
    returns = discounted_returns(rewards, values[:steps], values[steps], settings.gamma, 1 if settings.one_step else 0)
    loss = 0.0
    for t in range(steps):
        action = buffers.actions[t]
        error = returns[t] - buffers.action_values[t, action]
        errors[t, action] = -_TWO * error
        errors[t, 1 - action] = _ZERO
        loss += np.float64(error * error)
    backward(steps, buffers, gradient)
    return loss, 0.0


@fast
def backward(steps, buffers, gradient):
    """Carry the heads' errors back: write the gradient [P], summed over the steps."""
    errors, heads_gradient = buffers.errors, buffers.heads_gradient
    gradient[:] = _ZERO
    heads_gradient[:] = _ZERO
    hidden_gradient = gradient[:HIDDEN_END].reshape((INPUTS, UNITS))
    for start in range(0, steps, BLOCK):
        stop = min(steps, start + BLOCK)
        _hidden_errors(buffers.heads, buffers.hidden[start:stop], errors[start:stop], buffers.hidden_errors)
        add_product(hidden_gradient, buffers.observations[start:stop], buffers.hidden_errors)
        add_product(heads_gradient, errors[start:stop], buffers.hidden[start:stop])
    for action in range(_ACTIONS):
        for j in range(UNITS):
            gradient[HIDDEN_END + _ACTIONS * j + action] = heads_gradient[action, j]
        for t in range(steps):
            gradient[POLICY_BIAS + action] += errors[t, action]


@fast
def _hidden_errors(heads, hidden, errors, out):
    """Write d loss / d hidden [n, 128], zero where the unit was off."""
    for t in range(hidden.shape[0]):
        e0, e1 = errors[t, 0], errors[t, 1]
        units, row = hidden[t], out[t]
        for j in range(UNITS):
            error = e0 * heads[0, j] + e1 * heads[1, j]
            row[j] = error if units[j] > _ZERO else _ZERO


@fast
def unpack(parameters, hidden_weights, heads, biases):
    """Copy a network into its buffers: hidden layer [9, 128], head, transposed, [2, 128], and biases [2]."""
    for i in range(INPUTS):
        for j in range(UNITS):
            hidden_weights[i, j] = parameters[i * UNITS + j]
    for j in range(UNITS):
        heads[0, j] = parameters[HIDDEN_END + 2 * j]
        heads[1, j] = parameters[HIDDEN_END + 2 * j + 1]
    biases[0] = parameters[POLICY_BIAS]
    biases[1] = parameters[POLICY_BIAS + 1]


@fast
def forward(buffers, t):
    """Write hidden units and action values of observation `t`. The inputs are unrolled so that LLVM vectorises."""
    observation, hidden = buffers.observations[t], buffers.hidden[t]
    w, heads = buffers.hidden_weights, buffers.heads
    o0, o1, o2, o3 = observation[0], observation[1], observation[2], observation[3]
    o4, o5, o6, o7 = observation[4], observation[5], observation[6], observation[7]
    observation[STATE_SIZE] = _ONE
    value_0 = value_1 = _ZERO
    for j in range(UNITS):
        unit = w[8, j] + o0 * w[0, j] + o1 * w[1, j] + o2 * w[2, j] + o3 * w[3, j]
        unit += o4 * w[4, j] + o5 * w[5, j] + o6 * w[6, j] + o7 * w[7, j]
        unit = max(unit, _ZERO)
        hidden[j] = unit
        value_0 += unit * heads[0, j]
        value_1 += unit * heads[1, j]
    buffers.action_values[t, 0] = value_0 + buffers.biases[0]
    buffers.action_values[t, 1] = value_1 + buffers.biases[1]


@fast
def judge_one(follows, buffers, t):
    """Write the target network's value of observation `t`.

    One function for both networks, with its arrays as arguments, took three times as long.
    """
    observation, w, heads = buffers.observations[t], buffers.target_hidden_weights, buffers.target_heads
    o0, o1, o2, o3 = observation[0], observation[1], observation[2], observation[3]
    o4, o5, o6, o7 = observation[4], observation[5], observation[6], observation[7]
    value_0 = value_1 = _ZERO
    for j in range(UNITS):
        unit = w[8, j] + o0 * w[0, j] + o1 * w[1, j] + o2 * w[2, j] + o3 * w[3, j]
        unit += o4 * w[4, j] + o5 * w[5, j] + o6 * w[6, j] + o7 * w[7, j]
        unit = max(unit, _ZERO)
        value_0 += unit * heads[0, j]
        value_1 += unit * heads[1, j]
    value_0, value_1 = value_0 + buffers.target_biases[0], value_1 + buffers.target_biases[1]
    taken = value_1 if buffers.actions[t] == 1 else value_0
    buffers.values[t] = taken if follows else max(value_0, value_1)


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
