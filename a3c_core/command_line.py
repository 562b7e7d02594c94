"""What the commands have in common: a user's mistake is one line and exit code 2; the next command works as printed."""

import argparse
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """Shows examples as they were written, and says what is wrong in one line."""

    def __init__(self, program: str, description: str, examples: str):
        super().__init__(
            prog=f"python -m {program}",
            description=description,
            epilog=examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {' '.join(message.split())} (--help shows examples)\n")


def positive_seconds(text: str) -> float:
    """Return the seconds that `text` says, which must be more than 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"a positive number of seconds is needed, not {text!r}")
    return value


def duration(seconds: float) -> str:
    """Return 12 s, 3 min 20 s or 1 h 02 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60:02d} min"


def python_command(*words: object) -> str:
    """Return `python WORDS...` as a user can paste it here, whether or not the environment is activated."""
    return shlex.join([_this_python(), *map(str, words)])


def shown_path(path: Path) -> str:
    """Return the path, relative where it lies below the current directory."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _this_python() -> str:
    """Return `python` if a shell would find this very Python by it, else its path."""
    found = shutil.which("python")
    here = Path(sys.executable)
    if found is not None and os.path.samefile(Path(found).parent, here.parent):  # not the file: a link to the system's
        return "python"
    return shown_path(here)
