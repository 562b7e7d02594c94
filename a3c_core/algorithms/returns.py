"""Returns of a trajectory: to its end, as in the report, or n-step with bootstrap (Mnih et al. 2016).

Two departures from the report's published code, which are mistakes there: it stretches the discount's exponents by
n/(n-1) (`logspace(0, n, num=n)`), and it lets the policy's gradient flow through the advantage's value.
"""

import numpy as np

from a3c_core.machine.jit import exact

_EPSILON = 1e-9  # the report's guard against a trajectory whose returns are all alike


@exact
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


@exact
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
    result = np.empty_like(returns)
    for t in range(returns.size):
        result[t] = np.float32((np.float64(returns[t]) - mean) / deviation)
    return result


@exact
def learning_targets(rewards, values, bootstrap_value, gamma, t_max, standardise):
    """Return float32 [T]: what the critic should predict and the advantage is measured from."""
    returns = discounted_returns(rewards, values, bootstrap_value, gamma, t_max)
    return standardised(returns) if standardise else returns
