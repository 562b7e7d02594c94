"""Numbers, ranges and lists in words, the same in every answer."""

import math
from typing import Any, NamedTuple

import numpy as np

_STUDENT = 2.36  # of 7 degrees of freedom, 95 %


class Interval(NamedTuple):
    """A mean over seeds, and the range in which one further seed would be, at 95 %."""

    mean: float
    low: float
    high: float


def interval(values: list[float]) -> Interval:
    """Return the mean of seeds' values and their range."""
    known = np.array(values)
    half = _STUDENT * float(known.std(ddof=1)) if known.size > 1 and np.isfinite(known).all() else 0.0
    return Interval(float(known.mean()), float(known.mean()) - half, float(known.mean()) + half)


def number(value: float) -> str:
    """Return a number to three digits, or all before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{round(value, 2):.3g}"


def percent(share: float) -> str:
    """Return a share as a whole percentage."""
    return f"{100 * share:.0f} %"


def gain(share: Interval) -> str:
    """Return a gain with its sign and its range."""
    mean, low, high = (f"{100 * value:+.0f} %" for value in share)
    return mean if mean == low == high else f"{mean} ({low} to {high})"


def updates(count: float) -> str:
    """Return a number of updates."""
    text = number(count)
    return f"{text} update{'' if text == '1' else 's'}"


def listed(values: list[Any]) -> str:
    """Return 4, 10 and 20."""
    texts = [f"{value:,}" if isinstance(value, int) else str(value) for value in values]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def finite(value: float) -> float | None:
    """Return a number as JSON can have it."""
    return value if math.isfinite(value) else None
