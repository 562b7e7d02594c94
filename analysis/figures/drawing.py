"""From panels to pictures: each panel is drawn once, for the page; a file shows the same ones side by side."""

import io
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text
from PIL import Image

from analysis.data.study import Study
from analysis.figures import style
from analysis.figures.rounding import round_figure, round_layout

DPI = 150
PANEL_INCHES = (5.0, 3.25)  # without the legend; a panel that needs more makes its figure higher
_LEGEND_LINE_INCHES = 0.2
_MARGIN_PIXELS = 4  # between words and a picture's edge
_COLUMNS = 2  # of panels, in a file

Panel = Callable[[Study, Axes], Axes]


class Drawing(NamedTuple):
    """A figure's panels, each with a picture of its own, and the legend that they share, if they do."""

    panels: list[Figure]
    legend: Figure | None

    @property
    def axes(self) -> list[Axes]:
        """The axes of all panels."""
        return [ax for panel in self.panels for ax in panel.axes]


class Pictures(NamedTuple):
    """A drawing in pixels: for the page."""

    panels: list[bytes]  # PNG
    legend: bytes | None
    file: bytes  # all of it


def draw(study: Study, panels: Sequence[Panel], dpi: int = DPI) -> Drawing:
    """Return the panels, drawn; a legend that they share stands once, under all of them."""
    figures = [_panel(study, panel, dpi) for panel in panels]
    legend = _shared_legend(figures, dpi)
    height = max(figure.get_figheight() + _LEGEND_LINE_INCHES * _legend_lines(figure) for figure in figures)
    for figure in figures:
        _lay_out(figure, height)
    return Drawing(figures, legend)


def _panel(study: Study, panel: Panel, dpi: int) -> Figure:
    figure = Figure(PANEL_INCHES, layout="constrained", dpi=dpi)
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.08)  # type: ignore[union-attr, call-arg]
    panel(study, figure.add_subplot())
    round_figure(figure)
    return figure


def _lay_out(figure: Figure, height: float) -> None:
    """Place the axes once and for all, and titles and notes that are too long for their axes further left."""
    figure.set_size_inches(PANEL_INCHES[0], height)
    engine = figure.get_layout_engine()
    assert engine is not None
    FigureCanvasAgg(figure)
    engine.execute(figure)
    figure.set_layout_engine("none")
    round_layout(figure)
    for ax in figure.axes:
        for text in [ax._left_title, *ax.texts]:  # type: ignore[attr-defined]
            if text in ax.texts and text.get_gid() != style.NOTE:
                continue
            _keep_inside(text, figure, ax)


def _keep_inside(text: Text, figure: Figure, ax: Axes) -> None:
    beyond = text.get_window_extent().x1 + _MARGIN_PIXELS - figure.bbox.width
    if beyond > 0:
        text.set_x(round(-beyond / ax.get_window_extent().width, 3))


def _shared_legend(figures: Sequence[Figure], dpi: int) -> Figure | None:
    """Take the legends out of the panels, if several have one and the longest has all that the others say."""
    legends = [legend for figure in figures if (legend := figure.axes[0].get_legend())]
    longest = max(legends, key=lambda legend: len(legend.get_texts()), default=None)
    if longest is None or len(legends) < 2:
        return None
    says = _labels(longest)
    titles = {legend.get_title().get_text() for legend in legends}
    if len(titles) > 1 or not all(set(_labels(legend)) <= set(says) for legend in legends):
        return None
    handles = list(longest.legend_handles)
    for legend in legends:
        legend.remove()
    return _legend_figure(handles, says, longest, dpi)


def _legend_figure(handles: list, says: list[str], like: Legend, dpi: int) -> Figure:
    lines = math.ceil(len(says) / like._ncols) + bool(like.get_title().get_text())  # type: ignore[attr-defined]
    figure = Figure((PANEL_INCHES[0], _LEGEND_LINE_INCHES * lines + 0.1), dpi=dpi)
    FigureCanvasAgg(figure)
    look = {**style.LEGEND, "ncols": like._ncols, "title": like.get_title().get_text()}  # type: ignore[attr-defined]
    figure.legend(handles, says, loc="upper left", bbox_to_anchor=(0.02, 1.0), borderaxespad=0.0, **look)
    return figure


def _labels(legend: Legend) -> list[str]:
    return [text.get_text() for text in legend.get_texts()]


def _legend_lines(figure: Figure) -> int:
    legend = figure.axes[0].get_legend()
    return math.ceil(len(legend.get_texts()) / legend._ncols) if legend else 0  # type: ignore[attr-defined]


def pictures(drawing: Drawing) -> Pictures:
    """Return the drawing in pixels; equal drawings give equal bytes."""
    panels = [_pixels(figure) for figure in drawing.panels]
    legend = _pixels(drawing.legend) if drawing.legend else None
    files = [_png(panel) for panel in panels]
    whole = files[0] if len(panels) == 1 and not legend else _png(_joined(panels, legend))
    return Pictures(files, _png(legend) if legend else None, whole)


def image(drawing: Drawing) -> bytes:
    """Return the whole drawing as one PNG."""
    legend = _pixels(drawing.legend) if drawing.legend else None
    return _png(_joined([_pixels(figure) for figure in drawing.panels], legend))


def svg(drawing: Drawing) -> list[bytes]:
    """Return each panel, and the shared legend, as SVG without a date and with the same names inside on every run."""
    return [_svg(figure) for figure in [*drawing.panels, *([drawing.legend] if drawing.legend else [])]]


def _svg(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def _pixels(figure: Figure) -> Image.Image:
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


def _joined(panels: Sequence[Image.Image], legend: Image.Image | None) -> Image.Image:
    """Return panels of one size two in a row, and the legend under them."""
    width, height = panels[0].size
    columns = min(_COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    whole = Image.new("RGB", (width * columns, height * rows + (legend.height if legend else 0)), "white")
    for place, panel in enumerate(panels):
        whole.paste(panel, (width * (place % columns), height * (place // columns)))
    if legend:
        whole.paste(legend, (0, height * rows))
    return whole


def _png(picture: Image.Image) -> bytes:
    """Return a picture with 256 colours, a third of its size."""
    buffer = io.BytesIO()
    few = picture.quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    few.save(buffer, "png", optimize=True)
    return buffer.getvalue()
