"""What a validation is written down as: a table in words and in numbers, and a figure."""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import rich.console
import rich.table

from a3c_core.records.files import write_whole


class Report(NamedTuple):
    """A validation, ready to be read."""

    name: str  # of its table's file
    title: str  # of its table
    question: str  # the heading of its page
    command: str  # what makes it
    table: list[list[str]]  # in words, its heading first
    rows: Sequence[dict[str, object]]  # the same in numbers
    legend: str
    closing: str
    draw: Callable[[Path], None]  # writes the figure as a PNG

    def markdown(self) -> str:
        """Return the table and its closing sentence as Markdown."""
        heading, *body = self.table
        lines = [heading, ["---"] * len(heading), *body]
        return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), "", self.legend, "", self.closing, ""])

    def page(self, notes: str = "") -> str:
        """Return README.md: question, figure, table, and what people noted."""
        parts = [
            f"# {self.question}",
            "![Predicted against measured values](main.png)",
            f"`{self.command}` makes this page, [the table]({self._table}) and the figure.",
            self.markdown().strip(),
            notes.strip(),
        ]
        return "\n\n".join(filter(None, parts)) + "\n"

    def write(self, directory: Path) -> None:
        """Write the table as CSV, the figure, and README.md, which ends with the directory's notes.md if it has one."""
        notes = directory / "notes.md"
        text = self.page(notes.read_text(encoding="utf-8") if notes.exists() else "")
        write_whole(directory / self._table, self._write_csv)
        write_whole(directory / "main.png", self.draw)
        write_whole(directory / "README.md", lambda to: to.write_text(text, encoding="utf-8"))

    def show(self, console: rich.console.Console) -> None:
        """Print the table, its legend and the closing sentence."""
        heading, *body = self.table
        printed = rich.table.Table(*heading, title=self.title, caption=self.legend)
        for line in body:
            printed.add_row(*line)
        console.print(printed)
        console.print(self.closing, highlight=False, soft_wrap=True)

    @property
    def _table(self) -> str:
        return f"tables/{self.name}.csv"

    def _write_csv(self, path: Path) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, self.rows[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)


def number(value: float) -> float:
    """Return a value to four digits."""
    return float(f"{value:.4g}")
