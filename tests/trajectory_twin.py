"""PPO and V-trace written for reading: targets and losses of the dense model, in float64 NumPy; and batches to try."""

import numpy as np

from a3c_core.algorithms.trajectories import batch_of
from tests import learner_twin
from tests.learner_cases import made_up_trajectory


def pieces(batch):
    """Yield each trajectory's (rows, value of the state after its end)."""
    start = 0
    for length, beyond in zip(batch.lengths, batch.bootstrap_values, strict=True):
        yield np.arange(start, start + length), float(beyond)
        start += length


def advantages(batch, settings):
    """Return [N]: generalised advantages by their definition, a sum of temporal differences for every step."""
    result = np.zeros(batch.env_steps)
    for rows, beyond in pieces(batch):
        values = np.append(np.float64(batch.values[rows]), beyond)
        deltas = batch.rewards[rows] + settings.gamma * values[1:] - values[:-1]
        for t in range(len(rows)):
            weights = (settings.gamma * settings.trace_decay) ** np.arange(len(rows) - t)
            result[rows[t]] = np.sum(weights * deltas[t:])
    return result


def vtrace(batch, values, weights, settings):
    """Return ([N], [N]): the policy's advantages and the critic's targets by the paper's sums (equations 1 and 4)."""
    goals, gains = np.zeros(batch.env_steps), np.zeros(batch.env_steps)
    for rows, beyond in pieces(batch):
        rho, c = (np.minimum(bound, weights[rows]) for bound in (settings.rho_bar, settings.c_bar))
        known = np.append(values[rows], beyond)
        deltas = rho * (batch.rewards[rows] + settings.gamma * known[1:] - known[:-1])
        for s in range(len(rows)):
            terms = [settings.gamma ** (t - s) * np.prod(c[s:t]) * deltas[t] for t in range(s, len(rows))]
            goals[rows[s]] = known[s] + sum(terms)
        following = np.append(goals[rows][1:], beyond)
        gains[rows] = rho * (batch.rewards[rows] + settings.gamma * following - known[:-1])
    return gains, goals


def loss(arrays, batch, targets, rows, algorithm, settings):
    """Return the loss summed over `rows`; targets [N, columns] are constants."""
    outputs = learner_twin.forward(arrays, np.float64(batch.observations[rows]))
    log_chosen = outputs.log_policy[np.arange(len(rows)), batch.actions[rows]]
    gains, goals, *more = np.float64(targets[rows]).T
    if algorithm == "ppo":
        ratios = np.exp(log_chosen - more[0])
        bounded = np.clip(ratios, 1 - settings.clip, 1 + settings.clip)
        policy_losses = -more[1] * np.minimum(ratios * gains, bounded * gains)
    else:
        policy_losses = -log_chosen * gains
    errors = np.abs(goals - outputs.values)
    value_losses = 0.5 * errors**2
    if settings.value_loss == "huber":
        value_losses = np.where(errors > 1, errors - 0.5, value_losses)
    entropies = -(np.exp(outputs.log_policy) * outputs.log_policy).sum(axis=1)
    c_value, c_entropy = settings.value_coefficient, settings.entropy_coefficient
    return np.sum(policy_losses + c_value * value_losses - c_entropy * entropies)


def slopes(parameters, size=1e-6, **what):
    """Return [P]: central differences of the loss in every parameter."""
    flat = np.float64(parameters)
    result = np.zeros(flat.size)
    for i in range(flat.size):
        ends = []
        for sign in (1, -1):
            moved = flat.copy()
            moved[i] += sign * size
            ends.append(loss(_weights(moved), **what))
        result[i] = (ends[0] - ends[1]) / (2 * size)
    return result


def _weights(flat):
    spec = learner_twin.DENSE.spec
    return [flat[spec.slices[name]].reshape(shape) for name, shape in spec.shapes.items()]


def made_up_batch(parameters, lengths, noise=0.3, seed=0):
    """Return a batch of random trajectories, every second of them cut; log-probabilities differ by `noise`."""
    from dataclasses import replace

    random = np.random.default_rng([seed, *lengths])
    trajectories = []
    for number, length in enumerate(lengths):
        one = made_up_trajectory(length, number % 2 == 0, parameters, seed + number)
        outputs = learner_twin.forward(learner_twin.weights(parameters), np.float64(one.observations))
        log_chosen = outputs.log_policy[np.arange(length), one.actions]
        log_played = np.minimum(log_chosen + noise * random.normal(size=length), -1e-3)
        if not noise:
            log_played = log_chosen
        trajectories.append(replace(one, log_probabilities=log_played.astype(np.float32)))
    return batch_of(trajectories)
