"""What a sweep says at its end: a table of its cells, what failed and why, and where to look."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from a3c_core.command_line import heartbeat
from a3c_core.command_line.arguments import duration, python_command
from a3c_core.errors import printable
from a3c_core.records.layout import DONE, METADATA, read_json, read_summary
from experiments.grid.cells import Cell
from experiments.provenance import ROOT
from experiments.study_folder import StudyFolder
from experiments.sweep import page
from experiments.tracking.uri import DEFAULT, shown, sqlite_path

_COLUMNS = ("score, last tenth", "collapsed", "staleness", "queue peak", "clock", "status")


def print_cells(study: StudyFolder, cells: Sequence[Cell], console: Console) -> None:
    """Print one line per cell with what it came to."""
    table = Table(title=escape(study.name), title_justify="left")
    table.add_column("cell", no_wrap=True)
    for name in _COLUMNS:
        table.add_column(name, justify="right")
    with heartbeat.shown(lambda: "reading what the cells came to", console):
        for cell in cells:
            table.add_row(*(escape(printable(text)) for text in (cell.id, *cell_row(study, cell))))
    console.print(table)


def cell_row(study: StudyFolder, cell: Cell) -> tuple[str, ...]:
    """Return a cell's numbers as text; empty where there are none."""
    directory = study.cell(cell.id)
    status = str((read_json(directory / METADATA) or {}).get("status", "missing"))
    try:
        return (*_numbers(read_summary(directory) or {}, cell), status)
    except (KeyError, TypeError, ValueError):  # no summary, or not one of ours
        return ("", "", "", "", "", status)


def _numbers(summary: dict[str, Any], cell: Cell) -> tuple[str, ...]:
    return (
        f"{summary['score_last_tenth']:.1f}",
        _collapsed(summary, cell),
        f"{summary['staleness_mean']:,.1f}",
        f"{summary['queue_peak']:,}",
        duration(summary["clock_s"]),
    )


def finished_cells(study: StudyFolder) -> int:
    """Return how many cells of the study are done: all those that MLflow shall have."""
    cells = (read_json(study.path / "study.json") or {}).get("cells", [])
    known = (read_json(study.cell(cell["id"]) / "metadata.json") or {} for cell in cells)
    return sum(metadata.get("status") in DONE for metadata in known)


def where_to_look(study: StudyFolder, uri: str | None) -> list[str]:
    """Return the closing lines: results, page, MLflow."""
    lines = [f"Results: {study.path}/"]
    if (study.path / page.PAGE).exists():
        lines.append(f"Report page: {study.path / page.PAGE}")
    elif page.is_possible():
        lines.append(f"Report page: {python_command('-m', 'analysis.report', study.path)}")
    if uri is not None:
        lines.append(f"Curves in MLflow: {_how_to_open(uri)}")
    return lines


def _how_to_open(uri: str) -> str:
    if uri == DEFAULT and Path.cwd() == ROOT:
        return "make ui"
    if not sqlite_path(uri):
        return shown(uri)
    return f"MLFLOW_DISABLE_TELEMETRY=true {python_command('-m', 'mlflow', 'ui', '--backend-store-uri', uri)}"


def _collapsed(summary: dict[str, Any], cell: Cell) -> str:
    """Return yes or no by the analysis' own definition."""
    try:
        from analysis.data.metrics import collapsed
        from analysis.data.score import score_of
    except ImportError:
        return ""
    overloaded = summary["outcome"] == "overloaded"
    least = score_of(cell.config.environment.id).learned_above
    verdict = collapsed(summary["score_last_tenth"], summary["queue_peak"], summary["workers_max"], overloaded, least)
    return "yes" if verdict else "no"
