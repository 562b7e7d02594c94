"""Statistics: rliable's numbers on the same matrix, coverage on data with a known difference, and the edges."""

import numpy as np
import pytest
from scipy import stats

from analysis.data import statistics

# What rliable 1.2.0 gives for these two matrices of 10 runs on 3 tasks (50,000 resamples; 20,000 for the probability).
A = np.array(
    [[5.0, 4.01, 3.44], [5.24, 3.33, 7.15], [5.42, 4.89, 1.39], [0.72, 1.52, 5.63], [4.81, 1.11, 5.59],
     [2.48, 2.48, 9.27], [4.58, 5.25, 5.3], [1.08, 5.48, 17.44], [1.65, 7.58, 8.14], [8.06, 2.81, 3.41]]
)  # fmt: skip
B = np.array(
    [[5.0, 5.28, 11.88], [3.51, 1.57, 5.63], [9.17, 4.7, 14.53], [4.91, 5.55, 2.81], [4.47, 8.98, 9.06],
     [11.28, 8.62, 7.47], [1.53, 3.26, 20.71], [3.95, 8.16, 5.24], [8.3, 5.7, 2.93], [3.36, 6.78, 4.04]]
)  # fmt: skip
RLIABLE_IQM = [(A, 4.44, 3.495, 5.350), (B, 5.8625, 4.654, 7.212), (A[:, :1], 3.96, 2.125, 5.4)]
RLIABLE_IMPROVEMENT = (0.35333333333333333, 0.2167, 0.5)


@pytest.mark.parametrize(("matrix", "value", "low", "high"), RLIABLE_IQM)
def test_iqm_is_rliables(matrix, value, low, high):
    assert float(statistics.iqm(matrix)) == pytest.approx(value, rel=1e-14)
    ours = statistics.stratified_interval([matrix], lambda draw: float(statistics.iqm(draw[0])))
    assert ours == pytest.approx((low, high), abs=0.06 * (high - low))


def test_probability_of_improvement_is_rliables():
    value, low, high = RLIABLE_IMPROVEMENT
    assert statistics.probability_of_improvement(A, B) == pytest.approx(value, rel=1e-14)
    ours = statistics.stratified_interval([A, B], lambda d: statistics.probability_of_improvement(d[0], d[1]))
    assert ours == pytest.approx((low, high), abs=0.05)
    assert statistics.probability_of_improvement(A, A) == pytest.approx(0.5)


def test_fast_resampling_agrees_with_the_checked_function():
    draws = np.random.default_rng(0).normal(size=(50, 11))
    assert statistics._iqm_of_rows(draws) == pytest.approx(statistics.iqm(draws, axis=1), rel=1e-12)


def _paired_runs(generator, runs):
    """Return scores of two schedules that share their seeds; the IQM of their difference is 3."""
    seeds = generator.gamma(4.0, 5.0, runs)  # good and bad luck that both schedules share
    noise = generator.gamma(3.0, 1.0, (2, runs))  # skewed, but the difference of two is not
    return seeds + noise[0] + 3.0, seeds + noise[1]


def test_intervals_cover_a_known_difference():
    """In 1,000 studies of 10 paired runs the 95 % interval holds the truth 93 to 97 times in 100."""
    generator = np.random.default_rng(1)
    hits = 0
    for _ in range(1_000):
        estimate = statistics.paired_difference(*_paired_runs(generator, 10))
        hits += estimate.low <= 3.0 <= estimate.high
    assert 930 <= hits <= 970


def _two_peaks(generator, size, share):
    """Return the scores of runs of which a share learns."""
    learned = generator.random(size) < share
    return np.where(learned, generator.normal(50.0, 5.0, size), generator.random(size))


POPULATIONS = {
    "normal": lambda generator, size: generator.normal(10.0, 2.0, size),
    "skewed": lambda generator, size: generator.lognormal(0.0, 1.0, size),
    "half learn": lambda generator, size: _two_peaks(generator, size, 0.5),
    "one in three learns": lambda generator, size: _two_peaks(generator, size, 0.3),
    "one in ten learns": lambda generator, size: _two_peaks(generator, size, 0.1),
}


@pytest.mark.parametrize("runs", [3, 5, 10, 20])
@pytest.mark.parametrize("population", POPULATIONS)
def test_an_interval_covers_or_there_is_none(population, runs):
    """No interval from 3 or 5 runs covers the mean of runs that learn or fail, so there is none."""
    draw, generator = POPULATIONS[population], np.random.default_rng(2)
    truth = float(statistics.iqm(draw(generator, 400_000)))
    low, high = statistics.interval(draw(generator, (runs, 500)))
    if runs < statistics.FEWEST:
        assert np.isnan([low, high]).all()
    else:
        assert ((low <= truth) & (truth <= high)).mean() >= 0.9


def test_plain_percentiles_are_too_narrow_for_few_runs():
    values = A[:, 0]
    plain = statistics.stratified_interval([values[:, None]], lambda draw: float(statistics.iqm(draw[0])))
    ours = statistics.estimate(values)
    assert ours.low < plain[0] < plain[1] < ours.high


def test_pairing_by_seed_pays():
    ours, theirs = _paired_runs(np.random.default_rng(3), 10)
    paired = statistics.paired_difference(ours, theirs)
    unpaired = statistics.paired_difference(ours, np.roll(theirs, 1))
    assert paired.high - paired.low < 0.5 * (unpaired.high - unpaired.low)


def test_equal_data_give_equal_intervals_and_nobody_elses_numbers_change():
    np.random.seed(5)  # noqa: NPY002  the global generator is what must stay untouched
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    assert statistics.estimate(A[:, 1]) == statistics.estimate(A[:, 1].copy())
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_ratio_is_symmetric():
    ratio = statistics.paired_ratio(A[:, 0], B[:, 0])
    inverse = statistics.paired_ratio(B[:, 0], A[:, 0])
    assert ratio.value == pytest.approx(1 / inverse.value)
    assert ratio.low < ratio.value < ratio.high


def test_edges():
    assert statistics.estimate(np.array([])).runs == 0
    one = statistics.estimate(np.array([4.0]))
    assert one.value == 4.0
    assert np.isnan(one.low)
    assert statistics.estimate(np.full(10, 7.0))[:3] == pytest.approx((7.0, 7.0, 7.0))
    assert statistics.estimate(np.full(3, 7.0)).value == 7.0


def test_share_is_wilsons():
    for runs in (1, 3, 10, 40):
        for hits in range(runs + 1):
            expected = stats.binomtest(hits, runs).proportion_ci(0.95, method="wilson")
            assert statistics.share(hits, runs)[1:3] == pytest.approx((expected.low, expected.high), rel=1e-14)
    assert statistics.share(0, 0).runs == 0


@pytest.mark.parametrize("runs", [1, 2, 3, 4, 7, 10, 41])
def test_interquartile_means_are_scipys(runs):
    scores = np.random.default_rng(runs).lognormal(size=(runs, 5))
    for axis in (None, 0, 1):
        assert statistics.iqm(scores, axis) == pytest.approx(stats.trim_mean(scores, 0.25, axis=axis), rel=1e-14)


@pytest.mark.parametrize("runs", [2, 5, 20])
def test_improvement_of_equally_many_runs_has_the_interval_of_one_draw_after_the_other(runs):
    generator = np.random.default_rng(runs)
    ours, theirs = generator.integers(0, 5, (2, runs)).astype(float)
    slow = statistics.stratified_interval(
        [ours[:, None], theirs[:, None]], lambda draw: statistics.probability_of_improvement(*draw)
    )
    estimate = statistics.improvement_estimate(ours, theirs)
    assert (estimate.low, estimate.high) == slow
