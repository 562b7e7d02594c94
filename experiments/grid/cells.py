"""A grid: one question, what varies, what is fixed. Expanding it is a pure function to an ordered tuple of cells."""

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from a3c_core.config import RunConfig
from a3c_core.schedules import ScheduleConfig, parse_workers
from experiments.grid.settings import Flat, canonical, nest, text_of

CASE, SEED = "case", "seed"


@dataclass(frozen=True)
class Grid:
    """The content of a grid file. Settings have dotted names."""

    name: str
    question: str
    prediction: str = ""  # what its author expects, and by which rule that is judged; written before any run
    learned_above: float | None = None  # a run with a lower final score has not learned; None: as its game says
    base: Flat = field(default_factory=dict)
    axes: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    cases: Mapping[str, Flat] = field(default_factory=dict)  # named combinations: one more axis
    seeds: tuple[int, ...] = (0,)
    tracking_every: int = 1  # episodes between two that MLflow is told of

    @property
    def all_axes(self) -> dict[str, list[Any]]:
        """What varies, but for the seed, in the order of a cell's id."""
        cases = {CASE: list(self.cases)} if self.cases else {}
        return {**cases, **{name: list(values) for name, values in self.axes.items()}}

    def as_data(self) -> dict[str, Any]:
        """Return the grid as plain data."""
        stated: dict[str, Any] = {"prediction": self.prediction} if self.prediction else {}
        if self.learned_above is not None:
            stated["learned_above"] = self.learned_above
        return {
            "name": self.name,
            "question": self.question,
            **stated,
            "base": dict(self.base),
            "axes": {name: list(values) for name, values in self.axes.items()},
            "cases": {name: dict(settings) for name, settings in self.cases.items()},
            "seeds": list(self.seeds),
            "tracking": {"every": self.tracking_every},
        }


class Combination(NamedTuple):
    """One point of a grid, not yet validated."""

    chosen: Flat  # its values on the axes, and its seed
    settings: Flat  # everything that differs from the defaults


class Cell(NamedTuple):
    """One run of a sweep."""

    id: str
    settings: Flat  # its values on the axes, and its seed
    config: RunConfig


def expand(grid: Grid) -> tuple[Cell, ...]:
    """Return the cells of a valid grid: the first axis varies slowest, the seed fastest."""
    short = short_names(grid)
    return tuple(
        Cell(cell_id(chosen, short), chosen, RunConfig.model_validate_json(json.dumps(nest(settings))))
        for chosen, settings in combinations(grid)
    )


def combinations(grid: Grid) -> Iterator[Combination]:
    """Yield the points of a grid. Axes of `schedule` vary only cells whose worker count is dynamic."""
    axes = grid.all_axes
    seen = set()
    for values in itertools.product(*axes.values(), grid.seeds):
        chosen = dict(zip((*axes, SEED), values, strict=True))
        case = grid.cases[chosen[CASE]] if grid.cases else {}
        settings = {**grid.base, **case, **{name: value for name, value in chosen.items() if name != CASE}}
        if not is_dynamic(settings.get("workers")):
            idle = [name for name in chosen if name.startswith("schedule.")]
            chosen = {name: value for name, value in chosen.items() if name not in idle}
            settings = {name: value for name, value in settings.items() if name not in idle}
        point = tuple((name, text_of(value)) for name, value in chosen.items())
        if point not in seen:
            seen.add(point)
            yield Combination(chosen, settings)


def is_dynamic(workers: Any) -> bool:
    """Return whether a worker count may change during a run; true also for what is no worker count."""
    if workers is None:
        return False
    try:
        span = parse_workers(canonical("workers", workers), ScheduleConfig())
    except ValueError:
        return True
    return span.start != span.end


def short_names(grid: Grid) -> dict[str, str]:
    """Return what axes are called in ids: the last part of their names, where no other axis shares it."""
    last = {name: name.rpartition(".")[2] for name in (*grid.all_axes, SEED)}
    words = list(last.values())
    return {name: word if words.count(word) == 1 else name for name, word in last.items()}


def cell_id(chosen: Flat, short: Mapping[str, str]) -> str:
    """Return a cell's id, such as `workers=10to20,seed=3`: safe as a directory's name."""
    return ",".join(f"{short[name]}={text_of(value)}" for name, value in chosen.items())
