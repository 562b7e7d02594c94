"""Readers, one for each system: each takes a log as it is and returns the same `Measurements`.

A format is recognised by its lines. A reader is a module with NAME, `is_mine(line)` and `read(lines, source)`.
"""

from pathlib import Path

from a3c.advise.measurements import LogError, Measurements
from a3c.advise.readers import areal, columns, own_runs, rllib, sample_factory, slime, timer, verl
from a3c.advise.readers.text import Line, read_lines
from a3c_core.errors import shown

READERS = {reader.NAME: reader for reader in (verl, areal, slime, sample_factory, rllib)}
FORMATS = (*READERS, "miles", timer.NAME)
_LOOKED_AT = 20_000  # lines: a format shows early


def read(name: str, form: str | None = None, column_map: dict[str, str] | None = None) -> Measurements:
    """Return what a log says.

    Args:
        name: a file, a folder (of AReaL's sessions, or of one of our runs), or runs:/ID in MLflow.
        form: one of FORMATS, or None to recognise it by its lines.
        column_map: from names of `columns.NAMES` to the columns of a CSV or JSONL of some other system.

    Raises:
        LogError: in one sentence for the user, with the line where there is one.
    """
    path = Path(name)
    try:
        if name.startswith("runs:/"):
            return timer.as_measurements(own_runs.read_mlflow(name), name)
        if path.is_dir():
            return areal.read_folder(path) or timer.as_measurements(own_runs.read_cell(path), name)
        if not path.is_file():
            raise LogError(
                f"no log {shown(name)}: name a file, a folder of AReaL's sessions or of a run of ours, or runs:/ID"
            )
        if path.suffix == ".parquet":
            return timer.as_measurements(timer.read_file(path), name)
        lines = read_lines(path)
        if column_map is not None:
            return columns.read(lines, name, column_map)
        form = _recognised(lines) if form is None else {"miles": slime.NAME}.get(form, form)
        if form == timer.NAME:
            return timer.as_measurements(timer.read_file(path), name)
        return READERS[form].read(_mine(form, lines), name)
    except OSError as error:
        raise LogError(f"can't read the log {shown(name)}: {error.strerror or error}") from error


def _recognised(lines: list[Line]) -> str:
    """Return whose lines they are: our timer's, if no other system knows any of them."""
    first: dict[str, int] = {}
    for line in lines[:_LOOKED_AT]:
        for name, reader in READERS.items():
            if name not in first and reader.is_mine(line):
                first[name] = line.number
    if len(first) > 1:
        (one, at), (other, there), *_ = sorted(first.items(), key=lambda item: item[1])
        raise LogError(f"the log has lines of {one} (line {at}) and of {other} (line {there}): say which by --format")
    if first:
        return next(iter(first))
    fields = lines[0].text.split(",")
    if (len(fields) > 1 and "worker" not in fields and not timer.is_number(fields[1])) or "{" in lines[0].text[:5]:
        known = ", ".join(FORMATS)
        raise LogError(f"the log is of none of the systems known ({known}): say what its columns are by --columns")
    return timer.NAME


def _mine(form: str, lines: list[Line]) -> list[Line]:
    """Return the lines that a reader should see: all of those that belong together, of other logs those it knows."""
    if form == rllib.NAME or (form == sample_factory.NAME and any(map(sample_factory.is_mine, lines))):
        return lines
    mine = [line for line in lines if READERS[form].is_mine(line) or "│" in line.text]
    if not mine:
        raise LogError(f"the log has no line of {form}")
    return mine
