"""A study in memory: one table of runs, one of binned curves, and the ways to ask them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from a3c_core.games.base import FLAPPY_BIRD
from a3c_core.records.layout import CELLS, DONE, EPISODES, ResultsError
from a3c_core.schedules import Span
from analysis.data import statistics
from analysis.data.score import StudyScore, score_of

StudyError = ResultsError  # a study can't be read or shown; the message is for the user
_TIME_UNITS = ((3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


@dataclass(frozen=True, eq=False)  # equal only to itself, so that what is computed of it can be kept
class Study:
    """A study's tables: `runs` has one row per planned cell, `curves` one per bin of each run that is done."""

    name: str
    question: str
    axes: Mapping[str, list[Any]]
    runs: pd.DataFrame
    curves: pd.DataFrame
    score: StudyScore = field(default_factory=lambda: score_of(FLAPPY_BIRD))  # of the game that was played
    whole: "Study | None" = None  # what this is a part of
    folder: Path | None = None  # where it lies, if it was read from there
    identical: tuple[tuple[str, str], ...] = ()  # (schedule, another with the very same runs, which is left out)
    prediction: str = ""  # of the grid's author, before the runs
    origins: tuple[str, ...] = ()  # the folders of the studies whose runs these are, if it is a comparison

    @cached_property
    def done(self) -> pd.DataFrame:
        """The runs that ended as they should."""
        return self.runs[self.runs["status"].isin(DONE)]

    @property
    def plays_flappy_bird(self) -> bool:
        """Whether the game is Flappy Bird, ours or PLE's: the only one that the report and the slides speak of."""
        games = self.runs["environment.id"] if "environment.id" in self.runs else pd.Series([FLAPPY_BIRD])
        return all(str(game).endswith("/FlappyBird-v0") for game in games)

    @cached_property
    def missing(self) -> pd.DataFrame:
        """The cells without a usable run."""
        return self.runs[~self.runs["status"].isin(DONE)]

    @property
    def variants(self) -> list[str]:
        """The settings besides worker count and seed, as text, in the order of the plan; one "" if there are none."""
        return list(dict.fromkeys(self.runs["variant"]))

    def of_variant(self, variant: str) -> "Study":
        """Return the part of the study with these settings: the same object each time, with what it has computed."""
        if variant not in self._parts:
            runs = self.runs[self.runs["variant"] == variant]
            curves = self.curves[self.curves["cell"].isin(runs["cell"])]
            self._parts[variant] = replace(self, runs=runs, curves=curves, whole=self.whole or self)
        return self._parts[variant]

    @cached_property
    def _parts(self) -> dict[str, "Study"]:
        """The parts that were asked for."""
        return {}

    @property
    def done_variants(self) -> list[str]:
        """Those of the variants that have something done."""
        return list(dict.fromkeys(self.done["variant"]))

    @cached_property
    def main(self) -> "Study":
        """The part whose settings come first in the plan and have something done."""
        return self.of_variant((self.done_variants or self.variants)[0])

    @cached_property
    def compares_settings(self) -> bool:
        """Whether the study is about settings rather than worker counts: each is run with one worker count only."""
        counts = self.runs.groupby("variant")["schedule"].nunique()
        return len(counts) > 1 and bool((counts == 1).all())

    @cached_property
    def shown(self) -> "Study":
        """The part that curves are drawn of: the main settings, or a line for each if the study compares settings."""
        if not self.compares_settings:
            return self.main
        tints = {variant: number for number, variant in enumerate(self.variants)}
        runs = self.runs.assign(schedule=self.runs["variant"], tint=self.runs["variant"].map(tints), variant="")
        return replace(self, runs=runs)

    @property
    def shown_variant(self) -> str:
        """The settings that are shown, where there are others too that are not; "" elsewhere."""
        if self.compares_settings or len(self.done_variants) < 2:
            return ""
        return self.main.variants[0]

    def schedules(self, dynamic: bool | None = None, done: bool = True) -> list["Schedule"]:
        """Return the schedules, by their worker counts: those with a run that is done, or (done=False) all planned."""
        found = self._done_schedules if done else self._planned_schedules
        return [schedule for schedule in found if dynamic is None or schedule.dynamic == dynamic]

    @cached_property
    def _done_schedules(self) -> list["Schedule"]:
        return self._placed(_schedules_of(self.done))

    @cached_property
    def _planned_schedules(self) -> list["Schedule"]:
        return self._placed(_schedules_of(self.runs))

    def _placed(self, schedules: list["Schedule"]) -> list["Schedule"]:
        """Return schedules with their places, in the order that these are part of."""
        placed = (schedule._replace(place=self.places.get(schedule.label, 0)) for schedule in schedules)
        return sorted(placed, key=Schedule.order)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The place of every schedule among all that the study plans: its marker, in every figure."""
        if self.whole is not None:
            return self.whole.places
        ordered = sorted(_schedules_of(self.runs), key=Schedule.order)
        return {schedule.label: place for place, schedule in enumerate(ordered)}

    def fixed(self, workers: int) -> "Schedule | None":
        """Return the schedule of that many fixed workers, if a run of it is done."""
        return next((schedule for schedule in self.schedules(dynamic=False) if schedule.start == workers), None)

    def values(self, schedule: "Schedule", column: str) -> pd.Series:
        """Return `column` of the schedule's runs that are done, by seed."""
        return self._by_schedule.get(schedule.label, self._no_runs)[column]

    @cached_property
    def _no_runs(self) -> pd.DataFrame:
        return self.done.iloc[:0].set_index("seed")

    @cached_property
    def _by_schedule(self) -> dict[str, pd.DataFrame]:
        """The runs that are done, by seed, of each schedule's label; asked for thousands of times by a page."""
        return {str(label): rows.set_index("seed").sort_index() for label, rows in self.done.groupby("schedule")}

    def estimate(self, schedule: "Schedule", column: str) -> statistics.Estimate:
        """Return the interquartile mean of `column` over the schedule's runs, leaving out NaN."""
        return statistics.estimate(self.values(schedule, column).dropna().to_numpy(float))

    def paired(self, ours: "Schedule", theirs: "Schedule", column: str) -> tuple[np.ndarray, np.ndarray]:
        """Return `column` of both schedules for the seeds that they share, in the same order."""
        both = pd.concat([self.values(ours, column), self.values(theirs, column)], axis=1, join="inner").dropna()
        return both.iloc[:, 0].to_numpy(float), both.iloc[:, 1].to_numpy(float)

    def each_curve(self, schedule: "Schedule") -> Iterator[pd.DataFrame]:
        """Yield the binned curve of each of the schedule's runs that are done."""
        cells = self.done.loc[self.done["schedule"] == schedule.label].sort_values("seed")["cell"]
        groups = dict(iter(self.curves[self.curves["cell"].isin(cells)].groupby("cell", observed=True)))
        return (groups[cell] for cell in cells if cell in groups)

    @cached_property
    def time_unit(self) -> tuple[float, str]:
        """The unit that suits the study's times: its seconds, and its name."""
        longest_s = self.curves["clock_s"].max() if len(self.curves) else 0.0
        return next((unit for unit in _TIME_UNITS if longest_s >= 2 * unit[0]), _TIME_UNITS[-1])

    @property
    def schedules_are_settings(self) -> bool:
        """Whether this is the part `shown` of a study that compares settings: each stands for a schedule."""
        return bool((self.runs["tint"] >= 0).any())

    @property
    def takes_time(self) -> bool:
        """Whether the runs' clock moves: by a profile without costs it does not."""
        return bool(len(self.curves)) and bool(self.curves["clock_s"].max() > 0)

    @property
    def planned_episodes(self) -> int:
        """The episodes planned per run: the most, if they differ."""
        return int(self.runs["planned"].max())

    @cached_property
    def planned_env_steps(self) -> int | None:
        """The env steps that end every run, if they do."""
        planned = self.runs["planned_env_steps"] if "planned_env_steps" in self.runs else pd.Series(dtype=float)
        return None if planned.isna().any() or not len(planned) else int(planned.max())

    @property
    def length(self) -> str:
        """How long every run is, in words."""
        if self.planned_env_steps is not None:
            return f"{self.planned_env_steps:,} env steps"
        return f"{self.planned_episodes:,} episodes"

    def episodes(self, cell: str) -> pd.DataFrame:
        """Return the full records of one cell, a row for each episode; git does not keep them, so they may be gone."""
        if cell not in set(self.runs["cell"]):
            raise StudyError(f"{self.name} has no cell {cell!r}; they are named in the column `cell` of its runs")
        path = None if self.folder is None else self.folder / CELLS / cell / EPISODES
        if path is None or not path.is_file():
            where = path or f"{CELLS}/{cell}/{EPISODES}"
            raise StudyError(f"no {where}: full records are not kept in git; run the study again, or use its curves")
        return pd.read_parquet(path)


class Schedule(NamedTuple):
    """A worker count and how it changes."""

    label: str
    start: int
    end: int
    adaptive: bool = False
    tint: int = -1  # its place among the settings, where the study compares settings
    place: int = 0  # among the study's schedules

    @property
    def dynamic(self) -> bool:
        """Whether the count may change."""
        return self.start != self.end

    @property
    def span(self) -> str:
        """The worker count alone, such as 10→20, without its rule."""
        return self.label.partition(" ")[0]

    @property
    def title(self) -> str:
        """The schedule in words."""
        if self.tint >= 0:
            return self.label
        if not self.dynamic:
            return f"{self.label} worker{'s' if self.end > 1 else ''}"
        rule = self.label.removeprefix(self.span).strip()
        return f"{self.span} ({rule} rule)" if rule in ("report", "slides", "repeated") else self.label

    def order(self) -> tuple[int, bool, bool, int, int, str]:
        """Sort key: by setting; fixed before dynamic before adaptive, then by count."""
        return self.tint, self.dynamic, self.adaptive, self.start, self.end, self.label


def _schedules_of(runs: pd.DataFrame) -> list[Schedule]:
    """Return the schedules of some runs, each once, as they stand."""
    rows = runs.drop_duplicates("schedule")[["schedule", "start", "end", "adaptive", "tint"]]
    return [Schedule(*row) for row in rows.values.tolist()]


def schedule_label(span: Span, chosen: Mapping[str, Any]) -> str:
    """Return "10", "10→20" or "auto", with what the study varies of the schedule's own settings."""
    workers = str(span).replace("->", "→")
    own = {name: value for name, value in chosen.items() if name.startswith("schedule.")}
    words = [str(value) if name == "schedule.rule" else _words(name, value) for name, value in own.items()]
    return f"{workers} {', '.join(words)}" if words and span.start != span.end else workers


def variant_label(chosen: Mapping[str, Any]) -> str:
    """Return what a cell's settings besides worker count, schedule and seed are, such as "slowdown 2"."""
    skipped = ("workers", "seed")
    others = {name: value for name, value in chosen.items() if name not in skipped and not name.startswith("schedule.")}
    return ", ".join(str(value) if name == "case" else _words(name, value) for name, value in others.items())


def _words(name: str, value: Any) -> str:
    last = name.rpartition(".")[2]
    unit = " s" if last.endswith("_s") else ""
    return f"{last.removesuffix('_s').replace('_', ' ')} {value}{unit}"
