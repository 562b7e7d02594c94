"""Asynchronous n-step Q-learning (Mnih et al. 2016, algorithm S2): rewards to the end, then max Q(s, a; target)."""

from a3c_core.algorithms.values import ValueAlgorithm


class NStepQ(ValueAlgorithm):
    """All rewards of a piece of play go on with the best action's value at its end."""

    one_step = False
