"""Everything of a study: figures, tables and page, from its results folder or from MLflow."""

import argparse
import sys
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from a3c_core.files import write_whole
from analysis import compact, figures, page, style, tables
from analysis.load import assemble, collect, read_plan
from analysis.study import Study, StudyError

EXAMPLES = """\
examples:
  python -m analysis.report results/report                 # write results/report/index.html, figures/ and tables/
  python -m analysis.report --experiment report            # the same from MLflow, into results/report
  python -m analysis.report --experiment report --tracking-uri http://localhost:5000 --out /tmp/report

Figures are drawn from runs.parquet and curves.parquet, which are brought up to date from the folder's cells where there
are any. Exit codes: 0 the page is written (it says what is missing), 2 a mistake on the command line or in the folder.
"""


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    made = argparse.ArgumentParser(
        prog="python -m analysis.report",
        description="Turn a study's runs into figures, tables, verdicts and a page that works offline.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("folder", nargs="?", type=Path, help="a study's results folder, such as results/report")
    made.add_argument("--experiment", metavar="NAME", help="take the runs of this MLflow experiment instead")
    made.add_argument("--tracking-uri", metavar="URI", help="where MLflow is (default: sqlite:///mlflow.db)")
    made.add_argument(
        "--out", type=Path, metavar="DIR", help="where to write an experiment's study (default: results/NAME)"
    )
    return made


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; return the exit code."""
    made = parser()
    options = made.parse_args(arguments)
    if (options.folder is None) == (options.experiment is None):
        made.error("give either a results folder or --experiment")
    if options.experiment is None and (options.out or options.tracking_uri):
        made.error("--out and --tracking-uri go with --experiment")
    try:
        folder = options.folder
        if options.experiment is not None:
            folder = options.out or Path("results") / options.experiment
            _fetch(options.experiment, options.tracking_uri, folder)
        study = build(folder)
    except StudyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(summary(study, folder))
    return 0


def _fetch(experiment: str, uri: str | None, folder: Path) -> None:
    """Bring an experiment's runs from MLflow, whose import alone takes seconds."""
    with _progress() as progress:
        task = progress.add_task("asking MLflow", total=None)
        from analysis.tracking import fetch

        fetch(experiment, uri, folder, lambda done, total: progress.update(task, completed=done, total=total))


def build(folder: Path) -> Study:
    """Bring the study's compact tables up to date, and write its figures, tables and page."""
    plan = read_plan(folder)
    with _progress() as progress:
        task = progress.add_task("reading runs", total=len(plan.cells))
        kept = collect(folder, plan, lambda done, total: progress.update(task, completed=done))
        study = assemble(plan, kept)
        try:
            compact.write(folder, kept)
            written = tables.all_tables(study)
            for name, table in written.items():
                _write(folder / "tables" / f"{name}.csv", tables.csv(table).encode())
            _write_figures(study, folder, written, progress)
        except OSError as error:
            raise StudyError(f"{folder} can't be written: {error.strerror}") from error
    return study


def _write_figures(study: Study, folder: Path, written: dict[str, pd.DataFrame], progress: Progress) -> None:
    """Write the figures as PNG and SVG, and the page with them inside; remove figures of an earlier time."""
    entries = [figures.main_figure(study), *figures.catalogue(study)] if len(study.done) else []
    task = progress.add_task("drawing", total=2 * len(entries))
    for entry in entries:
        with style.paper():
            figure = style.draw(entry.part(study), list(entry.panels))
            for kind in ("png", "svg"):
                _write(folder / "figures" / f"{entry.name}.{kind}", style.image(figure, kind))
        progress.advance(task)
    for old in (folder / "figures").glob("*.*"):
        if old.stem not in {entry.name for entry in entries} and old.suffix in (".png", ".svg"):
            old.unlink()
    command = f"python -m analysis.report results/{study.name}"
    html = page.render(study, written, command, lambda name: progress.advance(task))
    _write(folder / "index.html", html.encode())


def summary(study: Study, folder: Path) -> str:
    """Return what was done, for the terminal."""
    missing = f"; {len(study.missing)} of {len(study.runs)} runs are missing" if len(study.missing) else ""
    drawn = len(list((folder / "figures").glob("*.png")))
    return f"{folder / 'index.html'}: {len(study.done)} runs, {drawn} figures{missing}"


def _write(path: Path, content: bytes) -> None:
    write_whole(path, lambda temporary: temporary.write_bytes(content))


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


if __name__ == "__main__":
    sys.exit(main())
