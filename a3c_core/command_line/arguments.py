"""What the commands have in common: a user's mistake is one line and exit code 2; the next command works as printed."""

import argparse
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from a3c_core.errors import on_a_screen, shown

MISTAKE = 2  # exit code; docs/exit_codes.md has them all
_LONGEST_S = 86_400.0  # a day


class Parser(argparse.ArgumentParser):
    """Shows examples as they were written, and says what is wrong in one line."""

    def __init__(self, program: str, description: str, examples: str):
        super().__init__(
            prog=program if program.endswith(".py") else f"python -m {program}",
            description=description,
            epilog=examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def error(self, message: str) -> NoReturn:
        self.exit(MISTAKE, f"error: {on_a_screen(' '.join(message.split()))} (--help shows examples)\n")


def positive_seconds(text: str) -> float:
    """Return the seconds that `text` says, which must be more than 0, and at most a day."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= _LONGEST_S:
        raise argparse.ArgumentTypeError(f"a positive number of seconds is needed, up to a day, not {shown(text)}")
    return value


def duration(seconds: float) -> str:
    """Return 12 s, 3 min 20 s or 1 h 02 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60:02d} min"


def in_seconds(seconds: float) -> str:
    """Return a duration of any size to three digits: 31.6 ms, 2.1 s, 3 min 20 s."""
    if seconds >= 60:
        return duration(seconds)
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns" if seconds else "0 s"


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


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """Return what reads a whole number from `least` to `most`."""

    def read(text: str) -> int:
        if not text.isdecimal() or len(text) > len(str(most)):
            raise argparse.ArgumentTypeError(f"a whole number up to {most:,} is needed, not {shown(text)}")
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"at least {least} is needed")
        if int(text) > most:
            raise argparse.ArgumentTypeError(f"at most {most:,} is possible")
        return int(text)

    return read


def new_file(text: str) -> Path:
    """Return the path `text`, which must be possible to write a file to: said before work is done, not after."""
    path = Path(text)
    try:
        if path.is_dir():
            raise argparse.ArgumentTypeError(f"{shown(text)} is a directory: the name of a file is needed")
        if path.exists() and not path.is_file():  # a device would be replaced by a file
            raise argparse.ArgumentTypeError(f"{shown(text)} is no regular file, and can't be written to")
        folder = path.absolute().parent
        while not folder.exists():
            folder = folder.parent
        with tempfile.TemporaryFile(dir=folder):
            return path
    except OSError as error:  # nothing can be written there, or the name is too long
        raise argparse.ArgumentTypeError(f"can't write {shown(text)}: {error.strerror}") from error
