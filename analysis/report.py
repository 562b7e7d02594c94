"""The command that turns a study into a page: `python -m analysis.report --help`."""

import argparse
import sys
from pathlib import Path

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
    from a3c_core.results.layout import ResultsError
    from a3c_core.standard_streams import secure_streams
    from analysis.build import build, fetch_experiment, summary  # slow to import, and not needed for --help

    secure_streams()
    try:
        folder = options.folder
        if options.experiment is not None:
            folder = options.out or Path("results") / options.experiment
            fetch_experiment(options.experiment, options.tracking_uri, folder)
        built = build(folder)
    except ResultsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(summary(built, folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
