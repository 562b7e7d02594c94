"""Everything of a study: its compact tables brought up to date, then figures, tables and page drawn from them."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from a3c_core.command_line import heartbeat
from a3c_core.records.files import write_whole
from a3c_core.records.layout import RUNS
from analysis.data import compact
from analysis.data.beside import beside
from analysis.data.load import assemble, gather, load_study, read_plan
from analysis.data.study import Study, StudyError
from analysis.figures import drawing, style
from analysis.pages import gallery, page, readme, tables
from analysis.pages.comparison import comparison_tables
from analysis.pages.extras import NO_EXTRAS, Extras
from analysis.words import count


class Built(NamedTuple):
    """A study whose page is written, and what of it was not seen anew."""

    study: Study
    kept: int  # runs that are as the compact tables had them
    beyond: int  # runs in the compact tables that the plan does not know


def build(folder: Path, extras: Extras = NO_EXTRAS) -> Built:
    """Bring the study's compact tables up to date, and write its figures, tables and page."""
    plan = read_plan(folder)
    with _progress() as progress:
        task = progress.add_task("reading runs", total=len(plan.cells))
        if progress.disable:
            _say(progress)
        gathered = gather(folder, plan, lambda done, total: progress.update(task, completed=done))
        study = assemble(plan, gathered.tables)
        try:
            compact.write(folder, gathered.tables)
            written = tables.all_tables(study, extras.claims)
            for name, table in written.items():
                _write(folder / "tables" / f"{name}.csv", tables.csv(table).encode())
            _write_figures(study, folder, written, extras, progress)
        except OSError as error:
            raise StudyError(f"{folder} can't be written: {error.strerror}") from error
    return Built(study, gathered.kept, gathered.beyond)


def compare(folders: Sequence[Path], out: Path, extras: Extras = NO_EXTRAS) -> Built:
    """Write a page that shows several studies beside each other; the studies themselves stay as they are."""
    study = beside([load_study(folder) for folder in folders])
    written = {**comparison_tables(study), **tables.all_tables(study, extras.claims)}
    with _progress() as progress:
        try:
            for name, table in written.items():
                _write(out / "tables" / f"{name}.csv", tables.csv(table).encode())
            _write_figures(study, out, written, extras, progress)
        except OSError as error:
            raise StudyError(f"{out} can't be written: {error.strerror}") from error
    return Built(study, 0, 0)


def _write_figures(
    study: Study, folder: Path, written: dict[str, pd.DataFrame], extras: Extras, progress: Progress
) -> None:
    """Write the figures, and the pages that show them; remove figures of an earlier time."""
    task = progress.add_task("drawing", total=gallery.count(study, extras))
    written_now: set[str] = set()

    def keep(name: str, drawn: drawing.Drawing, file: bytes | None) -> None:
        if file is not None:
            files = {f"{name}.png": file, **(_vectors(name, drawn) if extras.svg else {})}
            for path, content in files.items():
                _write(folder / "figures" / path, content)
            written_now.update(files)
        progress.advance(task)

    html = page.render(study, written, extras, keep)
    for old in (folder / "figures").glob("*.*"):
        if old.suffix in (".png", ".svg") and old.name not in written_now:
            old.unlink()
    _write(folder / "index.html", html.encode())
    if not study.origins:
        _write(folder / "README.md", readme.render(study, folder, extras).encode())


def _vectors(name: str, drawn: drawing.Drawing) -> dict[str, bytes]:
    """Return a figure's panels as SVG, for those who asked: several times the size of the picture."""
    with style.paper():
        return {f"{name}-{number}.svg": content for number, content in enumerate(drawing.svg(drawn), start=1)}


def summary(built: Built, folder: Path) -> str:
    """Return what was done, for the terminal."""
    study = built.study
    drawn = len(list((folder / "figures").glob("*.png")))
    parts = [f"{folder / 'index.html'}: {count(len(study.done), 'run')}, {count(drawn, 'figure')}"]
    if len(study.missing):
        parts.append(f"{len(study.missing)} of {count(len(study.runs), 'run')} missing")
    if built.kept:
        parts.append(f"{built.kept} of {count(len(study.runs), 'run')} as {RUNS} kept them, not seen anew")
    if built.beyond:
        parts.append(f"{count(built.beyond, 'run')} of other settings or cells stay in {RUNS}, but are not shown")
    return "; ".join(parts)


def fetch_experiment(experiment: str, uri: str | None, folder: Path) -> None:
    """Bring an experiment's runs from MLflow, whose import alone takes seconds."""
    with _progress() as progress:
        task = progress.add_task("asking MLflow", total=None)
        from analysis.data.tracking import fetch

        fetch(experiment, uri, folder, lambda done, total: progress.update(task, completed=done, total=total))


def _write(path: Path, content: bytes) -> None:
    write_whole(path, lambda temporary: temporary.write_bytes(content))


@contextmanager
def _progress() -> Iterator[Progress]:
    """Show how far it is: bars in a terminal, a line now and then elsewhere."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    lines = heartbeat.repeated(lambda: _say(progress), heartbeat.EVERY_S)
    with progress, nullcontext() if console.is_terminal else lines:
        yield progress


def _say(progress: Progress) -> None:
    for task in progress.tasks[-1:]:  # what is under way
        print(f"{task.description}: {task.completed:,.0f} of {task.total or 0:,.0f}", file=sys.stderr, flush=True)
