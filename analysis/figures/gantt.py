"""A Gantt strip: a row for everybody, a bar for each piece of work, and a sentence that says who was how busy."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from a3c_core.command_line.arguments import in_seconds
from a3c_core.config import RunConfig
from a3c_core.records.layout import ResultsError
from analysis.data.spans import Span
from analysis.figures import style

MOST_ROWS = 40
_WAITS = ("core", "learner_core", "begin", "joined")  # kinds that end a wait, not work
WORDS = {  # what is done when an event of a kind ends it; others are called by their kind
    "played": "plays and differentiates",
    "updated": "updates",
    "applied": "updates",
    "begin": "starts",
    "joined": "starts",
    "core": "waits for game or messages",
    "begun": "begins an episode",
    "stepped": "plays a step",
    "answered": "predicts",
    "trained": "learns",
    "learner_core": "waits for game or messages",
    "learned": "differentiates a minibatch",
}
Row = tuple[str, int]  # role and number


def draw_strip(spans: Sequence[Span], config: RunConfig, at_s: float | None, seconds: float, path: Path) -> str:
    """Write the picture of `seconds` from `at_s` on, or else of the last of what is known; return its sentence."""
    last_s = max((span.end_s for span in spans), default=0.0)
    if at_s is None:
        at_s = max(0.0, last_s - seconds)
    shown = [_cut(span, at_s, at_s + seconds) for span in spans if span.end_s > at_s and span.start_s < at_s + seconds]
    if not shown:
        raise ResultsError(f"nothing happens from {in_seconds(at_s)} on: the run's last event is at {last_s:.3g} s")
    rows = rows_of(shown)
    sentence = _sentence(shown, rows, config, at_s, seconds)
    with style.paper():
        figure = Figure(figsize=(9, 1.6 + 0.2 * min(len(rows), MOST_ROWS)), layout="constrained")
        draw_bars(shown, rows[:MOST_ROWS], at_s, seconds, figure.subplots())
        figure.supxlabel(sentence, fontsize=8, wrap=True)
        figure.savefig(path, dpi=150)
    return sentence


def rows_of(spans: Sequence[Span]) -> list[Row]:
    """Return everybody who appears: those of whom there are fewest first, then by number."""
    everybody = {(span.role, span.number) for span in spans}
    sizes = {role: sum(other == role for other, _ in everybody) for role, _ in everybody}
    return sorted(everybody, key=lambda row: (sizes[row[0]], row))


def draw_bars(spans: Sequence[Span], rows: Sequence[Row], at_s: float, seconds: float, ax: Axes) -> Axes:
    """Draw a row for each of `rows`, in milliseconds since `at_s`."""
    kinds = sorted({span.kind for span in spans}, key=lambda kind: (WORDS.get(kind, ""), kind))
    colours = {kind: style.setting_colour(place) for place, kind in enumerate(kinds)}
    for place, row in enumerate(rows):
        for span in (span for span in spans if (span.role, span.number) == row):
            start, length = 1e3 * (span.start_s - at_s), 1e3 * (span.end_s - span.start_s)
            alpha = 0.25 if span.kind in _WAITS else 1.0
            edge = 0.6 if length > 10 * seconds else 0.0  # of a hundredth and more: shorter ones would be all edge
            look: Any = {"color": colours[span.kind], "alpha": alpha, "edgecolor": "white", "linewidth": edge}
            ax.barh(place, length, left=start, height=0.8, **look)
    ax.set_yticks(range(len(rows)), [f"{role} {number}" for role, number in rows], fontsize=7)
    ax.set_xlim(0, 1e3 * seconds)
    ax.invert_yaxis()
    ax.set_xlabel(f"milliseconds after {at_s:.3f} s")
    patches = [Patch(color=colours[kind], label=WORDS.get(kind, kind)) for kind in kinds]
    ax.legend(handles=patches, loc="lower left", bbox_to_anchor=(0, 1), ncols=4, fontsize=8, frameon=False)
    return ax


def _cut(span: Span, start_s: float, end_s: float) -> Span:
    return span._replace(start_s=max(span.start_s, start_s), end_s=min(span.end_s, end_s))


def _sentence(spans: Sequence[Span], rows: Sequence[Row], config: RunConfig, at_s: float, seconds: float) -> str:
    """Return how much of the time everybody was at work, by role."""
    parts = []
    for role in dict.fromkeys(role for role, _ in rows):
        number = sum(other == role for other, _ in rows)
        work_s = sum(span.end_s - span.start_s for span in spans if span.role == role and span.kind not in _WAITS)
        who = f"the {role} is" if number == 1 else f"{number} {role}s are"
        parts.append(f"{who} at work {work_s / number / seconds:.0%} of the time")
    clock = "virtual" if config.is_virtual else "real"
    left_out = f"; the first {MOST_ROWS} of {len(rows)} are drawn" if len(rows) > MOST_ROWS else ""
    return f"Topology {config.topology}, {in_seconds(seconds)} of {clock} time: {', '.join(parts)}{left_out}."
