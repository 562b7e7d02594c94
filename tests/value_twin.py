"""Value methods written for reading: the dense model's action values, the targets and the loss, in float64 NumPy."""

import numpy as np


def action_values(parameters, observations):
    """Return [T, 2] of the dense model with one head, given its flat parameters."""
    flat = np.asarray(parameters, np.float64)
    kernel, bias, head, head_bias = np.split(flat, np.cumsum([8 * 128, 128, 128 * 2]))
    hidden = np.maximum(observations @ kernel.reshape(8, 128) + bias, 0)
    return hidden @ head.reshape(128, 2) + head_bias


def targets(algorithm, rewards, target_values, actions, gamma, terminated):
    """Return [T]; `target_values` [T + 1, 2] are the target network's, `actions` [T + 1] those taken there."""
    steps = len(rewards)
    best, taken = target_values.max(axis=1), target_values[np.arange(steps + 1), actions]
    beyond = (taken if algorithm == "sarsa" else best).copy()
    if terminated:
        beyond[steps] = 0
    if algorithm != "n_step_q":
        return rewards + gamma * beyond[1:]
    result, following = np.zeros(steps), beyond[steps]
    for t in reversed(range(steps)):
        following = result[t] = rewards[t] + gamma * following
    return result


def replay_goals(parameters, target, batch, gamma, double):
    """Return [n]: what each step of a minibatch should be worth."""
    goals = []
    for reward, following, goes_on in zip(batch.rewards, batch.next_observations, batch.goes_on, strict=True):
        own, judged = (action_values(flat, following[None].astype(np.float64))[0] for flat in (parameters, target))
        value = judged[own.argmax()] if double else judged.max()
        goals.append(reward + gamma * value if goes_on else reward)
    return np.array(goals)


def loss(parameters, observations, actions, goals, huber=False):
    """Return the squared error of the values of the actions taken, summed; twice Huber's loss, if that is asked."""
    values = action_values(parameters, observations)
    sizes = np.abs(goals - values[np.arange(len(goals)), actions])
    return np.sum(np.where(sizes > 1, 2 * sizes - 1, sizes**2) if huber else sizes**2)


def slopes(parameters, observations, actions, goals, width=1e-6, huber=False):
    """Return d loss / d parameters [P] by finite differences."""
    flat, result = np.array(parameters, np.float64), []
    for i in range(flat.size):
        kept, sides = flat[i], []
        for side in (kept + width, kept - width):
            flat[i] = side
            sides.append(loss(flat, observations, actions, goals, huber))
        flat[i] = kept
        result.append((sides[0] - sides[1]) / (2 * width))
    return np.array(result)
