"""The page of `scale`: what the table says, in sentences that are made from it, and people's notes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from a3c_core.records.files import write_whole
from experiments.scale.ways import BACKUPS, FIXED, JITTER, LATENCIES_S, SHARDS, learners

_ENOUGH = 0.9  # of what workers could do that never wait: below, a limit bites
_COMMAND = "python -m experiments.scale"
Rows = list[dict[str, Any]]


def write_page(table: Rows, folder: Path) -> None:
    """Write README.md, which ends with notes.md if there is one."""
    notes = folder / "notes.md"
    parts = [*_head(), *_bites(table), *_best(table)]
    if notes.exists():
        parts += ["## Notes", notes.read_text(encoding="utf-8").strip()]
    text = "\n\n".join(parts) + "\n"
    write_whole(folder / "README.md", lambda path: path.write_text(text, encoding="utf-8"))


def _head() -> Iterator[str]:
    yield "# scale: ten to ten thousand workers, over four distances"
    yield "Which limit bites first, and where? Queueing alone, without play or learning, by the events of `a3c advise`."
    yield f"`{_COMMAND}` makes this page, [the table](tables/scale.csv) and the figure."
    yield "![Gradients per second over workers, by learner, distance and way](main.png)"
    lines = ["| learner | a worker's cycle | an update | source |", "|---|---|---|---|"]
    lines += [f"| {one.name} | {one.cycle_s:.3g} s | {one.update_s:.3g} s | {one.source} |" for one in learners()]
    yield "\n".join(lines)
    far = ", ".join(f"{name} {seconds:g} s" for name, seconds in LATENCIES_S.items())
    yield (
        f"Latency there and back: {far}. A cycle varies by {JITTER:.0%} (lognormal). Every shard, and every further "
        f"gradient of a batch, costs {FIXED:.0%} of an update on top; there are {SHARDS} shards; a synchronous round "
        f"leaves out the slowest {BACKUPS:.0%}. A queue holds 8, or a batch, and workers wait for a place in it. A "
        "machine has 40 cores. These are assumptions, not measurements."
    )


def _bites(table: Rows) -> Iterator[str]:
    yield "## Which limit bites first"
    yield (
        f"The fewest workers, of those tried, at which less than {_ENOUGH:.0%} is reached of what workers could do "
        "that never wait; and what takes it."
    )
    ways = list(dict.fromkeys(row["way"] for row in table))
    lines = [f"| learner | distance | N0 | {' | '.join(ways)} |", "|" + "---|" * (3 + len(ways))]
    for learner, latency in dict.fromkeys((row["learner"], row["latency"]) for row in table):
        rows = [row for row in table if (row["learner"], row["latency"]) == (learner, latency)]
        found = [_bite([row for row in rows if row["way"] == way]) for way in ways]
        lines.append(f"| {learner} | {latency} | {rows[0]['n0']:,.3g} | {' | '.join(found)} |")
    yield "\n".join(lines)


def _bite(rows: Rows) -> str:
    """Return the fewest workers that lose too much, and to what."""
    for row in rows:
        if row["efficiency"] < _ENOUGH:
            lost = 1 - row["efficiency"]
            if row["lost_to_latency"] > lost / 2:
                return f"{row['workers']:,}, latency"
            return f"{row['workers']:,}, {'the learner' if row['learner_busy'] > _ENOUGH else 'waiting'}"
    return "none tried"


def _best(table: Rows) -> Iterator[str]:
    yield "## What a thousand workers come to"
    head = "| learner | distance | way | gradients/s | stale | machine-hours a million |"
    lines = [head, "|" + "---|" * 6]
    for learner, latency in dict.fromkeys((row["learner"], row["latency"]) for row in table):
        rows = [row for row in table if (row["learner"], row["latency"], row["workers"]) == (learner, latency, 1000)]
        for row in sorted(rows, key=lambda row: -row["gradients_per_s"])[:2]:
            hours = row["machine_hours_per_million"]
            numbers = f"{row['gradients_per_s']:,.4g} | {row['staleness']:,.3g} | {hours:,.3g}"
            lines.append(f"| {learner} | {latency} | {row['way']} | {numbers} |")
    yield "\n".join(lines)
