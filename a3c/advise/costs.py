"""What advice rests on: a system's costs with their distributions, and how sure they are."""

import math
from typing import NamedTuple

import numpy as np

from a3c.advise.simulator import CONSTANT, Factors, Outcome, System, simulate


class Costs(NamedTuple):
    """Costs, wherever they come from."""

    system: System
    about: str  # where they come from, in words
    cycle_factors: Factors = CONSTANT
    service_factors: Factors = CONSTANT
    notes: tuple[str, ...] = ()  # what is remarkable about them, in words
    uncertainty: float = 0.0  # relative, of N0: half of a 95 % interval
    cycles_s: tuple[float, ...] = ()  # of workers, from the beginning to the end: how episodes grow
    parcels: int = 0  # in the log
    env_steps: float = math.nan  # of an episode at the beginning, where it is known

    def simulate(self, system: System, seed: int = 1) -> Outcome:
        """Return what another system comes to whose durations vary as these do."""
        return simulate(system, self.cycle_factors, self.service_factors, seed)

    @property
    def growth(self) -> float:
        """How many times longer the last cycles are than the first."""
        return self.cycles_s[-1] / self.cycles_s[0] if self.cycles_s else 1.0

    @property
    def deviation(self) -> float:
        """Standard deviation of a worker's cycle, of a mean of 1."""
        return float(np.std(self.cycle_factors))
