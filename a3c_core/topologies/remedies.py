"""What a master may do about the age of gradients, before and while it applies them.

The rate of an update divided by the gradient's staleness (Zhang et al. 2016) or by how far the parameters have moved
since its worker pulled them (the gap; Barkai et al. 2020); the gradient corrected for that move (delay compensation;
Zheng et al. 2017); and a bound on staleness (as in AReaL; Fu et al. 2025). The rate is divided, rather than the
gradient: Adam takes steps of the same size whatever a gradient's length. Without staleness each changes nothing.

For the gap and the compensation a parcel carries the parameters that its worker held, and is twice as long.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from a3c_core.learners.base import Learner
from a3c_core.models.parameters import Vector
from a3c_core.optimizers import UpdateResult
from a3c_core.progress import Progress
from a3c_core.system.jit import exact
from a3c_core.topologies.exchange import ExchangeConfig

Combine = Callable[[Sequence[Vector]], Vector]


class Remedies:
    """Those that a run's settings ask for. All that they remember is how long the steps were so far."""

    def __init__(self, exchange: ExchangeConfig, learner: Learner):
        self._rate, self._compensation, self._learner = exchange.rate, exchange.compensation, learner
        self._bound = math.inf if exchange.bound is None or exchange.makes_workers_wait else exchange.bound
        self._has_any = self._rate != "constant" or self._compensation > 0  # beside the bound
        self._steps, self._travelled = 0, 0.0  # updates, and the sum of how far each moved the parameters
        self.parcel_size = parcel_size(exchange, learner)

    def is_too_old(self, staleness: int) -> bool:
        """Return whether a gradient is to be dropped."""
        return staleness > self._bound

    def are_too_old(self, versions_pulled: Sequence[int]) -> bool:
        """Return whether gradients by these versions are all to be dropped."""
        if self._bound == math.inf:
            return False
        version = self._learner.version
        return all(self.is_too_old(version - pulled) for pulled in versions_pulled)

    def apply(self, combine: Combine, parcels: Sequence[tuple[int, Vector]], progress: Progress) -> UpdateResult | None:
        """Make one update of parcels, each with the version that its worker held, or none if all are too old.

        Without any, the learner makes do with what it has kept for later.
        """
        if not parcels:
            return self._learner.learn_rest(progress)
        if self._bound != math.inf:
            version = self._learner.version
            parcels = [parcel for parcel in parcels if not self.is_too_old(version - parcel[0])]
            if not parcels:
                return None
        if not self._has_any:
            return self._learner.receive(combine([vector for _, vector in parcels]), progress)
        return self._update(combine, parcels, progress)

    def _update(self, combine: Combine, parcels: Sequence[tuple[int, Vector]], progress: Progress) -> UpdateResult:
        rates = [self._rate_of(version, vector) for version, vector in parcels]
        gradient = combine([self._gradient_of(vector) for _, vector in parcels])
        before = self._learner.parameters.copy() if self._rate == "gap" else None
        result = self._learner.receive(gradient, progress, sum(rates) / len(rates))
        if before is not None and result.applied:
            self._steps += 1
            self._travelled += distance(self._learner.parameters, before)
        return result

    def _rate_of(self, version_pulled: int, vector: Vector) -> float:
        """Return what the learning rate is multiplied by for a gradient."""
        if self._rate == "staleness":
            return 1.0 / max(1, self._learner.version - version_pulled)
        if self._rate == "gap" and self._travelled > 0:
            now = self._learner.parameters
            return 1.0 / (1.0 + distance(now, vector[now.size :]) * self._steps / self._travelled)
        return 1.0

    def _gradient_of(self, vector: Vector) -> Vector:
        now = self._learner.parameters
        gradient = vector[: now.size]
        if self._compensation:
            compensate(gradient, now, vector[now.size :], self._compensation)
        return gradient

    def save(self) -> dict[str, Any]:
        return {"steps": self._steps, "travelled": self._travelled}

    def restore(self, numbers: dict[str, Any]) -> None:
        self._steps, self._travelled = numbers.get("steps", 0), numbers.get("travelled", 0.0)


def parcel_size(exchange: ExchangeConfig, learner: Learner) -> int:
    """Return how many numbers a parcel has."""
    return learner.parcel_size + (learner.parameters.size if exchange.carries_parameters else 0)


@exact
def distance(parameters, others):
    """Return how far two vectors [P] are apart, as a root of the mean square over their entries."""
    total = 0.0
    for i in range(parameters.size):
        apart = float(parameters[i]) - float(others[i])
        total += apart * apart
    return math.sqrt(total / parameters.size)


@exact
def compensate(gradient, now, pulled, strength):
    """Correct `gradient` [P] in place for the parameters' move since `pulled`: g + λ·g²·(now − pulled)."""
    for i in range(gradient.size):
        g = float(gradient[i])
        gradient[i] = g + strength * g * g * (float(now[i]) - float(pulled[i]))
