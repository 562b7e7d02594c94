"""Whether a figure can be read: no words cut by its edge or on top of each other, by matplotlib's own extents."""

import itertools

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox


def hidden_ticks(figure: Figure) -> set[int]:
    """Return the ids of labels of ticks beyond their axes' limits, which matplotlib keeps but does not draw."""
    names = set()
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            room = 1e-9 * (high - low)
            ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
            names |= {id(t.label1) for t in ticks if not low - room <= t.get_loc() <= high + room}
    return names


def seen(figure: Figure) -> list[tuple[str, Bbox]]:
    """Return all words that a figure shows, and where."""
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    hidden = hidden_ticks(figure)
    texts = [text for text in figure.findobj(Text) if id(text) not in hidden]
    shown = [text for text in texts if text.get_visible() and text.get_text().strip()]
    return [(text.get_text(), text.get_window_extent()) for text in shown]


def flaws(figure: Figure) -> list[str]:
    """Say which words of a figure are cut by its edge, and which lie on each other."""
    places = seen(figure)
    page = figure.bbox
    cut = [
        f"cut: {words}"
        for words, box in places
        if box.x0 < page.x0 - 1 or box.y0 < page.y0 - 1 or box.x1 > page.x1 + 1 or box.y1 > page.y1 + 1
    ]
    pairs = itertools.combinations(places, 2)
    covered = [f"{one} on {other}" for (one, a), (other, b) in pairs if overlap(a, b) and one != other]
    return [*cut, *_twice(figure), *covered]


def _twice(figure: Figure) -> list[str]:
    """Say which ticks of an axis have the same label, for want of digits."""
    found = []
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            labels = [t.label1.get_text() for t in axis.get_major_ticks() if low <= t.get_loc() <= high]
            found += [f"twice: {label}" for label in {*labels} - {""} if labels.count(label) > 1]
    return found


def overlap(one: Bbox, other: Bbox) -> bool:
    """Return whether two boxes share more than the pixel at which they touch."""
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    height = min(one.y1, other.y1) - max(one.y0, other.y0)
    return width > 1 and height > 2  # boxes of words reach a little beyond their ink
