"""A grid, validated whole before anything runs: every mistake of every cell, each said once."""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from a3c_core.build import misfit
from a3c_core.config import SECTIONS, RunConfig
from a3c_core.errors import in_words, near_miss, shown, unknown
from a3c_core.schedules import ScheduleConfig, parse_workers
from a3c_core.virtual.capacity import profile_of
from experiments.grid.cells import CASE, Cell, Combination, Grid, cell_id, combinations, short_names
from experiments.grid.errors import GridError, Problem
from experiments.grid.file import GridFile
from experiments.grid.settings import Flat, all_names, names_in, nest

_MOST_CELLS = 100_000
_LONGEST_NAME = 200  # bytes of a directory's name: file systems allow 255
_TOO_LONG = f"is too long for a directory: at most {_LONGEST_NAME} bytes"
_MOST_DOTS = 9  # in a setting's name, lest settings be nested too deeply to be read


def validated_cells(file: GridFile) -> tuple[Cell, ...]:
    """Return the cells of a grid, or raise GridError with every mistake."""
    grid = file.grid
    size = math.prod(len(values) for values in grid.all_axes.values()) * len(grid.seeds)
    if size > _MOST_CELLS:
        raise GridError(file.source, [Problem(file.place(("axes",)), f"{size:,} cells; {_MOST_CELLS:,} is the most")])
    short = short_names(grid)
    cells, problems = [], list(file.problems)
    if _is_too_long(grid.name):
        problems.append(Problem(file.place(("name",)), f"the study's name {shown(grid.name)} {_TOO_LONG}"))
    for point in _schedules(grid):
        _config(file, point, problems)
    for point in combinations(grid):
        identity = cell_id(point.chosen, short)
        if _is_too_long(identity):
            problems.append(Problem(file.place(("axes",)), f"the id {shown(identity)} {_TOO_LONG}"))
        config = _config(file, point, problems)
        if config is not None:
            cells.append(Cell(identity, point.chosen, config))
    if problems:
        raise GridError(file.source, problems)
    return tuple(cells)


def _schedules(grid: Grid) -> Iterator[Combination]:
    """Yield every value on the schedule's axes as if workers were dynamic: where they are not, no cell has it."""
    for name, values in grid.axes.items():
        if name.startswith("schedule."):
            yield from (Combination({}, {"workers": "1->2", name: value}) for value in values)


def _is_too_long(name: str) -> bool:
    return len(name.encode(errors="surrogateescape")) > _LONGEST_NAME


def _config(file: GridFile, point: Combination, problems: list[Problem]) -> RunConfig | None:
    deep = [name for name in point.settings if name.count(".") > _MOST_DOTS]
    if deep:
        problems += [Problem(_place(file, point, name), unknown(name, names_in())) for name in deep]
        return None
    try:
        config = RunConfig.model_validate_json(json.dumps(nest(point.settings)), strict=True)
    except KeyError as error:
        problems.append(Problem(_place(file, point, error.args[0]), "is a group of settings and has no value itself"))
    except ValidationError as error:
        problems += [_problem(file, point, details) for details in error.errors()]
        problems += _workers_problem(file, point)
    else:
        problems += [Problem(_place(file, point, name), reason) for name, reason in _obstacles(config)]
        return config
    return None


def _obstacles(config: RunConfig) -> Iterator[tuple[str, str]]:
    """Yield what keeps a valid configuration from running, as (setting, reason)."""
    if (found := misfit(config)) is not None:
        yield found
    try:
        profile_of(config)
    except (ValueError, OSError) as error:
        yield "profile", " ".join(str(error).split())


def _workers_problem(file: GridFile, point: Combination) -> Iterator[Problem]:
    """Yield what is wrong with the worker count, which pydantic does not look at where it finds another mistake."""
    workers = point.settings.get("workers", 1)
    try:
        parse_workers(str(workers), ScheduleConfig())
    except ValueError as error:
        yield Problem(_place(file, point, "workers"), str(error))


def _problem(file: GridFile, point: Combination, details: ErrorDetails) -> Problem:
    """Return a mistake that pydantic found, in a user's words."""
    name = ".".join(part for part in details["loc"] if isinstance(part, str) and "[" not in part)
    reason = _reason(name, details, point.settings)
    return Problem(_place(file, point, name or _culprit(point, reason)), reason)


def _reason(name: str, details: ErrorDetails, settings: Flat) -> str:
    kind, given = details["type"], details["input"]
    if kind == "extra_forbidden":
        return _unknown_setting(name, settings)
    if name == "workers":
        return f"{shown(str(given))} is not a worker count: write 10, 10->20 or auto"  # as parse_workers has it
    if kind in ("model_type", "model_attributes_type"):
        return f"is a group of settings: {', '.join(names_in(name, settings))}"
    return in_words(details)


def _unknown_setting(name: str, settings: Flat) -> str:
    """Return why `name` is refused; one that only lacks its group is told so, and one of another algorithm too."""
    group, _, last = name.rpartition(".")
    siblings = names_in(group, settings)
    if group in SECTIONS and name in all_names():
        chooser = SECTIONS[group].chooser
        part = settings.get(chooser, RunConfig.model_fields[chooser].default)
        return f"{chooser} {part} has no such setting; it has {', '.join(siblings) or 'none'}"
    elsewhere = [full for full in all_names() if full.rpartition(".")[2] == last]
    if elsewhere and not near_miss(last, siblings):
        return f"unknown setting; did you mean {elsewhere[0]}?"
    return unknown(last, siblings or all_names())


def _place(file: GridFile, point: Combination, name: str) -> str:
    """Return where the file, or the command line, sets `name`, or a setting below it, for the cell `point`."""
    grid = file.grid
    case = point.chosen.get(CASE) if grid.cases else None
    for full in (name, *(other for other in point.settings if name and other.startswith(f"{name}."))):
        if full in grid.axes:
            return file.place(("axes", full, list(grid.axes[full]).index(point.settings[full])))
        if case is not None and full in grid.cases[case]:
            return file.place(("cases", case, full))
        if full in grid.base:
            return file.place(("base", full))
    return name


def _culprit(point: Combination, reason: str) -> str:
    """Return the setting that a message about a whole configuration speaks of: by its value, or else by its name."""
    settings: dict[str, Any] = point.settings
    by_value = [name for name, value in settings.items() if repr(str(value)) in reason]
    by_name = [name for name in settings if re.search(rf"\b{re.escape(name.rpartition('.')[2])}\b", reason)]
    return next(iter(by_value + by_name), "")
