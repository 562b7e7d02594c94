"""The command that turns a study into a page: `python -m analysis.report --help`."""

import sys
from pathlib import Path

from a3c_core.tools.command_line import Parser
from a3c_core.tools.errors import on_a_screen

EXAMPLES = """\
examples:
  python -m analysis.report results/report                 # write results/report/index.html, figures/ and tables/
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
    made.add_argument("folder", nargs="?", type=Path, help="a study's results folder, such as results/report")
    made.add_argument("--experiment", metavar="NAME", help="take the runs of this MLflow experiment instead")
    made.add_argument("--tracking-uri", metavar="URI", help="where MLflow is (default: sqlite:///mlflow.db)")
    made.add_argument(
        "--out", type=Path, metavar="DIR", help="where to write an experiment's study (default: results/NAME)"
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
    if (options.folder is None) == (options.experiment is None):
        made.error("give either a results folder or --experiment")
    if options.experiment is None and (options.out or options.tracking_uri):
        made.error("--out and --tracking-uri go with --experiment")
    if options.experiment is not None and options.out is None and Path(options.experiment).name != options.experiment:
        made.error(f"--experiment {options.experiment} can't name a folder of results: choose one with --out")
    from a3c_core.machine.standard_streams import secure_streams
    from a3c_core.results.layout import ResultsError
    from analysis.pages.build import build, fetch_experiment, summary  # slow to import, and not needed for --help
    from analysis.pages.extras import load_extras

    secure_streams()
    try:
        extras = load_extras(options.figure, options.claim)._replace(svg=options.svg)
        folder = options.folder
        if options.experiment is not None:
            folder = options.out or Path("results") / options.experiment
            fetch_experiment(options.experiment, options.tracking_uri, folder)
        built = build(folder, extras)
    except (ResultsError, OSError) as error:
        print(f"error: {on_a_screen(str(error))}", file=sys.stderr)
        return 2
    print(summary(built, folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
