"""Grid files: found, read, and checked in their outline. What their settings mean is checked in validation.py."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from a3c_core.errors import near_miss, printable, shown, unknown
from a3c_core.section import MOST_EPISODES
from a3c_core.yaml_text import Document, NotYaml, read_yaml
from a3c_core.yaml_text import Path as Place
from experiments.grid.cells import CASE, SEED, Grid
from experiments.grid.errors import GridError, Problem, UserError
from experiments.grid.settings import Flat, canonical, flatten, text_of

SHIPPED = Path(__file__).parents[1] / "grids"
_KEYS = ("name", "question", "prediction", "learned_above", "base", "axes", "cases", "seeds", "tracking")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}")
_CASE = re.compile(r"[\w.+-]{1,60}")


class GridFile(NamedTuple):
    """A grid, and where its parts stand in its file."""

    grid: Grid
    source: str
    place: Callable[[Place], str]
    problems: tuple[Problem, ...] = ()  # of its outline


def find_grid(name: str, here: Path | None = None) -> Path:
    """Return the grid file of that path, or of that name, with or without .yaml: from here, else of those shipped."""
    here = here or Path.cwd()
    for folder in (here, SHIPPED):
        for candidate in (folder / name, folder / f"{name}.yaml"):
            if os.path.isfile(candidate):  # unlike Path's, it takes a name that is too long for one that is not there
                return candidate
    names = sorted(path.stem for path in shipped_grids())
    meant = near_miss(Path(name).stem, names)
    hint = f"did you mean {meant}?" if meant else f"there are {', '.join(names)}, or give a path"
    raise UserError(f"no grid file {name}; {hint}")


def shipped_grids() -> list[Path]:
    """Return the grid files that come with the project."""
    return sorted(SHIPPED.glob("*.yaml"))


def read_grid(path: Path) -> GridFile:
    """Return the grid in the file with the mistakes of its outline; raise GridError if there is no outline."""
    source = _shown(path)
    try:
        document = read_yaml(path.read_text(encoding="utf-8"))
    except NotYaml as error:
        raise GridError(source, [Problem("", str(error))]) from error
    except UnicodeDecodeError as error:
        raise GridError(source, [Problem("", "not YAML: it is not a text file in UTF-8")]) from error
    except OSError as error:
        raise GridError(source, [Problem("", f"can't be read: {error.strerror}")]) from error
    if document.data is None:
        raise GridError(source, [Problem("", f"the file is empty; a grid has {', '.join(_KEYS)}")])
    if not isinstance(document.data, dict):
        raise GridError(source, [Problem("line 1", f"a grid must be a mapping with the keys {', '.join(_KEYS)}")])
    reader = _Reader(document)
    return GridFile(reader.grid(), source, reader.place, tuple(reader.problems))


def read_seeds(value: Any) -> tuple[int, ...]:
    """Return the seeds that a count or a list stands for; raise ValueError with the reason if it is neither."""
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value <= 10_000:
            raise ValueError(f"a count of seeds must be from 1 to 10,000, not {shown(value)}")
        return tuple(range(value))
    if not isinstance(value, list) or not value:
        raise ValueError("must be a count, such as 10, or a list, such as [0, 1, 2]")
    for seed in value:
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise ValueError(f"a seed must be a whole number from 0 on, not {shown(seed)}")
    if len(set(value)) < len(value):
        twice = next(seed for seed in value if value.count(seed) > 1)
        raise ValueError(f"{twice} appears twice")
    return tuple(value)


def read_every(value: Any) -> int:
    """Return how many episodes one is tracked of; raise ValueError with the reason if it is no such number."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_EPISODES:
        raise ValueError(
            f"must be a whole number of episodes, at least 1 and at most {MOST_EPISODES:,}, not {shown(value)}"
        )
    return value


def _shown(path: Path) -> str:
    """Return the path, relative where that is shorter."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _dotted(path: Place) -> str:
    return ".".join(map(str, path))


class _Reader:
    """Collects the parts of a grid, and every mistake on the way."""

    def __init__(self, document: Document):
        self._data: dict[str, Any] = document.data
        self._lines = {_dotted(path): line for path, line in document.lines.items()}
        self.problems: list[Problem] = []

    def place(self, path: Place) -> str:
        """Return "line 4, axes.workers": the nearest place known for the path."""
        named = _dotted(tuple(part for part in path if isinstance(part, str)))
        known = _dotted(path)
        while known and known not in self._lines:
            known = known.rpartition(".")[0]
        line = self._lines.get(known)
        return ", ".join(part for part in (f"line {line}" if line else "", named) if part)

    def refuse(self, path: Place, reason: str) -> None:
        self.problems.append(Problem(self.place(path), reason))

    def grid(self) -> Grid:
        for key in self._data:
            if key not in _KEYS:
                self.refuse((key,), unknown(key, _KEYS, "key"))
        base, axes, cases = self._base(), self._axes(), self._cases()
        self._refuse_overlaps(base, axes, cases)
        return Grid(
            name=self._name(),
            question=self._text("question"),
            prediction=self._text("prediction") if "prediction" in self._data else "",
            learned_above=self._learned_above(),
            base=base,
            axes=axes,
            cases=cases,
            seeds=self._seeds(),
            tracking_every=self._every(),
        )

    def _text(self, key: str) -> str:
        value = self._data.get(key)
        if not isinstance(value, str) or not value.strip():
            self.refuse((key,), f"{'must be text' if key in self._data else 'missing: every grid has one'}")
            return ""
        if printable(value) != value:
            self.refuse((key,), f"must not hold control characters, which a terminal would obey: {shown(value)}")
            return ""
        return " ".join(value.split())

    def _learned_above(self) -> float | None:
        value = self._data.get("learned_above")
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            self.refuse(("learned_above",), f"must be a score, such as 1 pipe, not {shown(value)}")
            return None
        return value

    def _name(self) -> str:
        name = self._text("name")
        if name and not _NAME.fullmatch(name):
            self.refuse(("name",), f"{shown(name)} can't name a directory: use letters, digits, '_', '-' and '.'")
        return name

    def _mapping(self, key: str) -> dict[str, Any]:
        value = self._data.get(key)
        if value is not None and not isinstance(value, dict):
            self.refuse((key,), f"must be a mapping of settings, not {shown(value)}")
        return value if isinstance(value, dict) else {}

    def _settings(self, content: dict[str, Any], path: Place) -> Flat:
        flat: Flat = {}
        for name, value in flatten(content):
            if name == SEED:
                self.refuse((*path, name), "seeds have a key of their own at the top: seeds")
            elif name in flat:
                self.refuse((*path, name), "set twice, once by its dotted name")
            else:
                flat[name] = canonical(name, value)
        return flat

    def _base(self) -> Flat:
        return self._settings(self._mapping("base"), ("base",))

    def _axes(self) -> dict[str, tuple[Any, ...]]:
        axes = {}
        for name, values in flatten(self._mapping("axes")):
            path = ("axes", name)
            if name in (SEED, CASE):
                self.refuse(path, f"{name}s have a key of their own at the top: {name}s")
            elif not isinstance(values, list) or not values:
                self.refuse(path, f"must be a list of values, such as [1, 2], not {shown(values)}")
            else:
                axes[name] = tuple(canonical(name, value) for value in values)
                self._refuse_repeats(path, values, axes[name])
        return axes

    def _refuse_repeats(self, path: Place, values: list[Any], canonical_values: tuple[Any, ...]) -> None:
        seen = set()
        for place, text in enumerate(map(text_of, canonical_values)):
            if text in seen:
                self.refuse((*path, place), f"{values[place]} appears twice")
            seen.add(text)

    def _cases(self) -> dict[str, Flat]:
        cases = {}
        for name, content in self._mapping("cases").items():
            path = ("cases", name)
            if not _CASE.fullmatch(name):
                self.refuse(path, "a case's name has only letters, digits, '_', '-', '+' and '.'")
            if not isinstance(content, dict):
                self.refuse(path, f"must be a mapping of settings, not {shown(content)}")
            else:
                cases[name] = self._settings(content, path)
        return cases

    def _refuse_overlaps(self, base: Flat, axes: dict[str, Any], cases: dict[str, Flat]) -> None:
        for name in axes:
            if name in base:
                self.refuse(("axes", name), "is fixed in base too: leave it out there")
            for case in (case for case, settings in cases.items() if name in settings):
                self.refuse(("axes", name), f"is fixed by the case {case} too: it can be only one of the two")

    def _seeds(self) -> tuple[int, ...]:
        try:
            return read_seeds(self._data.get("seeds", [0]))
        except ValueError as error:
            self.refuse(("seeds",), str(error))
            return (0,)

    def _every(self) -> int:
        tracking = self._mapping("tracking")
        for key in tracking:
            if key != "every":
                self.refuse(("tracking", key), unknown(key, ["every"], "key"))
        every = tracking.get("every", 1)
        try:
            return read_every(every)
        except ValueError as error:
            self.refuse(("tracking", "every"), str(error))
            return 1
