"""What the command line changes in a grid: --set, --seeds and --only."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from a3c_core.errors import unknown
from a3c_core.yaml_text import Path as Place
from a3c_core.yaml_text import read_scalar
from experiments.grid.cells import SEED, Cell, Grid, short_names
from experiments.grid.errors import UserError
from experiments.grid.file import GridFile, read_every, read_seeds
from experiments.grid.settings import Flat, canonical, text_of

_EVERY = "tracking.every"


def with_settings(file: GridFile, assignments: Sequence[str]) -> GridFile:
    """Return the grid with `key=value` settings. They change its results, so they become part of its name too."""
    if not assignments:
        return file
    given = dict(_assignment(text, "--set") for text in assignments)
    for name in given:
        _refuse_varying(file.grid, name)
    every = _every(given.pop(_EVERY)) if _EVERY in given else file.grid.tracking_every
    values = {name: canonical(name, read_scalar(text)) for name, text in given.items()}
    suffix = ",".join(f"{name}={text_of(value)}" for name, value in values.items())
    grid = replace(
        file.grid,
        name=f"{file.grid.name}+{suffix}" if suffix else file.grid.name,
        base={**file.grid.base, **values},
        tracking_every=every,
    )

    def place(path: Place) -> str:
        return f"--set {path[1]}" if len(path) > 1 and path[0] == "base" and path[1] in given else file.place(path)

    return file._replace(grid=grid, place=place)


def with_seeds(file: GridFile, seeds: str | None) -> GridFile:
    """Return the grid with the seeds of `--seeds 3` or `--seeds 0,5,7`."""
    if seeds is None:
        return file
    try:
        value: Any = [read_scalar(part) for part in seeds.split(",")] if "," in seeds else read_scalar(seeds)
        return file._replace(grid=replace(file.grid, seeds=read_seeds(value)))
    except ValueError as error:
        raise UserError(f"--seeds {seeds}: {error}") from error


def select(grid: Grid, cells: Sequence[Cell], choices: Sequence[str]) -> tuple[Cell, ...]:
    """Return the cells that meet one of the `choices`, such as `workers=10,seed=0`; all of them if none is given."""
    if not choices:
        return tuple(cells)
    parsed = [_choice(grid, cells, choice) for choice in choices]
    chosen = tuple(cell for cell in cells if any(_meets(cell, choice) for choice in parsed))
    if not chosen:
        raise UserError(f"--only {' --only '.join(choices)}: no cell has all of these")
    return chosen


def _choice(grid: Grid, cells: Sequence[Cell], choice: str) -> Flat:
    full = {word: name for name, word in short_names(grid).items()}
    full |= {name: name for name in (*grid.all_axes, SEED)}
    parsed = {}
    for part in choice.split(","):
        name, text = _assignment(part, "--only")
        if name not in full:
            raise UserError(f"--only {part}: {unknown(name, full, 'axis')}")
        value = text_of(canonical(full[name], text))
        there = list(dict.fromkeys(text_of(cell.settings.get(full[name])) for cell in cells))
        if value not in there:
            raise UserError(f"--only {part}: no cell has it; there are {', '.join(there)}")
        parsed[full[name]] = value
    return parsed


def _meets(cell: Cell, choice: Flat) -> bool:
    return all(text_of(cell.settings.get(name)) == value for name, value in choice.items())


def _assignment(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name.strip() and equals and value.strip()):
        raise UserError(f"{option} {text}: write it as key=value")
    return name.strip(), value.strip()


def _every(text: str) -> int:
    try:
        return read_every(read_scalar(text))
    except ValueError as error:
        raise UserError(f"--set {_EVERY}={text}: {error}") from error


def _refuse_varying(grid: Grid, name: str) -> None:
    if name == SEED:
        raise UserError("--set seed: choose seeds with --seeds")
    if name in grid.axes:
        raise UserError(f"--set {name}: it varies in this grid; choose among its values with --only {name}=…")
    for case in (case for case, settings in grid.cases.items() if name in settings):
        raise UserError(f"--set {name}: the case {case} sets it; choose among the cases with --only case=…")
