"""How often whole numbers came, in a memory that does not grow with them: exact below 1,024, to 0.2 % above."""

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

_EXACT_BITS = 10  # of a number, from its first one on


class Histogram:
    """Counts, with an exact mean and maximum."""

    def __init__(self) -> None:
        self.total = 0  # sum of all numbers
        self.largest = 0
        self._counts: Counter[int] = Counter()  # by the smallest number that is counted there

    def add(self, number: int, times: int = 1) -> None:
        shift = number.bit_length() - _EXACT_BITS
        self._counts[number if shift <= 0 else number >> shift << shift] += times
        self.total += number * times
        if number > self.largest:
            self.largest = number

    def add_all(self, numbers: NDArray[Any]) -> None:
        distinct, times = np.unique(numbers, return_counts=True)
        for number, count in zip(distinct.tolist(), times.tolist(), strict=True):
            self.add(number, count)

    def mean(self) -> float:
        """Return the mean; 0 of none."""
        return self.total / max(1, self._counts.total())

    def percentile(self, percent: float) -> float:
        """Return the smallest number that is not below `percent` % of all; 0 of none."""
        numbers = sorted(self._counts)
        up_to = np.cumsum([self._counts[number] for number in numbers])
        return float(numbers[np.searchsorted(up_to, up_to[-1] * percent / 100)]) if numbers else 0.0

    def save(self) -> dict[str, Any]:
        """Return it as numbers for JSON."""
        return {"total": self.total, "largest": self.largest, "counts": sorted(self._counts.items())}

    def restore(self, numbers: dict[str, Any]) -> None:
        self.total, self.largest = numbers["total"], numbers["largest"]
        self._counts = Counter(dict(numbers["counts"]))
