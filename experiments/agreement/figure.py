"""The figure of a validation: what virtual time predicted against what was measured."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from matplotlib.axes import Axes
from matplotlib.figure import Figure

PANELS = {  # quantity: (title, unit)
    "episodes_per_s": ("Throughput", "episodes/s"),
    "master_utilisation": ("Master's utilisation", "share of time busy"),
    "staleness_mean": ("Mean staleness", "updates"),
}
_BAND = 0.1


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
    figure = Figure(figsize=(12, 4.4), layout="constrained")
    axes = figure.subplots(1, len(panels))
    for ax, (quantity, (title, unit)) in zip(axes, panels.items(), strict=True):
        plot_quantity(comparisons, quantity, ax)
        ax.set(title=title, xlabel=f"measured, {unit}", ylabel=f"predicted, {unit}")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, format="png", dpi=150)


def plot_quantity(comparisons: Sequence[Compared], quantity: str, ax: Axes) -> Axes:
    """Draw one quantity, predicted against measured, into `ax`, each point with its number of workers."""
    pairs = [comparison.values(quantity) for comparison in comparisons]
    top = max(max(max(pair) for pair in pairs) * 1.12, 1e-9)  # where all are 0, there is still a line
    ax.fill_between([0, top], [0, top * (1 - _BAND)], [0, top * (1 + _BAND)], color="#e5e7eb", label="within 10 %")
    ax.plot([0, top], [0, top], color="#6b7280", linewidth=1, label="exact")
    seen: set[str] = set()
    for comparison, (predicted, measured) in zip(comparisons, pairs, strict=True):
        label, colour, marker = comparison.setting.look
        style: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": "none"}
        ax.plot(measured, predicted, label=None if label in seen else label, **style)
        ax.annotate(
            str(comparison.setting.workers),
            (measured, predicted),
            xytext=(5, -9),
            textcoords="offset points",
            fontsize=8,
        )
        seen.add(label)
    ax.set(xlim=(0, top), ylim=(0, top), aspect="equal")
    ax.spines[["top", "right"]].set_visible(False)
    return ax
