"""Figures that are the same bytes on every machine: what is drawn is rounded first.

The last bits of a float depend on the machine: NumPy sums and takes logarithms with what its processor offers. A
picture may turn on them, where a line falls just between two pixels.
"""

from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation
from numpy.typing import ArrayLike, NDArray


def rounded(values: ArrayLike) -> NDArray[np.float64]:
    """Return the values with six digits that matter: more than can be seen, and fewer than machines agree on."""
    exact = np.asarray(values, float)
    return np.array([float(f"{value:.6g}") for value in exact.flat]).reshape(exact.shape)


def round_figure(figure: Figure) -> None:
    """Round the limits of a figure's axes, and everything that is drawn within them."""
    for ax in figure.axes:
        ax.set_xlim(*rounded(ax.get_xlim()))
        ax.set_ylim(*rounded(ax.get_ylim()))
        _round_lines(ax)
        _round_areas(ax)
        _round_texts(ax)


def round_layout(figure: Figure) -> None:
    """Round where the axes stand, which follows from the widths of words."""
    for ax in figure.axes:
        left, bottom, width, height = (round(float(n), 3) for n in ax.get_position(original=True).bounds)
        ax.set_position((left, bottom, width, height))


def _round_lines(ax: Axes) -> None:
    for line in ax.lines:
        line.set_data(rounded(line.get_xdata(orig=False)), rounded(line.get_ydata(orig=False)))


def _round_areas(ax: Axes) -> None:
    for collection in ax.collections:
        if isinstance(collection, PathCollection):  # markers, each at its offset
            collection.set_offsets(rounded(collection.get_offsets()))
            continue
        for path in collection.get_paths():
            path.vertices = rounded(path.vertices)
    for patch in ax.patches:
        if isinstance(patch, Rectangle):
            patch.set_bounds(*rounded([*patch.get_xy(), patch.get_width(), patch.get_height()]))


def _round_texts(ax: Axes) -> None:
    for text in ax.texts:
        if isinstance(text, Annotation):
            text.xy = _pair(text.xy)
        else:
            text.set_position(_pair(text.get_position()))


def _pair(place: Iterable[float]) -> tuple[float, float]:
    x, y = rounded(list(place))
    return float(x), float(y)
