"""Numbers and lists as people write them."""

import math
from collections.abc import Callable, Iterable
from typing import Protocol


class Interval(Protocol):
    """A value and the ends of its interval, which are NaN where there is none."""

    @property
    def value(self) -> float: ...

    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...


def number(value: float) -> str:
    """Return `value` with about three digits that matter: 0.03, 1.25, 12.3, 118, 19,350."""
    if math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "never" if value > 0 else "-∞"
    size = abs(value)
    if size == 0:
        return "0"
    if size >= 100 or float(value).is_integer():
        return _minus(f"{value:,.0f}")
    digits = 1 if size >= 10 else 2 if size >= 0.1 else 3
    return _minus(f"{value:.{digits}f}" if size >= 0.001 else f"{value:.1e}")


def with_interval(estimate: Interval, show: Callable[[float], str] = number) -> str:
    """Return "118 [110, 126]", or just the value where there is no interval."""
    return _interval(estimate.value, estimate.low, estimate.high, show)


def apart(difference: Interval, unit: str) -> str:
    """Return a difference as "1.9 [0.2, 4.4] pipes lower"."""
    if difference.value >= 0:
        return f"{with_interval(difference)} {unit} higher"
    return f"{_interval(-difference.value, -difference.high, -difference.low, number)} {unit} lower"


def percent(value: float) -> str:
    """Return a share as a percentage."""
    if math.isnan(value):
        return "unknown"
    scaled = 100 * value
    return f"{scaled:.0f} %" if scaled >= 10 or scaled == 0 else f"{scaled:.1f} %"


def duration(seconds: float) -> str:
    """Return seconds as the unit that suits them: ms, s, min or h."""
    if not math.isfinite(seconds):
        return number(seconds)
    for unit, size in (("h", 3600.0), ("min", 60.0), ("s", 1.0)):
        if seconds >= 1.5 * size or (unit == "s" and seconds >= 1.0):
            return f"{number(seconds / size)} {unit}"
    return f"{number(1000 * seconds)} ms"


def listed(items: Iterable[str], last: str = "and") -> str:
    """Return "4, 10 and 20"."""
    items = list(items)
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}" if items else "none"


def count(how_many: int, thing: str) -> str:
    """Return "1 run", "3 runs"."""
    return f"{how_many:,} {thing}" + ("" if how_many == 1 else "s")


def capital(text: str) -> str:
    """Return the text with a capital."""
    return text[:1].upper() + text[1:]


def _minus(text: str) -> str:
    return text.replace("-", "−")


def _interval(value: float, low: float, high: float, show: Callable[[float], str]) -> str:
    return show(value) if math.isnan(low) else f"{show(value)} [{show(low)}, {show(high)}]"
