"""Everything of a study: its compact tables brought up to date, then figures, tables and page drawn from them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from a3c_core.results.files import write_whole
from a3c_core.results.layout import RUNS
from a3c_core.tools import heartbeat
from analysis.data import compact
from analysis.data.load import assemble, gather, read_plan
from analysis.data.study import Study, StudyError
from analysis.figures import catalogue, style
from analysis.figures.main import main_figure
from analysis.pages import page, readme, tables
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


def _write_figures(
    study: Study, folder: Path, written: dict[str, pd.DataFrame], extras: Extras, progress: Progress
) -> None:
    """Write the figures, and the pages that show them; remove figures of an earlier time."""
    entries = [main_figure(study), *catalogue.catalogue(study, extras.figures)] if len(study.done) else []
    task = progress.add_task("drawing", total=2 * len(entries))
    for entry in entries:
        with style.paper():
            figure = style.draw(entry.part(study), list(entry.panels))
            _write(folder / "figures" / f"{entry.name}.png", style.image(figure))
        progress.advance(task)
    for old in (folder / "figures").glob("*.*"):
        is_drawn = old.suffix == ".png" and old.stem in {entry.name for entry in entries}
        if old.suffix in (".png", ".svg") and not is_drawn:
            old.unlink()
    html = page.render(study, written, extras, lambda name: progress.advance(task))
    _write(folder / "index.html", html.encode())
    _write(folder / "README.md", readme.render(study, folder, extras).encode())


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
