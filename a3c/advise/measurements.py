"""What a log says of one run: the same for every system, whatever its log looks like."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
NONE: Numbers = np.zeros(0)
ASYNCHRONOUS, SYNCHRONOUS, ONE_STEP_OFF = "asynchronous", "synchronous", "one step off"
LONGEST_S = 1e12


class LogError(Exception):
    """The log is not what it should be; the message is one sentence for the user."""


class Log(NamedTuple):
    """All parcels whose update is known, in the order of their updates; arrays have one entry for each."""

    line: NDArray[np.int64]
    worker: NDArray[np.int64]
    start: Numbers
    end: Numbers
    update_start: Numbers
    update_end: Numbers
    notes: tuple[str, ...] = ()  # what was odd, in words
    env_steps: float = np.nan  # of an episode, where it is known
    waits: bool | None = None  # whether workers wait for their update, where it is known


@dataclass(frozen=True)
class Durations:
    """Summary of rollouts' durations, where a log has no single ones; NaN where it does not say."""

    mean_s: float = np.nan
    least_s: float = np.nan
    most_s: float = np.nan
    median_s: float = np.nan
    p95_s: float = np.nan


@dataclass(frozen=True)
class Measurements:
    """A run, step by step. Arrays have one entry for each step, NaN where the log does not say; times are seconds.

    A step is what the log calls so: one update, or all updates between two weight syncs.
    """

    system: str  # whose log it is: verl, areal, slime, miles, sample-factory, rllib, columns
    source: str  # the file
    mode: str  # ASYNCHRONOUS, SYNCHRONOUS or ONE_STEP_OFF
    step_s: Numbers = field(default_factory=lambda: NONE)  # from one step to the next
    wait_s: Numbers = field(default_factory=lambda: NONE)  # the learner waits for rollouts; synchronous: generation
    update_s: Numbers = field(default_factory=lambda: NONE)  # the learner works
    sync_s: Numbers = field(default_factory=lambda: NONE)  # weights under way
    rollouts_s: Numbers = field(default_factory=lambda: NONE)  # one entry for each rollout or group: its duration
    durations: Durations | None = None  # a summary of them
    unit: str = "rollout"  # what is counted and timed: a rollout, or a whole group ("sample" of verl)
    batch: int | None = None  # units that an update takes
    updates_a_step: int = 1  # between two weight syncs
    group: int | None = None  # rollouts of one prompt
    slots: int | None = None  # units generated side by side
    staleness_limit: float | None = None  # the bound on age that was set
    partial: bool | None = None  # whether rollouts go on after a weight sync
    staleness: Numbers = field(default_factory=lambda: NONE)  # measured, mean of each step
    queued: Numbers = field(default_factory=lambda: NONE)  # units in the queue
    dropped: float | None = None  # share of finished units that were never learned from
    staleness_growth: float | None = None  # versions per second, where it only grows
    updates_per_s: float | None = None  # where a log has a rate only
    generators_idle: float | None = None  # share, computed from times
    events: Log | None = None  # when each rollout and each update was, where a log has that
    notes: tuple[str, ...] = ()  # what was odd, in words
    unknown: tuple[str, ...] = ()  # what such a log can't tell

    @property
    def steps(self) -> int:
        """Return how many steps the log has."""
        return int(self.step_s.size)

    @property
    def step_mean_s(self) -> float:
        """Seconds of a step, mean."""
        return mean(self.step_s)

    @property
    def shares(self) -> dict[str, float]:
        """Shares of a step that the learner works, waits for rollouts and waits for weight syncs, from times."""
        step_s = self.step_mean_s
        parts = {"update": mean(self.update_s), "wait": mean(self.wait_s), "sync": mean(self.sync_s)}
        return {name: 0.0 if np.isnan(part_s) else part_s / step_s for name, part_s in parts.items()}


def mean(values: Numbers) -> float:
    """Return the mean of what is known, NaN if nothing is."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")
