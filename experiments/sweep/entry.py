"""From the parsed command line to a command and its exit code."""

import argparse
import sys

from rich.console import Console

from a3c_core.errors import on_a_screen
from a3c_core.records.layout import ResultsError
from a3c_core.system.standard_streams import secure_streams
from experiments.grid.errors import UserError
from experiments.grid.file import find_grid, read_grid
from experiments.grid.overrides import with_settings
from experiments.grid.validation import validated_cells
from experiments.sweep import commands
from experiments.sweep.request import Request
from experiments.tracking.uri import tracking_uri

_PLAIN_WIDTH = 140  # characters, where there is no terminal to ask


def carry_out(options: argparse.Namespace) -> int:
    """Do what the options ask for; a user's mistake is said in one message, without a traceback."""
    secure_streams()
    console = Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH)
    try:
        if options.list:
            return commands.list_grids(console)
        uri = None if options.no_tracking else tracking_uri(options.tracking_uri)
        if options.sync:
            assert uri is not None
            return commands.sync(options.results, _study_names(options), uri, console)
        request = Request(
            grid=options.grid,
            results=options.results,
            uri=uri,
            only=options.only,
            settings=options.set,
            seeds=options.seeds,
            jobs=options.jobs,
            fresh=options.fresh,
            fail_fast=options.fail_fast,
            backend=options.backend,
            address=options.address,
            page=not options.no_page,
        )
        return commands.dry_run(request, console) if options.dry_run else commands.run(request, console)
    except (UserError, ResultsError) as error:
        print(f"error: {on_a_screen(str(error))}", file=sys.stderr)
        return commands.MISTAKE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return commands.INTERRUPTED


def _study_names(options: argparse.Namespace) -> list[str]:
    """Return the study that --sync is for, if one is named."""
    if options.grid is None:
        return []
    file = with_settings(read_grid(find_grid(options.grid)), options.set)
    validated_cells(file)
    return [file.grid.name]
