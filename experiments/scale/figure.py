"""The figure of `scale`: gradients per second over workers, one panel for each learner and distance."""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from a3c_core.results.files import write_whole

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#555555")
_MARKERS = "osD^v"


def draw(table: list[dict[str, Any]], path: Path) -> None:
    """Draw what each way reaches, and what workers that never wait would."""
    learners, latencies = (list(dict.fromkeys(row[name] for row in table)) for name in ("learner", "latency"))
    figure = Figure(figsize=(15, 10), layout="constrained")
    axes = figure.subplots(len(learners), len(latencies), squeeze=False)
    for across, learner in zip(axes, learners, strict=True):
        for ax, latency in zip(across, latencies, strict=True):
            _panel(ax, [row for row in table if (row["learner"], row["latency"]) == (learner, latency)])
            ax.set_title(f"{learner}, {latency}")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    write_whole(path, lambda target: figure.savefig(target, format="png", dpi=80))


def _panel(ax: Axes, rows: list[dict[str, Any]]) -> None:
    ways = list(dict.fromkeys(row["way"] for row in rows))
    for way, colour, marker in zip(ways, _COLOURS, _MARKERS, strict=False):
        points = [(row["workers"], row["gradients_per_s"]) for row in rows if row["way"] == way]
        ax.plot(*zip(*points, strict=True), marker=marker, markersize=4, color=colour, label=way)
    free = [(row["workers"], row["gradients_per_s"] / row["efficiency"]) for row in rows if row["way"] == ways[0]]
    ax.plot(*zip(*free, strict=True), ":", color="#6b7280", label="if nobody waited")
    ax.set(xscale="log", yscale="log", xlabel="workers", ylabel="gradients per second")
