"""One visual language: colour and marker by worker count, dynamic schedules dashed, intervals shaded."""

import math
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
import numpy as np
from matplotlib import colormaps, patheffects, ticker
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.transforms import ScaledTranslation, blended_transform_factory

from analysis.data.curves import Band
from analysis.data.study import Schedule

INK, MUTED, GRID, WARNING = "#1f2430", "#6b7280", "#e5e7eb", "#b42318"
_LEGEND_LETTERS = 70  # that fit into a line under a panel
_MARKERS = "osD^vPX*<>dph8H"  # filled, told apart in print, and unlike the one ten places before, which has its colour
_THIN = "PX*d"
NOTE = "note"  # marks the words under a title
_NOTE_POINTS = 5  # between them and the axes
HALO = (patheffects.withStroke(linewidth=2.5, foreground="white"),)  # of words that may meet a line
_CYCLES: tuple[Any, ...] = ("solid", (0, (4.5, 1.6)), (0, (1.2, 1.2)))  # of settings that share a colour
LEGEND: dict[str, Any] = {
    "columnspacing": 0.9,
    "handlelength": 2.1,
    "handletextpad": 0.4,
    "title_fontsize": 9,
    "alignment": "left",
}
_SETTINGS = (  # Okabe & Ito's first, then what is farthest from them, also without green cones
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#555555",
    "#56b4e9",
    "#661a00",
    "#0000d9",
    "#b2b274",
    "#15158c",
)
_ROW_LETTERS = 34  # of a row's name in one line
_ROW_LINE_INCHES = 0.17
_AROUND_ROWS_INCHES = 0.95  # title, note and axis
_LABEL_SHARE = 0.026  # of an axis's width, for a digit and half the gap to the next
_MOST = 120  # workers at the bright end of the colour scale
_RC = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 21,
    "axes.labelsize": 10,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.hashsalt": "a3c",  # names inside an SVG do not depend on chance
}
_SECOND = 0.085  # of the scale: two workers can be told from one by everybody


def colour(workers: int) -> str:
    """Return the colour of a worker count: darker for few, brighter for many, on a scale that is monotone in grey."""
    place = math.log(min(workers, _MOST)) / math.log(_MOST)
    least = _SECOND if workers > 1 else 0.0
    return to_hex(colormaps["plasma"](max(least, 0.84 * place**1.3)))


def marker(place: int) -> str:
    """Return the marker of what is drawn at a place among others."""
    return _MARKERS[place % len(_MARKERS)]


def tone(schedule: Schedule) -> str:
    """Return a schedule's colour: by its worker count at the end, or by its setting where a study compares settings."""
    return colour(schedule.end) if schedule.tint < 0 else setting_colour(schedule.tint)


def setting_colour(place: int) -> str:
    """Return the colour of the setting at a place among others."""
    return _SETTINGS[place % len(_SETTINGS)]


def shape(schedule: Schedule) -> str:
    """Return a schedule's marker: one that no other schedule, or setting, of the study has."""
    return marker(schedule.place if schedule.tint < 0 else schedule.tint)


def line(schedule: Schedule, order: int = 0) -> dict:
    """Return how a schedule's line looks; `order` staggers the markers of lines that lie on each other."""
    return {
        "color": tone(schedule),
        "linestyle": _dashes(schedule),
        "linewidth": 2.0,
        "marker": shape(schedule),
        "markersize": _line_marker_size(shape(schedule)),
        "markeredgecolor": "white",
        "markeredgewidth": 0.7,
        "markevery": (0.04 + 0.03 * (order % 5), 0.16),
        "label": schedule.label,
    }


def _dashes(schedule: Schedule):
    if not schedule.dynamic:
        return setting_dashes(max(schedule.tint, 0))
    return (0, (1.2, 1.2)) if schedule.adaptive or "slides" in schedule.label else (0, (4.5, 1.6))


def setting_dashes(place: int) -> Any:
    """Return the kind of line of the setting at a place: another one each time that the colours begin anew."""
    return _CYCLES[place // len(_SETTINGS) % len(_CYCLES)]


def setting_line(place: int) -> dict[str, Any]:
    """Return how the line of the setting at a place among others looks."""
    look = {"color": setting_colour(place), "linestyle": setting_dashes(place), "marker": marker(place)}
    size = _line_marker_size(marker(place))
    return {**look, "markersize": size, "markeredgecolor": "white", "markeredgewidth": 0.5}


def _line_marker_size(marker: str) -> float:
    """Return how large a marker on a line is: thin ones would drown in it."""
    return 8.0 if marker in _THIN else 5.5


def draw_band(
    ax: Axes, band: Band, schedule: Schedule, order: int = 0, scale: float = 1.0, label: str | None = None
) -> None:
    """Draw a schedule's curve and shade its spread; `scale` divides x, `label` replaces the schedule's."""
    x = band.x / scale
    if band.runs > 1:
        ax.fill_between(x, band.low, band.high, color=tone(schedule), alpha=0.16, linewidth=0)
    ax.plot(x, band.middle, **{**line(schedule, order), "label": label or schedule.label})


def legend(ax: Axes, title: str = "workers") -> None:
    """Put the legend of schedules under the axes, where no curve can hide it."""
    entries = list(zip(*ax.get_legend_handles_labels(), strict=True))
    widest = max((len(label) for _, label in entries), default=1)
    columns = max(1, min(len(entries), _LEGEND_LETTERS // (widest + 6)))
    by_rows = [entry for column in range(columns) for entry in entries[column::columns]]  # matplotlib fills columns
    ax.legend(
        [handle for handle, _ in by_rows],
        [label for _, label in by_rows],
        ncols=columns,
        title=title,
        **LEGEND,
        **_below(ax),
    )


def legend_of_parts(ax: Axes) -> None:
    """Put a legend of what a panel's parts are under the axes."""
    ax.legend(ncols=4, **{**LEGEND, "handlelength": 1.2}, **_below(ax))


def _below(ax: Axes) -> dict:
    """Return where a legend stands: under the axes and their labels, whatever the height of the axes."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    down = ScaledTranslation(0, -38 / 72, figure.dpi_scale_trans)
    across = blended_transform_factory(figure.transFigure, ax.transAxes + down)  # from the picture's left edge
    place = {"loc": "upper left", "bbox_to_anchor": (0.02, 0), "bbox_transform": across}
    return {**place, "borderaxespad": 0.0}


def note(ax: Axes, text: str) -> None:
    """Put small grey words between the title and the axes."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    above = ax.transAxes + ScaledTranslation(0, _NOTE_POINTS / 72, figure.dpi_scale_trans)
    words = ax.text(0.0, 1.0, text, transform=above, ha="left", va="bottom", fontsize=8.5, color=MUTED)
    words.set_gid(NOTE)
    words.set_in_layout(False)  # too long for its axes, it goes left; the axes keep their size


def from_zero(ax: Axes) -> None:
    """Let y begin just below 0, so that a line at 0 is seen."""
    top = ax.get_ylim()[1]
    ax.set_ylim(-0.02 * top, top)


def plain(axis) -> None:
    """Write an axis's numbers as 20,000 or 0.01, never as powers of ten, and few enough to fit."""
    if axis.get_scale() == "linear":
        axis.set_major_locator(ticker.MaxNLocator(6, steps=[1, 2, 5, 10]))
    if axis.get_scale() == "log":
        low, high = axis.get_view_interval()
        axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0) if high < 40 * low else (1.0,)))
        axis.set_minor_formatter(ticker.NullFormatter())
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: plain_number(value)))


def plain_number(value: float) -> str:
    """Return a tick's number: 20,000 or 859.25 or 0.01."""
    is_whole = abs(value) >= 1e5 or abs(value - round(value)) < 1e-6 * abs(value)
    return f"{value:,.0f}" if is_whole else f"{value:,.6g}"


def worker_axis(ax: Axes, counts: list[int]) -> None:
    """Make x a logarithmic axis of worker counts, labelled where there are any."""
    ax.set_xscale("log")
    ax.set_xticks(counts, _labels_with_room(counts))
    ax.xaxis.set_minor_locator(ticker.NullLocator())
    ax.set_xlim(min(counts) / 1.35, max(counts) * 1.35)
    ax.set_xlabel("workers")


def _labels_with_room(counts: list[int]) -> list[str]:
    """Return the labels of ticks on a logarithmic axis, without those that would run into the one before."""
    room = _LABEL_SHARE * math.log(1.35**2 * max(counts) / min(counts))
    labels: list[str] = []
    last = -math.inf
    for count in counts:
        has_room = math.log(count) - last >= room * len(str(count))
        labels.append(str(count) if has_room else "")
        last = math.log(count) if has_room else last
    return labels


def rows(ax: Axes, labels: list[str], inches: float = 0.0) -> None:
    """Make y an axis of named rows from 0 on, at least `inches` high each; long names are broken into lines."""
    broken = [textwrap.fill(label, _ROW_LETTERS) for label in labels]
    lines = max(label.count("\n") + 1 for label in broken)
    figure = ax.get_figure(root=True)
    assert figure is not None
    needed = len(labels) * max(inches, _ROW_LINE_INCHES * lines) + _AROUND_ROWS_INCHES
    figure.set_figheight(max(figure.get_figheight(), needed))
    ax.set_yticks(range(len(labels)), broken)
    ax.set_ylim(-0.6, len(labels) - 0.4)
    if lines > 1:
        ax.tick_params(axis="y", labelsize=8)


def whole_numbers(axis) -> None:
    """Label an axis of counts, of which there are no halves."""
    axis.set_major_locator(ticker.MaxNLocator(6, integer=True))


@contextmanager
def paper() -> Iterator[None]:
    """Draw in this project's style, whatever the user's matplotlib settings are."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RC)  # type: ignore[arg-type]
        yield


def make_logarithmic(ax: Axes) -> None:
    """Make y logarithmic, unless all that is drawn is 0: by a profile without costs nothing takes any time."""
    if any((np.asarray(line.get_ydata(), float) > 0).any() for line in ax.lines):
        ax.set_yscale("log")
