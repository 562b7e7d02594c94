"""Advantages of trajectories that stand one after the other: generalised ones, and V-trace's.

Schulman et al. 2016 (generalised advantage estimation), Espeholt et al. 2018 (V-trace).
"""

import numpy as np

from a3c_core.system.jit import exact


@exact(allocates=True)
def generalised_advantages(rewards, values, lengths, bootstrap_values, gamma, trace_decay):
    """Return float32 [N]: sums of temporal differences, discounted by gamma * trace_decay, within each trajectory.

    `rewards`, `values` [N] of trajectories of `lengths` [B]; `bootstrap_values` [B]: of the states after their ends.
    """
    advantages = np.empty(rewards.size, np.float32)
    discount, decay = np.float32(gamma), np.float32(gamma) * np.float32(trace_decay)
    end = rewards.size
    for piece in range(lengths.size - 1, -1, -1):
        following, beyond = np.float32(0), bootstrap_values[piece]
        for t in range(end - 1, end - lengths[piece] - 1, -1):
            following = rewards[t] + discount * beyond - values[t] + decay * following
            beyond = values[t]
            advantages[t] = following
        end -= lengths[piece]
    return advantages


@exact(allocates=True)
def vtrace_targets(rewards, values, weights, lengths, bootstrap_values, gamma, rho_bar, c_bar):
    """Return float32 [N, 2]: the policy's advantages, and what the critic should predict.

    `weights` [N] are the policy's probabilities of the actions over those of the policy that played. With weights of 1
    the targets are the n-step returns of A3C, and the advantages what they exceed the values by.
    """
    targets = np.empty((rewards.size, 2), np.float32)
    discount = np.float32(gamma)
    end = rewards.size
    for piece in range(lengths.size - 1, -1, -1):
        value_after = target_after = bootstrap_values[piece]
        for t in range(end - 1, end - lengths[piece] - 1, -1):
            rho, c = min(np.float32(rho_bar), weights[t]), min(np.float32(c_bar), weights[t])
            # the paper's sum as a recursion: v(s) = V(s) + delta(s) + gamma * c * (v(s + 1) - V(s + 1))
            delta = rho * (rewards[t] + discount * value_after - values[t])
            targets[t, 0] = rho * (rewards[t] + discount * target_after - values[t])
            targets[t, 1] = values[t] + delta + discount * c * (target_after - value_after)
            value_after, target_after = values[t], targets[t, 1]
        end -= lengths[piece]
    return targets
