"""What figures, claims and the answer all ask of a study: which schedules learned, and what to compare them with."""

from collections.abc import Sequence

import numpy as np

from analysis.data.study import Schedule, Study


def split_by_learning(study: Study, schedules: Sequence[Schedule]) -> tuple[list[Schedule], list[Schedule]]:
    """Return the schedules that learned something by the end of their runs, and those that did not."""
    ends = {schedule: study.estimate(schedule, "final_score").value for schedule in schedules}
    learned = [schedule for schedule in schedules if ends[schedule] >= study.score.learned_above]
    return learned, [schedule for schedule in schedules if schedule not in learned]


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
