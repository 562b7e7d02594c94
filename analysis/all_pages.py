"""The command that builds the pages of all studies and their index: `python -m analysis.all_pages --help`."""

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from a3c_core.command_line.arguments import Parser
from a3c_core.errors import on_a_screen

EXAMPLES = """\
examples:
  python -m analysis.all_pages                 # index.html and figures/ of each study, and results/index.html
  python -m analysis.all_pages /tmp/results    # the same for another folder of studies
  python -m analysis.all_pages --tracked       # README.md, main.png and tables/ of each study, after a change of code

Only files that git ignores are written. What git tracks (README.md, main.png, tables/) is written where it is missing,
and brought up to date by --tracked, or by `python -m analysis.report results/<study>`.

Exit codes: 0 all pages are written, 2 a mistake on the command line or in a folder.
"""


def main(arguments: list[str] | None = None) -> int:
    """Build the pages and the index; return the exit code."""
    parser = Parser("analysis.all_pages", "Build the page of every study, and an index of all studies.", EXAMPLES)
    parser.add_argument(
        "results", nargs="?", type=Path, default=Path("results"), help="the folder of studies (default: results)"
    )
    parser.add_argument("--tracked", action="store_true", help="bring what git tracks up to date, and build no pages")
    given = parser.parse_args(arguments)
    results = given.results
    from a3c_core.records.layout import ResultsError
    from a3c_core.system.cores import cores
    from analysis.pages import index  # slow to import, not needed for --help

    folders = index.studies(results)
    if not folders:
        parser.error(f"{results} holds no study: give a folder of studies, such as results")
    entries, problems = [], []
    with ProcessPoolExecutor(min(cores(), len(folders)), get_context("spawn")) as pool:
        build_one = index.build_tracked if given.tracked else index.build_one
        for task in [pool.submit(build_one, folder) for folder in folders]:
            try:
                entry, said = task.result()
                entries.append(entry)
                print(said, flush=True)
            except (ResultsError, OSError) as error:
                problems.append(f"error: {on_a_screen(str(error))}")
    if not given.tracked:
        print(f"{index.write(results, entries)}: {len(entries)} of {len(folders)} studies")
    print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
    return 2 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
