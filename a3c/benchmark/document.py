"""Tables of benchmarks in a document: each has a place there, between two comments, and is replaced as a whole."""

import os
import platform
import re
from pathlib import Path

import a3c_core


class NoPlace(ValueError):
    """The document has no place for a benchmark's table; the message is for the user."""


def put_into(document: Path, benchmark: str, table: str) -> None:
    """Replace what stands between `<!-- benchmark NAME -->` and `<!-- end -->` with a table and where it was made."""
    refuse_without_place(document, benchmark)
    content = f"{table}\n\n{_machine()}\n"
    text = _place(benchmark).sub(lambda found: found[1] + content + found[2], document.read_text(encoding="utf-8"))
    document.write_text(text, encoding="utf-8")


def refuse_without_place(document: Path, benchmark: str) -> None:
    """Raise NoPlace if a document has none for a benchmark's table."""
    if not _place(benchmark).search(document.read_text(encoding="utf-8")):
        raise NoPlace(f"{document} has no place for it: a line <!-- benchmark {benchmark} --> and, later, <!-- end -->")


def _place(benchmark: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- benchmark {benchmark} -->\n).*?(<!-- end -->)", re.DOTALL)


def _machine() -> str:
    """Return where figures come from, in a sentence."""
    cores = f"{os.cpu_count()} cores of {_processor()}"
    return f"Measured with a3c_core {a3c_core.__version__} on {cores}, Python {platform.python_version()}."


def _processor() -> str:
    """Return the processor's name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())
