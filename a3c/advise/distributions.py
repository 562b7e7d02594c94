"""How much durations vary, as factors that are equally likely and have the mean 1: to draw is to look one up."""

import math
from statistics import NormalDist

import numpy as np

from a3c.advise.simulator import CONSTANT, Factors

FACTORS = 1024
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


def pareto(shape: float) -> Factors:
    """Return the factors of a duration with a power law's tail; its mean exists for a shape above 1."""
    if not shape > 1:
        raise ValueError(f"a Pareto distribution has a mean only with a shape above 1, not {shape:g}")
    quantiles = (np.arange(FACTORS * _FINE) + 0.5) / (FACTORS * _FINE)
    return _parts((1.0 - quantiles) ** (-1.0 / shape))


def empirical(durations: Factors) -> Factors:
    """Return the factors of the durations themselves, the longest included; at most FACTORS of them."""
    ordered = np.sort(durations)
    return ordered / ordered.mean() if ordered.size <= FACTORS else _parts(ordered)


def by_tail(ratio: float, count: int) -> Factors:
    """Return the lognormal factors of which the largest of `count` is `ratio` times the mean, on average."""
    low, high = 0.0, 4.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if largest(lognormal(middle), count) < ratio else (low, middle)
    return lognormal(round(low, 4))


def largest(factors: Factors, count: int) -> float:
    """Return the mean of the largest of `count` draws: M = E[max of a group] / E[one]."""
    ordered = np.sort(factors)
    edges = (np.arange(ordered.size + 1) / ordered.size) ** count
    return float(ordered @ np.diff(edges))


def scaled(factors: Factors) -> Factors:
    """Return them with the mean 1."""
    return factors / factors.mean()


def _parts(ordered: Factors) -> Factors:
    """Return the means of FACTORS equally likely parts of what is in order."""
    edges = np.linspace(0, ordered.size, FACTORS + 1).astype(int)
    means = np.add.reduceat(ordered, edges[:-1]) / np.diff(edges)
    return scaled(means)
