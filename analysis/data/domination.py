"""Which settings are beaten by another in both: time to a score, and the final score.

One beats another if it is faster for sure and not relevantly worse, or better for sure and not relevantly slower. For
sure: the 95 % interval of the comparison, paired by seed, excludes the contrary. Relevant: a tenth. A setting whose
runs mostly never reach the score has no time, and is beaten by any that is not relevantly worse.
"""

import numpy as np
import pandas as pd

from analysis.data import statistics
from analysis.data.study import Schedule, Study

RELEVANT = 0.1


def outlook(study: Study, score: float) -> pd.DataFrame:
    """Return a row for each schedule: how many runs reach the score and when, what they score, and who beats it.

    Times are geometric means over the runs that reached it, in seconds, with intervals; infinite if most did not.
    """
    schedules = study.schedules()
    rows = {}
    for schedule in schedules:
        times = study.values(schedule, f"time_to_{score:g}_s").to_numpy(float)
        end = study.estimate(schedule, "final_score")
        beaten = [other.label for other in schedules if other != schedule and beats(study, other, schedule, score)]
        rows[schedule.label] = (np.isfinite(times).sum(), len(times), *_time(times), *end[:3], beaten)
    names = ["reached", "runs", "time_s", "time_s_low", "time_s_high", "final", "final_low", "final_high", "beaten_by"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=names)


def _time(times_s: np.ndarray) -> tuple[float, float, float]:
    """Return the time to a score with its interval; infinite if at most half of the runs have one."""
    reached = times_s[np.isfinite(times_s)]
    if len(reached) <= len(times_s) / 2:
        return np.inf, np.nan, np.nan
    logs = statistics.estimate(np.log(reached))
    return float(np.exp(logs.value)), float(np.exp(logs.low)), float(np.exp(logs.high))


def beats(study: Study, ours: Schedule, theirs: Schedule, score: float) -> bool:
    """Return whether `ours` is for sure better in time or score, and not relevantly worse in the other."""
    faster, not_slower = _in_time(study, ours, theirs, f"time_to_{score:g}_s")
    pair = study.paired(ours, theirs, "final_score")
    if len(pair[0]) < 2:
        return False
    gain = statistics.paired_difference(*pair)
    better, not_worse = gain.low > 0, gain.low > -RELEVANT * abs(float(statistics.iqm(pair[1])))
    return bool((faster and not_worse) or (better and not_slower))


def _in_time(study: Study, ours: Schedule, theirs: Schedule, column: str) -> tuple[bool, bool]:
    """Return whether `ours` is for sure faster, and whether it is for sure not relevantly slower."""
    mine, its = study.paired(ours, theirs, column)
    if np.isfinite(mine).mean() <= 0.5 or not len(mine):
        return False, False
    if np.isfinite(its).mean() <= 0.5:
        return True, True
    both = np.isfinite(mine) & np.isfinite(its)
    if both.sum() < 2:
        return False, False
    ratio = statistics.paired_ratio(mine[both], its[both])
    return ratio.high < 1.0, ratio.high < 1.0 + RELEVANT
