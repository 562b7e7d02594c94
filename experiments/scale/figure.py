"""The figure of `scale`: gradients per second over workers, one panel for each learner and distance."""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from a3c_core.records.files import write_whole
from analysis.figures import style


def draw(table: list[dict[str, Any]], path: Path) -> None:
    """Draw what each way reaches, and what workers that never wait would."""
    with style.paper():
        made = figure(table)
        write_whole(path, lambda target: made.savefig(target, format="png", dpi=90))


def figure(table: list[dict[str, Any]]) -> Figure:
    """Return the figure, a row of panels for each learner, over one legend."""
    learners, latencies = (list(dict.fromkeys(row[name] for row in table)) for name in ("learner", "latency"))
    made = Figure(figsize=(13, 3.1 * len(learners) + 0.5), layout="constrained")
    axes = made.subplots(len(learners), len(latencies), squeeze=False)
    for across, learner in zip(axes, learners, strict=True):
        for ax, latency in zip(across, latencies, strict=True):
            _panel(ax, [row for row in table if (row["learner"], row["latency"]) == (learner, latency)])
            ax.set_title(f"{learner}, {latency}", fontsize=10, pad=6)
        across[0].set_ylabel("gradients per second")
    for ax in axes[-1]:
        ax.set_xlabel("workers")
    handles, labels = axes[0][0].get_legend_handles_labels()
    made.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=10)
    return made


def _panel(ax: Axes, rows: list[dict[str, Any]]) -> None:
    for place, way in enumerate(dict.fromkeys(row["way"] for row in rows)):
        points = [(row["workers"], row["gradients_per_s"]) for row in rows if row["way"] == way]
        ax.plot(*zip(*points, strict=True), label=way, **{**style.setting_line(place), "markersize": 5})
    first = rows[0]["way"]
    free = [(row["workers"], row["gradients_per_s"] / row["efficiency"]) for row in rows if row["way"] == first]
    ax.plot(*zip(*free, strict=True), ":", color=style.MUTED, label="if nobody waited")
    ax.set(xscale="log", yscale="log")
    for axis in (ax.xaxis, ax.yaxis):
        style.plain(axis)
    ax.tick_params(labelsize=8)
