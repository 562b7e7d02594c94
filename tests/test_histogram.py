import json

import numpy as np
import pytest

from a3c_core.histogram import Histogram


@pytest.mark.parametrize("largest", [1, 900, 100_000, 10_000_000])
def test_against_numpy(largest):
    numbers = np.random.default_rng(largest).integers(0, largest, 5000)
    histogram = Histogram()
    for number in numbers[:100].tolist():
        histogram.add(number)
    histogram.add_all(numbers[100:])
    assert histogram.mean() == pytest.approx(numbers.mean())
    assert histogram.largest == numbers.max()
    for percent in (50, 95):
        exact = np.percentile(numbers, percent, method="inverted_cdf")
        assert histogram.percentile(percent) == pytest.approx(exact, rel=0.002, abs=0)
        assert largest > 1024 or histogram.percentile(percent) == exact


def test_its_memory_does_not_grow_with_the_numbers():
    histogram = Histogram()
    histogram.add_all(np.arange(3_000_000))
    assert len(histogram.save()["counts"]) < 10_000


def test_saved_and_restored_it_is_the_same():
    histogram, again = Histogram(), Histogram()
    histogram.add_all(np.array([3, 3, 70_000]))
    again.restore(json.loads(json.dumps(histogram.save())))
    assert again.save() == histogram.save()


def test_of_nothing_everything_is_0():
    assert (Histogram().mean(), Histogram().percentile(95), Histogram().largest) == (0, 0, 0)
