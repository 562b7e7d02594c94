"""The figure of a validation: what virtual time predicted against what was measured."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures import style

PANELS = {  # quantity: (title, unit)
    "episodes_per_s": ("Throughput", "episodes/s"),
    "master_utilisation": ("Master's utilisation", "share of time busy"),
    "staleness_mean": ("Mean staleness", "updates"),
}
_BAND = 0.1
_AWAY, _NEAR = 0.03, 0.04  # of an axis: from a point to its name, and between names that would touch
_WIDE = 20.0  # times the least: values that differ by more need a logarithmic axis


class Compared(Protocol):
    """A setting with what was predicted and measured of it."""

    @property
    def setting(self) -> Any:
        """What was tried: its number of `workers`, and its `look` in a figure (group, colour, marker)."""
        ...

    def values(self, quantity: str) -> tuple[float, float]:
        """Return (predicted, measured)."""
        ...


def draw(comparisons: Sequence[Compared], path: Path, panels: Mapping[str, tuple[str, str]] = PANELS) -> None:
    """Write a PNG with a panel per quantity: on the line, a prediction is exact; in the band, within a tenth."""
    with style.paper():
        figure(comparisons, panels).savefig(path, format="png", dpi=110)


def figure(comparisons: Sequence[Compared], panels: Mapping[str, tuple[str, str]] = PANELS) -> Figure:
    """Return the figure, its panels side by side over one legend."""
    made = Figure(figsize=(13, 5.2), layout="constrained")
    axes = made.subplots(1, len(panels))
    for ax, (quantity, (title, unit)) in zip(axes, panels.items(), strict=True):
        plot_quantity(comparisons, quantity, ax)
        ax.set(xlabel=f"measured ({unit})", ylabel=f"predicted ({unit})")
        ax.set_title(title, pad=8)
    handles, labels = axes[0].get_legend_handles_labels()
    made.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=10)
    return made


def plot_quantity(comparisons: Sequence[Compared], quantity: str, ax: Axes) -> Axes:
    """Draw one quantity, predicted against measured, into `ax`, each point with its number of workers."""
    pairs = [comparison.values(quantity) for comparison in comparisons]
    line = _limits(ax, np.array(pairs, float))
    ax.fill_between(line, line * (1 - _BAND), line * (1 + _BAND), color=style.GRID, label="within 10 %")
    ax.plot(line, line, color=style.MUTED, linewidth=1, label="exact")
    groups = list(dict.fromkeys(comparison.setting.look[0] for comparison in comparisons))
    seen: set[str] = set()
    named: list[np.ndarray] = []
    for comparison, (predicted, measured) in zip(comparisons, pairs, strict=True):
        label, colour, marker = comparison.setting.look
        look: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": "none", "markeredgecolor": "white"}
        ax.plot(measured, predicted, label=None if label in seen else label, markersize=8, **look)
        above = groups.index(label) < len(groups) / 2
        corner = _free_corner(_spot(ax, measured, predicted), above, named)
        _name(ax, str(comparison.setting.workers), (measured, predicted), colour, corner)
        seen.add(label)
    return ax


def _limits(ax: Axes, pairs: np.ndarray) -> np.ndarray:
    """Make both axes the same, logarithmic if values are far apart; return [200] places along them."""
    least, most = pairs.min(), max(pairs.max(), 1e-9)  # where all are 0, there is still a line
    far = 0 < least * _WIDE < most
    low, high = (least / 1.6, most * 1.6) if far else (0.0, 1.12 * most)
    if far:
        ax.set(xscale="log", yscale="log")
    ax.set(xlim=(low, high), ylim=(low, high), aspect="equal")
    for axis in (ax.xaxis, ax.yaxis):
        style.plain(axis)
    return np.geomspace(low, high, 200) if far else np.linspace(low, high, 200)


def _spot(ax: Axes, measured: float, predicted: float) -> np.ndarray:
    """Return where a point is, in parts of the axes."""
    return np.asarray((ax.transScale + ax.transLimits).transform((measured, predicted)))


def _free_corner(spot: np.ndarray, above: bool, named: list[np.ndarray]) -> np.ndarray:
    """Return the corner of a point for its name (-1 is left or below), and note where that will be.

    The first groups' are above, the others', which often coincide with them, below; unless there is a name already.
    """
    side = 1 if above else -1
    corners = [np.array(corner) for corner in ((-side, side), (side, side), (side, -side), (-side, -side))]
    free = [corner for corner in corners if all(np.any(np.abs(spot + _AWAY * corner - one) > _NEAR) for one in named)]
    corner = [*free, corners[0]][0]
    named.append(spot + _AWAY * corner)
    return corner


def _name(ax: Axes, workers: str, place: tuple[float, float], colour: str, corner: np.ndarray) -> None:
    """Write a number of workers at a corner of its point."""
    (right, above), align = corner > 0, {True: "left", False: "right"}
    vertical = "bottom" if above else "top"
    offset = tuple(4 * corner)
    ax.annotate(
        workers, place, offset, textcoords="offset points", fontsize=8, color=colour, ha=align[bool(right)], va=vertical
    )
