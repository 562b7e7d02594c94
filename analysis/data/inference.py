"""Tests over runs: chances that belong to intervals, Holm's correction, equivalence, shares, interaction.

An interval of `statistics` and a chance of this module always agree: the chance that a value lies beyond a bound falls
below ERROR exactly where the 95 % interval excludes the bound.
"""

from collections.abc import Sequence

import numpy as np
from scipy import special

from analysis.data.statistics import LEVEL, NOTHING, Estimate, share

ERROR = (1 - LEVEL) / 2  # on each side
_DRAWS = 4_000  # of a permutation test
_SEED = 20_160_204


def chance(estimate: Estimate, bound: float) -> float:
    """Return the one-sided p-value of "the value is not on this side of `bound`"; 1 where there is no interval."""
    if not np.isfinite([estimate.value, estimate.low, estimate.high]).all() or estimate.value == bound:
        return 1.0
    half = estimate.value - estimate.low if estimate.value > bound else estimate.high - estimate.value
    if half <= 0:
        return 0.0
    freedom = max(1, estimate.runs - 1)
    return float(special.stdtr(freedom, abs(estimate.value - bound) / half * special.stdtrit(freedom, ERROR)))


def holm(chances: Sequence[float], error: float = ERROR) -> list[bool]:
    """Return which of several tests hold when they are taken together (Holm 1979): the least chances first."""
    order = np.argsort(chances, kind="stable")
    allowed = [chances[place] <= error / (len(chances) - rank) for rank, place in enumerate(order)]
    holding = [all(allowed[: rank + 1]) for rank in range(len(order))]
    return [bool(holding[rank]) for rank in np.argsort(order, kind="stable")]


def alike(difference: Estimate, margin: float) -> bool:
    """Return whether two one-sided tests (Schuirmann 1987) exclude a difference of `margin` to either side."""
    return bool(difference.low > -margin and difference.high < margin)


def share_difference(ours: np.ndarray, theirs: np.ndarray) -> Estimate:
    """Return how much larger the share of `ours` (bool [runs]) is than that of `theirs`, paired by position.

    The interval is Newcombe's for paired shares (1998, method 10): Wilson's of each share, with the correlation of the
    two put in between.
    """
    ours, theirs = np.asarray(ours, bool), np.asarray(theirs, bool)
    if not len(ours):
        return NOTHING
    a, b = share(int(ours.sum()), len(ours)), share(int(theirs.sum()), len(theirs))
    correlation = _correlation(ours, theirs)
    below = a.value - a.low, b.high - b.value
    above = a.high - a.value, b.value - b.low
    low, high = (x**2 - 2 * correlation * x * y + y**2 for x, y in (below, above))
    value = a.value - b.value
    return Estimate(value, float(value - np.sqrt(max(low, 0.0))), float(value + np.sqrt(max(high, 0.0))), len(ours))


def _correlation(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return the correlation of two columns of hits, as Newcombe's method takes it: 0 where one never varies."""
    if ours.all() or theirs.all() or not ours.any() or not theirs.any():
        return 0.0
    both, neither = int((ours & theirs).sum()), int((~ours & ~theirs).sum())
    only_ours, only_theirs = int((ours & ~theirs).sum()), int((~ours & theirs).sum())
    product: float = both * neither - only_ours * only_theirs
    if product > 0:
        product = max(product - len(ours) / 2, 0)  # a correction for continuity
    margins = (both + only_ours) * (only_theirs + neither) * (both + only_theirs) * (only_ours + neither)
    return product / float(np.sqrt(margins))


def mcnemar(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return McNemar's exact p-value, two-sided, of "both shares are the same" for hits that are paired by position."""
    from scipy.stats import binomtest  # takes half a second to load

    ours, theirs = np.asarray(ours, bool), np.asarray(theirs, bool)
    only_ours, only_theirs = int((ours & ~theirs).sum()), int((~ours & theirs).sum())
    differing = only_ours + only_theirs
    return float(binomtest(only_ours, differing).pvalue) if differing else 1.0


def interaction_chance(effects: np.ndarray) -> float:
    """Return the p-value of "an effect is the same at every place" for `effects` [blocks, places], NaN where unknown.

    Within a block (a seed with everything else the same) the places change their order at random: if the effect does
    not depend on the place, that changes nothing but luck.
    """
    effects = np.asarray(effects, float)
    effects = effects[np.isfinite(effects).all(axis=1)]
    if effects.shape[0] < 2 or effects.shape[1] < 2:
        return 1.0
    generator = np.random.default_rng(_SEED)
    seen = np.round(effects.mean(axis=0).var(), 12)
    draws = np.array([generator.permuted(effects, axis=1).mean(axis=0).var() for _ in range(_DRAWS)])
    return float((1 + (np.round(draws, 12) >= seen).sum()) / (1 + _DRAWS))


def chance_of_order(best: np.ndarray, worse: Sequence[np.ndarray], worst: np.ndarray, learned_above: float) -> float:
    """Return how often single runs, one of each, have `best` above all of `worse`, and `worst` below learned_above.

    All combinations of the runs at hand are counted: the chance to see an order by drawing one run of each.
    """
    firsts = np.asarray(best, float)
    below = [[float((np.asarray(other, float) < first).mean()) for other in worse] for first in firsts]
    ahead = float(np.mean([np.prod(each) for each in below])) if firsts.size else float("nan")
    return ahead * float((np.asarray(worst, float) < learned_above).mean())


def spike_chance(series: Sequence[np.ndarray], period: int) -> tuple[float, float]:
    """Return how many times larger each of `series` [K] is after every `period`-th place than at it, and a p-value.

    The ratio is a geometric mean over places and series; it is compared with the same at places of which each was
    shifted, by a number of its own, within its period.
    """
    rises = np.concatenate([_rises(np.asarray(values, float), period) for values in series])  # [places, shifts]
    if not len(rises):
        return float("nan"), 1.0
    seen = rises[:, 0].mean()
    shifts = np.random.default_rng(_SEED).integers(0, period, (_DRAWS, len(rises)))
    means = rises[np.arange(len(rises)), shifts].mean(axis=1)
    return float(np.exp(seen)), float((1 + (means >= seen - 1e-12).sum()) / (1 + _DRAWS))


def _rises(values: np.ndarray, period: int) -> np.ndarray:
    """Return the logarithms of values' ratios to the ones before, a row of `period` for each place; whole rows only."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rises = np.diff(np.log(np.abs(values)))[period:]
    rows = rises[: len(rises) // period * period].reshape(-1, period)
    return rows[np.isfinite(rows).all(axis=1)]
