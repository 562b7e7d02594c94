"""`python -m analysis.timeline RUN` draws who does what over a few hundred milliseconds of a run, as a Gantt strip."""

import sys
from pathlib import Path

from a3c_core.command_line.arguments import Parser, new_file, positive_seconds
from a3c_core.errors import on_a_screen

EXAMPLES = """\
examples:
  python -m analysis.timeline results/report/cells/workers=10,seed=0         # writes timeline.png there
  python -m analysis.timeline RUN --at 60 --seconds 0.5 --out strip.png      # half a second, a minute into the run

A run in virtual time is played again from its beginning up to there; of a real one the records tell when episodes were
played and when the master was at work. Exit codes: 0 it is drawn, 2 a mistake on the command line or in the folder.
"""
_USUAL_S = 5.0  # into the run: the start, where everybody does the same, is over


def parser() -> Parser:
    """Return the command line's parser."""
    made = Parser("analysis.timeline", "Draw who does what over a few hundred milliseconds of a run.", EXAMPLES)
    made.add_argument("run", type=Path, metavar="RUN", help="a run's folder: a cell of a study, or what train wrote")
    made.add_argument("--at", type=positive_seconds, help="seconds into the run (default: 5, or near its end)")
    made.add_argument("--seconds", type=positive_seconds, default=0.3, help="to show (default: 0.3)")
    made.add_argument("--out", type=new_file, metavar="FILE", help="default: timeline.png in the run's folder")
    return made


def main(arguments: list[str] | None = None) -> int:
    """Draw, and say in a sentence what is seen; return the exit code."""
    options = parser().parse_args(arguments)
    from a3c_core.records.layout import ResultsError  # slow to import, and not needed for --help
    from analysis.data.spans import settings_of, spans_until
    from analysis.figures.gantt import draw_strip

    path = options.out or options.run / "timeline.png"
    try:
        config = settings_of(options.run)
        at_s = _USUAL_S if options.at is None else options.at
        spans = spans_until(options.run, config, at_s + options.seconds)
        sentence = draw_strip(spans, config, options.at, options.seconds, path)
    except (ResultsError, OSError, ValueError) as error:
        print(f"error: {on_a_screen(str(error))}", file=sys.stderr)
        return 2
    print(f"{sentence}\nWritten to {path}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
