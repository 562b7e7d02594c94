"""What all benchmarks share: the clock, the table, in documents too, and the JSON file."""

import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import rich.console
import rich.table


@dataclass(frozen=True)
class Row:
    """One thing measured: how many a second, or None with a note that says why it could not be measured."""

    name: str
    per_second: float | None
    note: str = ""
    reference: str | None = None  # the row to compare this one with, if not that of all


@dataclass(frozen=True)
class Fact:
    """Something else that was measured."""

    name: str
    value: float
    unit: str

    def __str__(self) -> str:
        return (
            f"{self.value:,.4g} {self.unit}".rstrip()
            if self.value < 1000
            else f"{self.value:,.0f} {self.unit}".rstrip()
        )


@dataclass(frozen=True)
class Results:
    """The rows of one benchmark; `unit` says what is counted, and ratios are to the row that `reference` names.

    Where rows name references of their own, this one's says what these have in common.
    """

    benchmark: str
    unit: str
    reference: str
    rows: list[Row]
    facts: list[Fact] = field(default_factory=list)
    where: str = "one core"

    def ratio(self, row: Row) -> float | None:
        """Return how many times faster than the reference `row` is; None if either is missing."""
        rates = {other.name: other.per_second for other in self.rows}
        base = rates[row.reference or self.reference]
        return row.per_second / base if row.per_second and base else None


def per_second(play: Callable[[int], object], chunk: int, seconds: float) -> float:
    """Return how many units a second `play(n)` does, calling it with `chunk` again and again for `seconds`."""
    play(chunk)  # compiles and fills caches
    done = 0
    start = time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds or not done:
        play(chunk)
        done += chunk
    return done / elapsed


def print_table(results: Results, before: Mapping[str, float] | None = None) -> None:
    """Print the rows, each with its ratio to the reference, and to what it was `before` where that is known."""
    table = rich.table.Table("what", title=_title(results))
    for name in _headings(results, before)[1:-1]:
        table.add_column(name, justify="right")
    table.add_column("note", overflow="fold")
    for row in results.rows:
        table.add_row(*_cells(results, row, before))
    console = rich.console.Console()
    console.print(table)
    for fact in results.facts:
        console.print(f"{fact.name}: {fact}", highlight=False)


def markdown(results: Results, before: Mapping[str, float] | None = None) -> str:
    """Return the same as a table for a document."""
    headings = _headings(results, before)
    lines = [headings, ["---", *["---:"] * (len(headings) - 2), "---"]]
    lines += [_cells(results, row, before) for row in results.rows]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    facts = "".join(f"\n- {fact.name}: {fact}" for fact in results.facts)
    return f"{_title(results)}\n\n{table}\n{facts}".rstrip()


def _title(results: Results) -> str:
    return f"{results.benchmark}: {results.unit} per second, {results.where}"


def _headings(results: Results, before: Mapping[str, float] | None) -> list[str]:
    compared = [] if before is None else ["x before"]
    return ["what", f"{results.unit}/s", f"x {results.reference}", *compared, "note"]


def _cells(results: Results, row: Row, before: Mapping[str, float] | None) -> list[str]:
    rate = "-" if row.per_second is None else f"{row.per_second:,.0f}"
    ratios = [results.ratio(row)]
    if before is not None:
        ratios.append(row.per_second / before[row.name] if row.per_second and row.name in before else None)
    return [row.name, rate, *map(_ratio, ratios), row.note]


def _ratio(ratio: float | None) -> str:
    """Return a ratio with as many digits as tell."""
    if ratio is None:
        return "-"
    return f"{ratio:,.2f}" if ratio < 10 else f"{ratio:,.0f}"


def write_json(results: Results, path: Path) -> None:
    """Write the same numbers, with the machine they belong to, to `path`."""
    rows = [
        {"name": row.name, "per_second": row.per_second, "ratio": results.ratio(row), "note": row.note}
        for row in results.rows
    ]
    machine = {"machine": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()}
    facts = [{"name": fact.name, "value": fact.value, "unit": fact.unit} for fact in results.facts]
    content = {"benchmark": results.benchmark, "unit": results.unit, "reference": results.reference}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**content, **machine, "rows": rows, "facts": facts}, indent=2) + "\n")


def rates_in(path: Path) -> dict[str, float]:
    """Return the rates, by the rows' names, that `write_json` wrote; raise ValueError if that is something else."""
    try:
        rows = json.loads(path.read_bytes())["rows"]
        return {row["name"]: float(row["per_second"]) for row in rows if row["per_second"]}
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is no file that --json has written") from error
