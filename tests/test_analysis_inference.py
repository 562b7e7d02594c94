"""Tests over runs: known values, agreement with intervals, and the shares at which they are wrong."""

import itertools

import numpy as np
import pytest

from analysis.data import statistics
from analysis.data.inference import (
    ERROR,
    alike,
    chance,
    chance_of_order,
    holm,
    interaction_chance,
    mcnemar,
    share_difference,
    spike_chance,
)
from analysis.data.statistics import NOTHING, Estimate


@pytest.mark.parametrize("runs", [8, 10, 30])
def test_a_chance_agrees_with_its_interval(runs):
    found = statistics.estimate(np.random.default_rng(runs).normal(1.0, 1.0, runs))
    for bound in (found.low, found.high):
        assert chance(found, bound) == pytest.approx(ERROR)
        assert chance(found, bound + np.sign(bound - found.value)) < ERROR
    assert chance(found, found.value) == 1.0


def test_where_there_is_no_interval_there_is_no_chance():
    assert chance(NOTHING, 0.0) == 1.0
    assert chance(Estimate(3.0, float("nan"), float("nan"), 1), 0.0) == 1.0
    assert chance(Estimate(3.0, 3.0, 3.0, 5), 0.0) == 0.0


def test_holm_by_hand():
    """Holm 1979: 0.01 against 0.05 / 4, 0.02 against 0.05 / 3, at which it stops; what follows is lost with it."""
    assert holm([0.02, 0.01, 0.021, 0.9], 0.05) == [False, True, False, False]
    assert holm([0.015, 0.01, 0.024, 0.04], 0.05) == [True, True, True, True]
    assert holm([], 0.05) == []


def test_holm_keeps_the_family_wise_error():
    draws = np.random.default_rng(0).uniform(size=(2_000, 10))
    assert np.mean([any(holm(list(row), 0.05)) for row in draws]) < 0.065


def test_alike_needs_both_sides():
    assert alike(Estimate(0.1, -0.5, 0.7, 10), 1.0)
    assert not alike(Estimate(0.1, -1.2, 0.7, 10), 1.0)
    assert not alike(Estimate(0.1, -0.5, 1.7, 10), 1.0)
    assert not alike(NOTHING, 1.0)


@pytest.mark.parametrize("runs", [5, 10, 20])
@pytest.mark.parametrize(("ours", "theirs", "shared"), [(0.3, 0.3, 0.0), (0.5, 0.2, 0.5), (0.9, 0.6, 0.3)])
def test_the_interval_of_paired_shares_covers(ours, theirs, shared, runs):
    """Seeds share their luck to a degree: in `shared` of the runs both sides draw the same number."""
    generator = np.random.default_rng(3)
    inside = []
    for _ in range(500):
        luck, own = generator.random((2, runs))
        other = np.where(generator.random(runs) < shared, luck, own)
        found = share_difference(luck < ours, other < theirs)
        inside.append(found.low <= ours - theirs <= found.high)
    assert np.mean(inside) > 0.92


def test_pairing_narrows_the_interval_of_shares():
    hits = np.arange(20) < 12
    fewer = np.arange(20) < 6
    paired = share_difference(hits, fewer)
    crossed = share_difference(hits, fewer[::-1])
    assert paired.value == crossed.value == pytest.approx(0.3)
    assert paired.high - paired.low < crossed.high - crossed.low


def test_mcnemar_is_the_exact_test_of_the_pairs_that_differ():
    ours, theirs = np.arange(20) < 14, np.arange(20) < 6
    assert mcnemar(ours, theirs) == pytest.approx(2 * 0.5**8)
    assert mcnemar(ours, ours) == 1.0


def test_intervals_at_the_cliff_cover_where_a_mean_of_two_worlds_does_not():
    """Half of the runs learn (score 60), half do not: of 5 runs."""
    generator = np.random.default_rng(1)
    inside = []
    for _ in range(1_000):
        hits = int((generator.random(5) < 0.5).sum())
        share = statistics.share(hits, 5)
        inside.append(share.low <= 0.5 <= share.high)
    assert np.mean(inside) > 0.9


@pytest.mark.parametrize(("slope", "found"), [(0.0, False), (1.0, True)])
def test_an_effect_that_depends_on_workers_is_found(slope, found):
    effects = np.random.default_rng(2).normal(size=(12, 4)) * 0.5 + slope * np.arange(4)
    assert (interaction_chance(effects) < 0.01) == found


def test_too_little_to_tell_is_no_interaction():
    assert interaction_chance(np.array([[1.0, 2.0]])) == 1.0
    assert interaction_chance(np.array([[1.0, np.nan], [2.0, 3.0]])) == 1.0


def test_the_chance_of_an_order_counts_all_combinations():
    generator = np.random.default_rng(3)
    best, four, twenty, forty = (generator.integers(0, 6, 5).astype(float) for _ in range(4))
    every = itertools.product(best, four, twenty, forty)
    slow = np.mean([a > b and a > c and d < 2.0 for a, b, c, d in every])
    assert chance_of_order(best, [four, twenty], forty, 2.0) == pytest.approx(slow)


@pytest.mark.parametrize("height", [1.0, 3.0])
def test_a_spike_after_every_tenth_value_is_found_if_it_is_there(height):
    generator = np.random.default_rng(4)
    series = [np.exp(0.2 * generator.normal(size=81)) for _ in range(3)]
    for values in series:
        values[11::10] *= height
    ratio, p = spike_chance(series, 10)
    assert (p < 0.01) == (height > 1.0)
    assert ratio == pytest.approx(height, rel=0.3)


def test_nothing_to_compare_gives_no_spike():
    assert spike_chance([np.ones(5)], 10)[1] == 1.0
