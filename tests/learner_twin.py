"""The learner written for reading: forward pass, returns, loss and gradient of the dense model, in float64 NumPy."""

from typing import NamedTuple

import numpy as np

from a3c_core.models.dense import DenseModel


class Outputs(NamedTuple):
    """What the network says about T observations."""

    hidden: np.ndarray  # [T, units]
    log_policy: np.ndarray  # [T, actions]
    values: np.ndarray  # [T]


DENSE = DenseModel()


def weights(parameters, model=DENSE):
    """Return the six arrays of the network as float64."""
    return [view.astype(np.float64) for view in model.spec.views(parameters).values()]


def forward(arrays, observations):
    kernel, bias, policy_kernel, policy_bias, value_kernel, value_bias = arrays
    hidden = np.maximum(observations @ kernel + bias, 0)
    logits = hidden @ policy_kernel + policy_bias
    logits = logits - logits.max(axis=1, keepdims=True)
    log_policy = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return Outputs(hidden, log_policy, (hidden @ value_kernel + value_bias)[:, 0])


def returns(rewards, values, bootstrap_value, gamma, t_max):
    """Return [T]: discounted rewards summed to their chunk's end, and from there on what the critic says."""
    steps = len(rewards)
    chunk = min(t_max or steps, steps)
    discounts = gamma ** np.arange(chunk + 1)
    result = np.zeros(steps)
    for t in range(steps):
        end = min(steps, (t // chunk + 1) * chunk)
        beyond = bootstrap_value if end == steps else values[end]
        result[t] = np.sum(discounts[: end - t] * rewards[t:end]) + discounts[end - t] * beyond
    return result


def raw_bootstrap(rewards, value, gamma):
    """Return the return that stands `value` deviations from the mean of the returns that go on with it."""
    sums = returns(rewards, None, 0.0, gamma, None)
    weights = gamma ** np.arange(len(rewards), 0, -1)
    ahead = 1 - weights.mean()
    if np.isclose(ahead, 0):
        return 0.0
    square, covariance = value**2, np.mean((sums - sums.mean()) * (weights - weights.mean()))
    quadratic = (
        ahead**2 - square * weights.var(),
        -2 * (ahead * sums.mean() + square * covariance),
        sums.mean() ** 2 - square * sums.var(),
    )
    middle = sums.mean() / ahead
    real = [root.real for root in np.roots(quadratic) if abs(root.imag) < 1e-9]
    fitting = [root for root in real if np.sign(root - middle) == np.sign(value)]
    return min(fitting, key=lambda root: abs(root - middle), default=middle)


def targets(trajectory, learner):
    """Return [T]: what the critic should have said."""
    rewards, bootstrap_value = trajectory.rewards.astype(np.float64), trajectory.bootstrap_value
    if learner.standardise and not trajectory.terminated:
        bootstrap_value = raw_bootstrap(rewards, bootstrap_value, learner.gamma)
    result = returns(
        rewards,
        trajectory.values.astype(np.float64),
        bootstrap_value,
        learner.gamma,
        learner.t_max,
    )
    return (result - result.mean()) / (result.std() + 1e-9) if learner.standardise else result


def loss(arrays, trajectory, goals, advantages, learner):
    """Return the loss summed over the trajectory; `goals` and `advantages` [T] are constants."""
    outputs = forward(arrays, trajectory.observations)
    log_chosen = outputs.log_policy[np.arange(len(goals)), trajectory.actions]
    entropies = -(np.exp(outputs.log_policy) * outputs.log_policy).sum(axis=1)
    errors = np.abs(goals - outputs.values)
    value_losses = 0.5 * errors**2
    if learner.value_loss == "huber":
        value_losses = np.where(errors > 1, errors - 0.5, value_losses)
    c_value, c_entropy = learner.value_coefficient, learner.entropy_coefficient
    return np.sum(-log_chosen * advantages + c_value * value_losses - c_entropy * entropies)


def gradient(arrays, trajectory, learner):
    """Return (gradient [P], loss, mean entropy), by the chain rule."""
    outputs = forward(arrays, trajectory.observations)
    goals = targets(trajectory, learner)
    advantages = goals - outputs.values
    policy, chosen = np.exp(outputs.log_policy), np.eye(outputs.log_policy.shape[1])[trajectory.actions]
    entropies = -(policy * outputs.log_policy).sum(axis=1)

    d_logits = advantages[:, None] * (policy - chosen)
    d_logits += learner.entropy_coefficient * policy * (outputs.log_policy + entropies[:, None])
    slopes = np.clip(advantages, -1, 1) if learner.value_loss == "huber" else advantages
    d_values = -learner.value_coefficient * slopes[:, None]
    d_hidden = d_logits @ arrays[2].T + d_values @ arrays[4].T
    d_hidden[outputs.hidden == 0] = 0

    layers = (trajectory.observations, d_hidden), (outputs.hidden, d_logits), (outputs.hidden, d_values)
    parts = [part for inputs, errors in layers for part in ((inputs.T @ errors).ravel(), errors.sum(axis=0))]
    return np.concatenate(parts), loss(arrays, trajectory, goals, advantages, learner), entropies.mean()
