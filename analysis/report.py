"""The command that turns a study into a page: `python -m analysis.report --help`."""

import sys
from pathlib import Path

from a3c_core.command_line.arguments import Parser
from a3c_core.errors import on_a_screen

EXAMPLES = """\
examples:
  python -m analysis.report results/report                 # write index.html, README.md, main.png, figures/, tables/
  python -m analysis.report results/report results/slides  # both beside each other: results/report+slides/index.html
  python -m analysis.report --experiment report            # the same from MLflow, into results/report
  python -m analysis.report --experiment report --tracking-uri http://localhost:5000 --out /tmp/report
  python -m analysis.report results/report --figure mypackage.module:FIGURE --claim mypackage.module:CLAIM

Figures are drawn from runs.parquet and curves.parquet, which are brought up to date from the folder's cells where there
are any. Exit codes: 0 the page is written (it says what is missing), 2 a mistake on the command line or in the folder.
"""


def parser() -> Parser:
    """Return the command line's parser."""
    about = "Turn a study's runs into figures, tables, verdicts and a page that works offline."
    made = Parser("analysis.report", about, EXAMPLES)
    made.add_argument(
        "folders",
        nargs="*",
        type=Path,
        metavar="folder",
        help="a study's results folder, or those of studies to compare",
    )
    made.add_argument("--experiment", metavar="NAME", help="take the runs of this MLflow experiment instead")
    made.add_argument("--tracking-uri", metavar="URI", help="where MLflow is (default: sqlite:///mlflow.db)")
    made.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where to write an experiment (results/NAME) or a comparison (results/A+B)",
    )
    made.add_argument(
        "--figure", action="append", default=[], metavar="MODULE:NAME", help="also draw this figure of your own"
    )
    made.add_argument(
        "--claim", action="append", default=[], metavar="MODULE:NAME", help="also judge this claim of your own"
    )
    made.add_argument("--svg", action="store_true", help="also write every panel as figures/*.svg")
    return made


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; return the exit code."""
    made = parser()
    options = made.parse_args(arguments)
    if bool(options.folders) == (options.experiment is not None):
        made.error("give either a results folder or --experiment")
    if options.experiment is None and options.tracking_uri:
        made.error("--tracking-uri goes with --experiment")
    if len(options.folders) == 1 and options.out:
        made.error("--out goes with --experiment or with several folders")
    if options.experiment is not None and options.out is None and Path(options.experiment).name != options.experiment:
        made.error(f"--experiment {options.experiment} can't name a folder of results: choose one with --out")
    from a3c_core.records.layout import ResultsError
    from a3c_core.system.standard_streams import secure_streams
    from analysis.pages.build import build, compare, fetch_experiment, summary  # slow to import, not needed for --help
    from analysis.pages.extras import load_extras

    secure_streams()
    try:
        extras = load_extras(options.figure, options.claim)._replace(svg=options.svg)
        folder = options.out or _default_folder(options.folders, options.experiment)
        if options.experiment is not None:
            fetch_experiment(options.experiment, options.tracking_uri, folder)
        several = len(options.folders) > 1
        built = compare(options.folders, folder, extras) if several else build(folder, extras)
    except (ResultsError, OSError) as error:
        print(f"error: {on_a_screen(str(error))}", file=sys.stderr)
        return 2
    print(summary(built, folder))
    return 0


def _default_folder(folders: list[Path], experiment: str | None) -> Path:
    """Return where the page goes: into its study's folder; of several, into one beside the first."""
    if experiment is not None:
        return Path("results") / experiment
    return folders[0].with_name("+".join(folder.resolve().name for folder in folders)) if folders[1:] else folders[0]


if __name__ == "__main__":
    sys.exit(main())
