"""Returns of a trajectory: to its end, as in the report, or n-step with bootstrap (Mnih et al. 2016).

The report's published code takes the discount's exponents from `logspace(0, n, num=n)`, which stretches them by
n/(n-1): that is a discount of its own for every length, and here a setting.
"""

import numpy as np

from a3c_core.system.jit import exact

_EPSILON = 1e-9  # the report's guard against a trajectory whose returns are all alike


@exact(allocates=True)
def discounted_returns(rewards, values, bootstrap_value, gamma, t_max):
    """Return float32 [T]: discounted sums of `rewards` [T] to the end, or (t_max > 0) to the end of their chunk.

    A sum that is cut short goes on with the value of the state it was cut at: inside the trajectory with `values`
    [T], at its end with `bootstrap_value`, which is 0 if the bird died there (death is final, a time limit is not).
    """
    steps = rewards.size
    returns = np.empty(steps, np.float32)
    discount, following = np.float32(gamma), np.float32(bootstrap_value)
    for t in range(steps - 1, -1, -1):
        if t_max > 0 and t + 1 < steps and (t + 1) % t_max == 0:
            following = values[t + 1]
        following = rewards[t] + discount * following
        returns[t] = following
    return returns


@exact(allocates=True)
def standardised(returns):
    """Return `returns` [T] shifted to mean 0 and scaled to deviation 1, as the report does for every episode."""
    total = 0.0
    for value in returns:
        total += np.float64(value)
    mean = total / returns.size
    squares = 0.0
    for value in returns:
        squares += (np.float64(value) - mean) ** 2
    deviation = np.sqrt(squares / returns.size) + _EPSILON
    result = np.empty(returns.size, np.float32)
    for t in range(returns.size):
        result[t] = np.float32((np.float64(returns[t]) - mean) / deviation)
    return result


@exact(allocates=True)
def cut_returns(rewards, value, gamma):
    """Return float64 [T]: discounted sums of the `rewards` [T] of a trajectory that was cut off, not ended.

    They go on with `value`, what the critic says of the state after the last step: in deviations from the mean of
    these very returns, since that is what it learns to say.
    """
    returns, weights = np.empty(rewards.size), np.empty(rewards.size)  # what follows the cut counts by its weight
    discount, following, weight = np.float64(np.float32(gamma)), 0.0, 1.0
    for t in range(rewards.size - 1, -1, -1):
        following = rewards[t] + discount * following
        weight *= discount
        returns[t], weights[t] = following, weight
    bootstrap = _consistent_bootstrap(returns, weights, value)
    for t in range(rewards.size):
        returns[t] += weights[t] * bootstrap
    return returns


@exact(allocates=True)
def _consistent_bootstrap(sums, weights, value):
    """Return B = mean(R) + deviation(R) * value of the returns R = sums + weights * B [T], which depend on it.

    With x = B - mean(R) and B = level * (mean(sums) + x) that is x² = value² * variance(R), a quadratic in x; its root
    must have the sign of `value`, and of two such roots the one nearer to the mean counts. Where there is none, B is
    the mean itself; where nothing is discounted, B moves all returns alike, and is left out.
    """
    ahead = 1.0 - weights.mean()
    if ahead < _EPSILON:
        return 0.0
    level, mean_sum = 1.0 / ahead, sums.mean()
    variance, covariance, weights_variance = _moments(sums + weights * (level * mean_sum), weights)
    square = value * value
    p, q, r = square * level * covariance, 1.0 - square * level * level * weights_variance, square * variance
    discriminant, sign = p * p + q * r, 1.0 if value > 0 else -1.0
    x = 0.0  # where any of it is not finite, too
    if discriminant >= 0 and sign * p <= 0 and r > 0:
        x = sign * r / (np.sqrt(discriminant) - sign * p)
    elif discriminant >= 0 and q > 0 and r > 0:
        x = (p + sign * np.sqrt(discriminant)) / q
    bootstrap = level * (mean_sum + x)
    return bootstrap if np.isfinite(bootstrap) else level * mean_sum


@exact
def _moments(returns, weights):
    """Return (variance of `returns` [T], their covariance with `weights` [T], variance of `weights`)."""
    mean, weights_mean = returns.mean(), weights.mean()
    variance = covariance = weights_variance = 0.0
    for t in range(returns.size):
        variance += (returns[t] - mean) ** 2
        covariance += (returns[t] - mean) * (weights[t] - weights_mean)
        weights_variance += (weights[t] - weights_mean) ** 2
    return variance / returns.size, covariance / returns.size, weights_variance / returns.size


@exact(allocates=True)
def learning_targets(rewards, values, bootstrap_value, terminated, gamma, t_max, standardise, stretched):
    """Return float32 [T]: what the critic should predict and the advantage is measured from.

    `stretched`: discount as the report's published code does, with exponents from 0 to T instead of to T - 1.
    """
    gamma = np.float64(np.float32(gamma))
    if stretched and rewards.size > 1:
        gamma = gamma ** (rewards.size / (rewards.size - 1.0))
    if standardise and not terminated:
        return standardised(cut_returns(rewards, bootstrap_value, gamma))
    returns = discounted_returns(rewards, values, bootstrap_value, gamma, t_max)
    return standardised(returns) if standardise else returns
