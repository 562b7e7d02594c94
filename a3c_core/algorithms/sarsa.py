"""Asynchronous one-step Sarsa (Mnih et al. 2016): r + γ Q(s', a'; target), a' being the action that is then taken."""

from a3c_core.algorithms.values import ValueAlgorithm
from a3c_core.models.base import Outputs


class Sarsa(ValueAlgorithm):
    """Each reward goes on with the value of the action that follows it, be that the best or a random one."""

    one_step = True

    def value_of(self, outputs: Outputs, action: int) -> float:
        return float(outputs[0][action])
