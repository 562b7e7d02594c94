"""What algorithms with a policy and a value have in common: actions are drawn, and values measure advantages."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from a3c_core.models.base import Heads, Outputs
from a3c_core.progress import Progress
from a3c_core.streams import uniform


class ActorCritic:
    """A policy that is drawn from, and a value."""

    def heads(self, actions: int) -> Heads:
        return (("policy_logits", actions), ("value", 1))

    def act(self, outputs: Outputs, stream: NDArray[np.uint64], progress: Progress) -> int:
        exponentials = np.exp(outputs[0] - outputs[0].max())
        policy = exponentials / exponentials.sum()  # [actions]
        return int(np.count_nonzero(policy.cumsum()[:-1] <= np.float64(uniform(stream))))

    def value(self, outputs: Outputs) -> float:
        return float(outputs[1][0])


def log_chosen(policy_logits: NDArray[np.float32], actions: NDArray[Any]) -> NDArray[np.float32]:
    """Return float32 [N]: the logarithms of the probabilities that logits [N, actions] give to `actions` [N]."""
    shifted = policy_logits - policy_logits.max(axis=1, keepdims=True)
    totals = np.log(np.exp(shifted).sum(axis=1))
    chosen: NDArray[np.float32] = shifted[np.arange(len(actions)), actions] - totals
    return chosen
