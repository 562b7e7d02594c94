"""Asynchronous one-step Q-learning (Mnih et al. 2016, algorithm 1): r + γ max Q(s', a'; target)."""

from a3c_core.algorithms.values import ValueAlgorithm


class Q(ValueAlgorithm):
    """Each reward goes on with the best action's value."""

    one_step = True
