"""How many workers there should be: pure functions of what was measured so far.

`10` is fixed. `10->20` (or `10→20`) starts with 10 and adds workers as episodes grow longer, by one of the documents'
rules:
- report: one more when the mean episode takes over 20 s, and one more for every further 10 s, with at least 1,000
  episodes between two additions;
- slides: one more above 20 s, two more above 40 s, three more above 60 s, and so on;
- repeated: the slides' words taken as what to do each time one looks, every 1,000 episodes: while the mean episode
  takes over 20 s, one worker joins each time; over 40 s two, over 60 s three. Only this reading gets 10->32 to 32
  before episodes last minutes.
`auto` aims at a utilisation of the master: it adds workers while the master is idle enough and removes them when it
is not.
"""

import math
import re
from typing import Literal, NamedTuple

from pydantic import Field

from a3c_core.errors import shown
from a3c_core.section import MOST_EPISODES, MOST_SECONDS, Section

AUTO = "auto"
MOST_WORKERS = 100_000  # in virtual time
_COUNTS = re.compile(r"\s*([0-9]{1,18})\s*(?:(?:->|→)\s*([0-9]{1,18})\s*)?")


class ScheduleConfig(Section):
    """The numbers of the dynamic rules. Seconds are those of the run's reference clock."""

    rule: Literal["report", "slides", "repeated"] = "report"
    first_s: float = Field(20.0, gt=0, le=MOST_SECONDS, description="mean episode time that adds the first worker")
    further_s: float | None = Field(
        None, gt=0, le=MOST_SECONDS, description="for each further worker; null: 10 (report) or 20"
    )
    window: int = Field(100, ge=1, le=1_000_000, description="episodes over which the mean is taken")
    spacing: int | None = Field(
        None, ge=0, le=MOST_EPISODES, description="episodes between changes; null: 1000, but 0 (slides)"
    )
    clock: Literal["profile", "wall"] = Field(
        "profile", description="real runtimes: seconds that an episode would cost by the profile, or that it took here"
    )
    auto_min: int = Field(1, ge=1, le=MOST_WORKERS)
    auto_max: int = Field(40, ge=1, le=MOST_WORKERS)
    auto_utilisation: float = Field(0.8, gt=0, lt=1, description="how busy `auto` wants the master to be")


class Span(NamedTuple):
    """A parsed worker count."""

    start: int
    end: int
    auto: bool = False

    def __str__(self) -> str:
        if self.auto:
            return AUTO
        return str(self.start) if self.start == self.end else f"{self.start}->{self.end}"


class Measured(NamedTuple):
    """What a schedule may know."""

    workers: int  # alive now
    mean_episode_s: float  # over the last `window` episodes; 0 before there are that many
    episodes_since_change: int
    utilisation: float  # share of the time that the master was busy, over the last `window` episodes
    queue_length: int


def parse_workers(text: str | int, schedule: ScheduleConfig) -> Span:
    """Return the span that `10`, `10->20`, `10→20` or `auto` stands for; refuse anything else with the reason."""
    if str(text).strip() == AUTO:
        if schedule.auto_min > schedule.auto_max:
            raise ValueError(f"auto_min {schedule.auto_min} is above auto_max {schedule.auto_max}")
        return Span(schedule.auto_min, schedule.auto_max, auto=True)
    counts = _COUNTS.fullmatch(str(text))
    if counts is None:
        raise ValueError(f"{shown(text)} is not a worker count: write 10, 10->20 or auto")
    start, end = int(counts[1]), int(counts[2] or counts[1])
    if max(start, end) > MOST_WORKERS:
        raise ValueError(f"{text!r}: at most {MOST_WORKERS:,} workers are possible")
    if start < 1:
        raise ValueError(f"{text!r}: there must be at least 1 worker")
    if start > end:
        raise ValueError(f"{text!r}: the {schedule.rule} rule only adds workers: write the smaller number first")
    return Span(start, end)


class Rule(NamedTuple):
    """A span's rule as numbers."""

    start: int
    end: int
    auto: bool
    repeated: bool  # what was earned comes on top of those alive, not of those at the start
    one_at_a_time: bool
    first_s: float
    further_s: float
    spacing: int  # episodes
    utilisation: float


def rule_of(span: Span, schedule: ScheduleConfig) -> Rule:
    """Return the rule that the settings name."""
    return Rule(
        start=span.start,
        end=span.end,
        auto=span.auto,
        repeated=schedule.rule == "repeated",
        one_at_a_time=schedule.rule == "report",
        first_s=schedule.first_s,
        further_s=schedule.further_s or (10.0 if schedule.rule == "report" else 20.0),
        spacing=_spacing(schedule),
        utilisation=schedule.auto_utilisation,
    )


def target_workers(span: Span, schedule: ScheduleConfig, measured: Measured) -> int:
    """Return how many workers there should be now."""
    return wanted(rule_of(span, schedule), measured)


def may_change(rule: Rule, workers: int, episodes_since_change: int) -> bool:
    """Return whether there can be another number of workers now; if not, nothing needs to be measured."""
    if rule.auto:
        return episodes_since_change >= max(rule.spacing, workers)
    return workers < rule.end and episodes_since_change >= rule.spacing


def wanted(rule: Rule, measured: Measured) -> int:
    """Return how many workers there should be now."""
    if not may_change(rule, measured.workers, measured.episodes_since_change):
        return measured.workers
    if rule.auto:
        return _auto_target(rule, measured)
    excess = measured.mean_episode_s - rule.first_s
    earned = 1 + max(0, math.ceil(excess / rule.further_s) - 1) if excess > 0 else 0
    if rule.repeated:
        return min(measured.workers + earned, rule.end)
    target = max(measured.workers, min(rule.start + earned, rule.end))
    return min(target, measured.workers + 1) if rule.one_at_a_time else target


def _auto_target(rule: Rule, measured: Measured) -> int:
    """Return the count at which the master would be as busy as wished, at most half as many again or half as few."""
    overloaded = measured.queue_length > measured.workers
    utilisation = max(measured.utilisation, 0.01)
    wished = measured.workers * rule.utilisation / (2.0 if overloaded else utilisation)
    nearest = math.floor(wished) if wished < measured.workers else round(wished)
    bounded = min(max(nearest, measured.workers // 2), measured.workers + max(1, measured.workers // 2))
    return min(max(bounded, rule.start), rule.end)


def _spacing(schedule: ScheduleConfig) -> int:
    if schedule.spacing is not None:
        return schedule.spacing
    return 0 if schedule.rule == "slides" else 1000
