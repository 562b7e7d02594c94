"""How much durations vary, as factors that are equally likely and have the mean 1: to draw is to look one up."""

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from a3c.advise.simulator import CONSTANT

FACTORS = 1024
Factors = NDArray[np.float64]
_FINE = 64  # quantiles within a factor, whose mean it is: so the tail keeps its weight


def normal_quantiles() -> Factors:
    """Return float64 [FACTORS]: the middles of equally likely parts of the standard normal distribution."""
    return np.array([NormalDist().inv_cdf((place + 0.5) / FACTORS) for place in range(FACTORS)])


def lognormal(deviation: float) -> Factors:
    """Return the factors of a lognormal duration whose standard deviation is `deviation` of its mean."""
    if deviation == 0:
        return CONSTANT
    return scaled(np.exp(math.sqrt(math.log1p(deviation**2)) * normal_quantiles()))


def exponential() -> Factors:
    """Return the factors of a duration without memory."""
    quantiles = (np.arange(FACTORS * _FINE) + 0.5) / (FACTORS * _FINE)
    return _parts(-np.log1p(-quantiles))


def empirical(durations: Factors) -> Factors:
    """Return the factors of the durations themselves, the longest included; at most FACTORS of them."""
    ordered = np.sort(durations)
    return ordered / ordered.mean() if ordered.size <= FACTORS else _parts(ordered)


def scaled(factors: Factors) -> Factors:
    """Return them with the mean 1."""
    return factors / factors.mean()


def _parts(ordered: Factors) -> Factors:
    """Return the means of FACTORS equally likely parts of what is in order."""
    edges = np.linspace(0, ordered.size, FACTORS + 1).astype(int)
    means = np.add.reduceat(ordered, edges[:-1]) / np.diff(edges)
    return scaled(means)
