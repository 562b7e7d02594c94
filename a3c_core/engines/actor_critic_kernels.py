"""Compiled play and gradient of the dense model on Flappy Bird: the arithmetic of the `compiled` engine.

Layout: parameters stand as in Keras, [8, 128] and [128] of the hidden layer (read as one [9, 128], the bias being the
weight of a constant ninth input), then [128, 2] and [2] of the policy, then [128, 1] and [1] of the value. The two
heads are transposed once per rollout to [3, 128], so that every inner loop runs over the 128 units and becomes vector
instructions. First come the buffers, then play and its gradient, then gradients of minibatches of trajectories.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from a3c_core.algorithms.returns import learning_targets
from a3c_core.games.flappy import STATE_SIZE, step, write_observation
from a3c_core.games.published import write_pixels
from a3c_core.streams import uniform
from a3c_core.system.jit import compilable, fast

UNITS = 128
INPUTS = STATE_SIZE + 1  # the last is the constant 1 that carries the bias
_HEADS = 3  # logit of action 0, logit of action 1, value
BLOCK = 16  # steps whose hidden units and errors stay in the first-level cache; a multiple of add_product's eight
_LINE = 16  # float32 in a line of the cache
HIDDEN_END = INPUTS * UNITS
POLICY_BIAS = HIDDEN_END + 2 * UNITS
_VALUE_BIAS = POLICY_BIAS + 2 + UNITS
_ZERO, _HALF, _ONE = np.float32(0), np.float32(0.5), np.float32(1)


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


class Settings(NamedTuple):
    """The scalars of a run, float32 unless said otherwise."""

    gamma: np.float32
    t_max: int  # chunk of the n-step returns; 0: to the episode's end
    standardise: bool
    stretched: bool  # discounts by the trajectory's length, as published
    pixels: bool  # observations are not scaled
    huber: bool
    value_coefficient: np.float32
    entropy_coefficient: np.float32
    reward_pipe: np.float32
    reward_death: np.float32
    reward_alive: np.float32
    reward_limit: np.float32  # rewards are clipped to it, above and below


_KINDS = {np.float32: "f4", int: "i8", bool: "?"}
_LENGTHS = ("at_once", "i8"), ("longest", "i8")  # steps of a rollout and of an episode, at most
HANDED = np.dtype([(name, _KINDS[kind]) for name, kind in Settings.__annotations__.items()] + [*_LENGTHS])


@fast
def rollout_on(parameters, games, stream, episode_steps, handed, memory, gradient):
    """Do what `rollout` does, and go on with the count of the episode's steps [1], for Python, which hands over less.

    `handed`: HANDED [1], the settings and lengths; `memory`: see `buffers_in`. Return (steps, died, whether the time
    limit ended the episode, its score so far, summed reward, summed loss, mean entropy).
    """
    if parameters.strides[0] != parameters.itemsize:
        raise ValueError("parameters must lie in memory one behind the other")
    given, begun = handed[0], episode_steps[0]
    settings = Settings(
        given.gamma,
        given.t_max,
        given.standardise,
        given.stretched,
        given.pixels,
        given.huber,
        given.value_coefficient,
        given.entropy_coefficient,
        given.reward_pipe,
        given.reward_death,
        given.reward_alive,
        given.reward_limit,
    )
    buffers, steps_left = buffers_in(memory, given.at_once), min(given.at_once, given.longest - begun)
    steps, died, reward, loss, entropy = rollout(parameters, games, stream, steps_left, settings, buffers, gradient)
    episode_steps[0] = begun + steps
    truncated = not died and begun + steps >= given.longest
    return steps, died, truncated, float(games[0].score), reward, loss, entropy


@fast
def rollout(parameters, games, stream, steps_left, settings, buffers, gradient):
    """Play and differentiate into `gradient` [P]; return (steps, died, summed reward, summed loss, mean entropy)."""
    steps, died = play(parameters, games, stream, steps_left, settings, buffers)
    loss, entropy = differentiate(steps, died, settings, buffers, gradient)
    reward = 0.0
    for t in range(steps):
        reward += buffers.rewards[t]
    return steps, died, reward, loss, entropy


@fast
def play(parameters, games, stream, steps_left, settings, buffers):
    """Play up to `steps_left` steps of the one game in `games` [1]; return (steps, died), the buffers being written."""
    game = games[0]
    unpack(parameters, buffers)
    for t in range(steps_left):
        observe(game, settings.pixels, buffers.observations[t])
        forward(buffers, t)
        probability_0 = _ONE / (_ONE + np.exp(buffers.preferences[t]))
        flap = uniform(stream) >= probability_0
        passed, died = step(game, flap)
        buffers.actions[t] = flap
        outcome = settings.reward_death if died else settings.reward_alive
        reward = settings.reward_pipe * np.float32(passed) + outcome
        buffers.rewards[t] = min(max(reward, -settings.reward_limit), settings.reward_limit)
        if died:
            buffers.values[t + 1] = _ZERO
            return t + 1, True
    observe(game, settings.pixels, buffers.observations[steps_left])
    forward(buffers, steps_left)
    return steps_left, False


@fast
def observe(game, pixels, observation):
    """Write what the game shows to `observation` [9], but for the constant: in pixels, or scaled."""
    if pixels:
        write_pixels(game, observation)
    else:
        write_observation(game, observation)


@fast
def evaluate(parameters, steps, buffers):
    """Write hidden units, preferences and values of the first `steps` observations in the buffers."""
    unpack(parameters, buffers)
    for t in range(steps):
        forward(buffers, t)


@fast(allocates=True)
def differentiate(steps, died, settings, buffers, gradient):
    """Write the gradient [P] of what the buffers hold; return (summed loss, mean entropy)."""
    returns = learning_targets(
        buffers.rewards[:steps],
        buffers.values[:steps],
        buffers.values[steps],
        died,
        settings.gamma,
        settings.t_max,
        settings.standardise,
        settings.stretched,
    )
    loss, entropy = _head_errors(returns, settings, buffers)
    backward(steps, buffers, gradient)
    return loss, entropy


@fast
def backward(steps, buffers, gradient):
    """Carry the heads' errors back: write the gradient [P], summed over the steps."""
    errors, hidden_gradient, heads_gradient = buffers.errors, buffers.hidden_gradient, buffers.heads_gradient
    hidden_gradient[:] = _ZERO
    heads_gradient[:] = _ZERO
    for start in range(0, steps, BLOCK):
        stop = min(steps, start + BLOCK)
        _hidden_errors(buffers.heads, buffers.hidden[start:stop], errors[start:stop], buffers.hidden_errors)
        add_product(hidden_gradient, buffers.observations[start:stop], buffers.hidden_errors)
        add_product(heads_gradient, errors[start:stop], buffers.hidden[start:stop])
    for i in range(INPUTS):
        for j in range(UNITS):
            gradient[i * UNITS + j] = hidden_gradient[i, j]
    for j in range(UNITS):
        gradient[HIDDEN_END + 2 * j] = heads_gradient[0, j]
        gradient[HIDDEN_END + 2 * j + 1] = heads_gradient[1, j]
        gradient[POLICY_BIAS + 2 + j] = heads_gradient[2, j]
    bias_0 = bias_1 = value_bias = _ZERO  # summed in registers, not in the gradient
    for t in range(steps):
        bias_0 += errors[t, 0]
        bias_1 += errors[t, 1]
        value_bias += errors[t, 2]
    gradient[POLICY_BIAS], gradient[POLICY_BIAS + 1], gradient[_VALUE_BIAS] = bias_0, bias_1, value_bias


@fast
def unpack(parameters, buffers):
    """Copy the parameters into the buffers, both heads transposed."""
    for i in range(INPUTS):
        for j in range(UNITS):
            buffers.hidden_weights[i, j] = parameters[i * UNITS + j]
    for j in range(UNITS):
        buffers.heads[0, j] = parameters[HIDDEN_END + 2 * j]
        buffers.heads[1, j] = parameters[HIDDEN_END + 2 * j + 1]
        buffers.heads[2, j] = parameters[POLICY_BIAS + 2 + j]
    buffers.biases[0] = parameters[POLICY_BIAS]
    buffers.biases[1] = parameters[POLICY_BIAS + 1]
    buffers.biases[2] = parameters[_VALUE_BIAS]


@fast
def forward(buffers, t):
    """Write hidden units, preference and value of observation `t`. The inputs are unrolled so that LLVM vectorises."""
    observation, hidden = buffers.observations[t], buffers.hidden[t]
    w, heads = buffers.hidden_weights, buffers.heads
    o0, o1, o2, o3 = observation[0], observation[1], observation[2], observation[3]
    o4, o5, o6, o7 = observation[4], observation[5], observation[6], observation[7]
    observation[STATE_SIZE] = _ONE
    logit_0 = logit_1 = value = _ZERO
    for j in range(UNITS):
        unit = w[8, j] + o0 * w[0, j] + o1 * w[1, j] + o2 * w[2, j] + o3 * w[3, j]
        unit += o4 * w[4, j] + o5 * w[5, j] + o6 * w[6, j] + o7 * w[7, j]
        unit = max(unit, _ZERO)
        hidden[j] = unit
        logit_0 += unit * heads[0, j]
        logit_1 += unit * heads[1, j]
        value += unit * heads[2, j]
    buffers.preferences[t] = (logit_1 + buffers.biases[1]) - (logit_0 + buffers.biases[0])
    buffers.values[t] = value + buffers.biases[2]


@fast
def _head_errors(returns, settings, buffers):
    """Write d loss / d (logit 0, logit 1, value) [steps, 3]; return (summed loss, mean entropy)."""
    c_value, c_entropy = settings.value_coefficient, settings.entropy_coefficient
    loss = 0.0
    entropy_sum = 0.0
    for t in range(returns.size):
        preference = buffers.preferences[t]
        odds_0 = np.exp(-preference)
        p_1 = _ONE / (_ONE + odds_0)
        smaller_odds = odds_0 if preference >= _ZERO else np.exp(preference)  # mostly known: that spares a call
        log_p_1 = min(preference, _ZERO) - np.log1p(smaller_odds)
        log_p_0 = log_p_1 - preference
        entropy = -(p_1 * log_p_1 + (_ONE - p_1) * log_p_0)
        flapped = buffers.actions[t] == 1
        advantage = returns[t] - buffers.values[t]  # a constant for the policy: no gradient flows through it
        surprise = p_1 - (_ONE if flapped else _ZERO)
        if settings.pixels and flapped:  # they make policies so sure that 1 - p_1 is nothing but its rounding error
            surprise = -_ONE / (_ONE + np.exp(preference))
        error = advantage * surprise + c_entropy * p_1 * (log_p_1 + entropy)
        buffers.errors[t, 0] = -error  # two probabilities sum to one, so their logits' errors to zero
        buffers.errors[t, 1] = error
        if settings.huber and abs(advantage) > _ONE:
            buffers.errors[t, 2] = -c_value if advantage > _ZERO else c_value
            value_loss = abs(advantage) - _HALF
        else:
            buffers.errors[t, 2] = -c_value * advantage
            value_loss = _HALF * advantage * advantage
        log_p = log_p_1 if flapped else log_p_0
        loss += np.float64(-log_p * advantage + c_value * value_loss - c_entropy * entropy)
        entropy_sum += np.float64(entropy)
    return loss, entropy_sum / returns.size


@fast
def _hidden_errors(heads, hidden, errors, out):
    """Write d loss / d hidden [n, 128], zero where the unit was off."""
    for t in range(hidden.shape[0]):
        e0, e1, e2 = errors[t, 0], errors[t, 1], errors[t, 2]
        units, row = hidden[t], out[t]
        for j in range(UNITS):
            error = e0 * heads[0, j] + e1 * heads[1, j] + e2 * heads[2, j]
            row[j] = error if units[j] > _ZERO else _ZERO


@fast
def add_product(out, left, right):
    """out [R, 128] += left [n, R] transposed times right [n, 128]; eight rows at a time to spare loads and stores."""
    rows = left.shape[0]
    t = 0
    while t + 8 <= rows:
        for i in range(out.shape[0]):
            l0, l1, l2, l3 = left[t, i], left[t + 1, i], left[t + 2, i], left[t + 3, i]
            l4, l5, l6, l7 = left[t + 4, i], left[t + 5, i], left[t + 6, i], left[t + 7, i]
            row = out[i]
            for j in range(UNITS):
                first = l0 * right[t, j] + l1 * right[t + 1, j] + l2 * right[t + 2, j] + l3 * right[t + 3, j]
                second = l4 * right[t + 4, j] + l5 * right[t + 5, j] + l6 * right[t + 6, j] + l7 * right[t + 7, j]
                row[j] += first + second
        t += 8
    while t < rows:
        for i in range(out.shape[0]):
            weight, row = left[t, i], out[i]
            for j in range(UNITS):
                row[j] += weight * right[t, j]
        t += 1


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
