"""Everything of a study: its compact tables brought up to date, then figures, tables and page drawn from them."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
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
from analysis.data.load import Gathered, Plan, assemble, gather, load_study, read_plan
from analysis.data.study import Study, StudyError
from analysis.figures import drawing, style
from analysis.figures.main import MAIN
from analysis.pages import gallery, page, readme, tables
from analysis.pages.comparison import comparison_tables
from analysis.pages.extras import NO_EXTRAS, Extras
from analysis.words import count


class Built(NamedTuple):
    """A study whose page is written, and what of it was not seen anew."""

    study: Study
    kept: int  # runs that are as the compact tables had them
    beyond: int  # runs in the compact tables that the plan does not know


Write = Callable[[Path, bytes], None]  # writes a file's content


def build(folder: Path, extras: Extras = NO_EXTRAS) -> Built:
    """Bring the study's compact tables up to date, and write its figures, tables and page."""
    plan = read_plan(folder)
    with _progress() as progress:
        task = progress.add_task("reading runs", total=len(plan.cells))
        if progress.disable:
            _say(progress)
        gathered = gather(folder, plan, lambda done, total: progress.update(task, completed=done))
        return _build(folder, plan, gathered, extras, progress, _write)


def build_untracked(folder: Path) -> Built:
    """Write what git ignores of a study, index.html and figures/, in silence.

    Files that git tracks (tables, README.md, main.png) are written only where they are missing: a checkout stays clean
    whatever the versions of the libraries that draw.
    """
    plan = read_plan(folder)
    return _build(folder, plan, gather(folder, plan), NO_EXTRAS, Progress(disable=True), _write_missing)


def build_tracked(folder: Path) -> Built:
    """Write what git tracks of a study, tables, README.md and main.png, in silence and without its page.

    The compact tables are written only where some run was seen anew.
    """
    plan = read_plan(folder)
    gathered = gather(folder, plan)
    study = assemble(plan, gathered.tables)
    try:
        if gathered.kept < len(plan.cells):
            compact.write(folder, gathered.tables)
        for name, table in tables.all_tables(study).items():
            _write(folder / "tables" / f"{name}.csv", tables.csv(table).encode())
        if len(study.done):
            gallery.main_figures(study, partial(_keep_main, folder))
        _write(folder / "README.md", readme.render(study, folder).encode())
    except OSError as error:
        raise StudyError(f"{folder} can't be written: {error.strerror}") from error
    return Built(study, gathered.kept, gathered.beyond)


def _keep_main(folder: Path, name: str, drawn: drawing.Drawing, file: bytes | None) -> None:
    if name == MAIN and file is not None:
        _write(folder / gallery.MAIN_FILE, file)


def _build(
    folder: Path, plan: Plan, gathered: Gathered, extras: Extras, progress: Progress, write_tracked: Write
) -> Built:
    study = assemble(plan, gathered.tables)
    try:
        if write_tracked is _write:
            compact.write(folder, gathered.tables)
        written = tables.all_tables(study, extras.claims)
        for name, table in written.items():
            write_tracked(folder / "tables" / f"{name}.csv", tables.csv(table).encode())
        _write_figures(study, folder, written, extras, progress, write_tracked)
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
            _write_figures(study, out, written, extras, progress, _write)
        except OSError as error:
            raise StudyError(f"{out} can't be written: {error.strerror}") from error
    return Built(study, 0, 0)


def _write_figures(
    study: Study,
    folder: Path,
    written: dict[str, pd.DataFrame],
    extras: Extras,
    progress: Progress,
    write_tracked: Write,
) -> None:
    """Write the figures, and the pages that show them; remove figures of an earlier time."""
    task = progress.add_task("drawing", total=gallery.count(study, extras))
    written_now: set[Path] = set()

    def keep(name: str, drawn: drawing.Drawing, file: bytes | None) -> None:
        if file is not None:
            picture = folder / gallery.file_of(name)
            (write_tracked if name == MAIN else _write)(picture, file)
            written_now.add(picture)
            for path, content in (_vectors(name, drawn) if extras.svg else {}).items():
                _write(folder / gallery.FIGURES / path, content)
                written_now.add(folder / gallery.FIGURES / path)
        progress.advance(task)

    html = page.render(study, written, extras, keep)
    for old in (folder / gallery.FIGURES).glob("*.*"):
        if old.suffix in (".png", ".svg") and old not in written_now:
            old.unlink()
    _write(folder / "index.html", html.encode())
    if not study.origins:
        write_tracked(folder / "README.md", readme.render(study, folder, extras).encode())


def _vectors(name: str, drawn: drawing.Drawing) -> dict[str, bytes]:
    """Return a figure's panels as SVG, for those who asked: several times the size of the picture."""
    with style.paper():
        return {f"{name}-{number}.svg": content for number, content in enumerate(drawing.svg(drawn), start=1)}


def summary(built: Built, folder: Path) -> str:
    """Return what was done, for the terminal."""
    study = built.study
    drawn = len([*folder.glob(gallery.MAIN_FILE), *(folder / gallery.FIGURES).glob("*.png")])
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


def _write_missing(path: Path, content: bytes) -> None:
    if not path.exists():
        _write(path, content)


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
