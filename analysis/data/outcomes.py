"""What figures, claims and pages all ask of a study: which runs learned, and what to compare them with.

Every figure and score is of all runs. Near the number of workers that a master keeps up with, some runs learn and
others do not. There the share that learned stands beside, and the score of those that learned as a second number with
its own count of runs.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.data import statistics
from analysis.data.study import Schedule, Study


def learned(study: Study, schedule: Schedule) -> pd.Series:
    """Return, by seed, which of a schedule's runs have a final score that counts as learned."""
    return study.values(schedule, "final_score") >= study.score.learned_above


def too_short(study: Study) -> bool:
    """Return whether no run of any worker count or setting has learned: such runs are too short to tell."""
    return not bool((study.done["final_score"] >= study.score.learned_above).any())


def share_learned(study: Study, schedule: Schedule) -> statistics.Estimate:
    """Return the share of a schedule's runs that learned."""
    hits = learned(study, schedule)
    return statistics.share(int(hits.sum()), len(hits))


def paired_hits(study: Study, ours: Schedule, theirs: Schedule) -> tuple[np.ndarray, np.ndarray]:
    """Return which runs of both schedules learned, for the seeds that they share, in the same order."""
    scores = study.paired(ours, theirs, "final_score")
    return scores[0] >= study.score.learned_above, scores[1] >= study.score.learned_above


def is_mixed(study: Study, schedule: Schedule) -> bool:
    """Return whether some of a schedule's runs learned and others did not."""
    return learned(study, schedule).nunique() > 1


def estimate(study: Study, schedule: Schedule, column: str = "final_score") -> statistics.Estimate:
    """Return `column` over all of a schedule's runs; where no run is below 0, neither is the interval."""
    found = study.estimate(schedule, column)
    lowest = study.values(schedule, column).min()
    return found._replace(low=max(found.low, 0.0)) if lowest >= 0 and found.low < 0 else found


def estimate_of_learned(study: Study, schedule: Schedule, column: str = "final_score") -> statistics.Estimate:
    """Return `column` over those of a schedule's runs that learned; its `runs` says how many these are."""
    return statistics.estimate(study.values(schedule, column)[learned(study, schedule)].dropna().to_numpy(float))


def split_by_learning(study: Study, schedules: Sequence[Schedule]) -> tuple[list[Schedule], list[Schedule]]:
    """Return the schedules of whose runs more than half learned something, and the others."""
    fine = [schedule for schedule in schedules if learned(study, schedule).mean() > 0.5]
    return fine, [schedule for schedule in schedules if schedule not in fine]


def mostly_collapsed(study: Study, schedule: Schedule) -> bool:
    """Return whether more than half of a schedule's runs collapsed."""
    return bool(study.values(schedule, "collapsed").mean() > 0.5)


def control_of(study: Study, schedule: Schedule) -> Schedule | None:
    """Return a dynamic schedule's control: the fixed one with its number at the start, else the nearest below."""
    below = [fixed for fixed in study.schedules(dynamic=False) if fixed.end <= schedule.start]
    return below[-1] if below else None


def by_rule(study: Study, rule: str, start: int | None = None, end: int | None = None) -> list[Schedule]:
    """Return the dynamic schedules with this start and end (any, if None); of several rules, those of `rule`."""
    dynamic = [schedule for schedule in study.schedules(dynamic=True) if not schedule.adaptive]
    fitting = [s for s in dynamic if start in (None, s.start) and end in (None, s.end)]
    return [s for s in fitting if s.label.endswith(rule)] or fitting


def reference_score(study: Study) -> float:
    """Return the score for the time to a score: the highest mark that most runs of some schedule have reached."""
    return max((mark for mark in study.score.marks if _reached(study, mark)), default=study.score.marks[0])


def _reached(study: Study, mark: float) -> bool:
    times = (study.values(schedule, f"time_to_{mark:g}_s") for schedule in study.schedules())
    return any(np.isfinite(each).mean() > 0.5 for each in times)
