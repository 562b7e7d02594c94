"""`python -m analysis.topologies [FILE]` draws who sends what to whom, from what the topologies say of themselves."""

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from a3c_core.topologies import TOPOLOGIES
from a3c_core.topologies.base import Arrow, Description

_LIKE_TEXT: Any = {"svg.fonttype": "none", "svg.hashsalt": "topologies"}  # small, and the same bytes every time
_WIDTH, _HEIGHT = 1.0, 0.5  # of a station
_CROWDED = 3  # gaps between stations, or more
_ACROSS = 4.8  # from the middle of the first to that of the last


def draw_topology(name: str, description: Description, ax: Axes) -> Axes:
    """Draw stations in a row: what goes on to the next in a straight line, what comes back below."""
    last = len(description.stations) - 1
    places = {station: _ACROSS * number / last for number, station in enumerate(description.stations)}
    for station, x in places.items():
        box = {"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": "0.3"}
        ax.text(x, 0, "\n".join(station.rsplit(" ", 1)), ha="center", va="center", fontsize=9, bbox=box)
    above = 0.1 if last < _CROWDED else 0.4  # of boxes, where there is no room between them
    for arrow in description.arrows:
        _draw_arrow(arrow, places[arrow.sender], places[arrow.receiver], above, ax)
    ax.set_title(name, loc="left", fontsize=10, fontweight="bold")
    ax.set_xlim(-_WIDTH, _ACROSS + _WIDTH)
    ax.set_ylim(-1.4, 0.8)
    ax.set_aspect("equal")
    ax.axis("off")
    return ax


def _draw_arrow(arrow: Arrow, start: float, end: float, above: float, ax: Axes) -> None:
    if start < end:
        xs, y = (start + _WIDTH / 2 + 0.1, end - _WIDTH / 2 - 0.1), 0.0
        bend, label_y, side = "arc3", above, "bottom"
    else:
        xs, y = (start, end), -_HEIGHT
        bend, label_y, side = "bar,fraction=-0.12", y - 0.12 * (start - end), "center"
    how = {"arrowstyle": "-|>", "color": "0.3", "connectionstyle": bend}
    ax.annotate("", xytext=(xs[0], y), xy=(xs[1], y), arrowprops=how)
    behind = {"facecolor": "white", "edgecolor": "none", "pad": 2.0} if start > end else None
    ax.text((start + end) / 2, label_y, arrow.what, ha="center", va=side, fontsize=8, color="0.2", bbox=behind)


def draw(path: Path) -> None:
    """Write a drawing of all topologies that come with the project."""
    names = TOPOLOGIES.names()
    with mpl.rc_context(_LIKE_TEXT):
        figure = Figure(figsize=(7, 1.8 * len(names)), layout="constrained")
        for name, ax in zip(names, figure.subplots(len(names), squeeze=False)[:, 0], strict=True):
            draw_topology(name, TOPOLOGIES.get(name).description, ax)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


if __name__ == "__main__":
    draw(Path(sys.argv[1] if len(sys.argv) > 1 else "topologies.svg"))
