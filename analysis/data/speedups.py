"""The A3C paper's table 2: how many times sooner several lock-free workers reach a score than one."""

import numpy as np
import pandas as pd

from analysis.data import statistics
from analysis.data.study import Schedule, Study

_COUNTS = (1, 2, 4, 8, 16)
PAPER = {  # Mnih et al. 2016, table 2: mean speed-up in time to a reference score, over seven Atari games
    "q": dict(zip(_COUNTS, (1.0, 3.0, 6.3, 13.3, 24.1), strict=True)),
    "sarsa": dict(zip(_COUNTS, (1.0, 2.8, 5.9, 13.1, 22.1), strict=True)),
    "n_step_q": dict(zip(_COUNTS, (1.0, 2.7, 5.9, 10.7, 17.2), strict=True)),
    "a3c": dict(zip(_COUNTS, (1.0, 2.1, 3.7, 6.9, 12.5), strict=True)),
}
_MOSTLY = 0.5  # of the runs must reach a score that is referred to


def compares_speedups(study: Study) -> bool:
    """Return whether lock-free workers were counted, from one on, with several algorithms."""
    done = study.done
    if not {"algorithm", "topology"} <= set(done.columns) or not (done["topology"] == "hogwild").all():
        return False
    return bool(done["algorithm"].nunique() > 1 and study.done["start"].nunique() > 2 and (done["start"] == 1).any())


def reference(study: Study) -> float:
    """Return the highest mark that most runs reach with one worker, of every setting that reaches any mark so."""
    alone = study.done[study.done["end"] == 1]
    shares = {
        mark: np.isfinite(alone[f"time_to_{mark:g}_s"]).groupby(alone["variant"]).mean() for mark in study.score.marks
    }
    first = study.score.marks[0]
    learns = shares[first].index[shares[first] > _MOSTLY]
    common = [mark for mark, share in shares.items() if len(learns) and (share[learns] > _MOSTLY).all()]
    return max(common, default=first)


def speedup(part: Study, schedule: Schedule, column: str) -> statistics.Estimate:
    """Return how many times less of `column` a number of workers needs than one, over seeds with which both succeed."""
    one = part.fixed(1)
    if one is None:
        return statistics.NOTHING
    alone, together = part.paired(one, schedule, column)
    both = np.isfinite(alone) & np.isfinite(together)
    if not len(both) or both.mean() <= _MOSTLY:
        return statistics.NOTHING
    return statistics.paired_ratio(alone[both], together[both])


def speedups(study: Study) -> pd.DataFrame:
    """Return one row per setting and number of workers: speed-ups in time and in env steps, and the paper's in time."""
    mark, rows = reference(study), []
    for variant in study.done_variants:
        part = study.of_variant(variant)
        algorithm = str(part.done["algorithm"].iloc[0])
        for schedule in part.schedules(dynamic=False):
            reached = np.isfinite(part.values(schedule, f"time_to_{mark:g}_s"))
            row = {"setting": variant, "algorithm": algorithm, "workers": schedule.end, "reference_score": mark}
            row |= {"runs": len(reached), "reached": int(reached.sum())}
            for name, column in (("time", f"time_to_{mark:g}_s"), ("env_steps", f"env_steps_to_{mark:g}")):
                found = speedup(part, schedule, column)
                row |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
            paper = PAPER.get(variant, {}).get(schedule.end, np.nan)
            rows.append({**row, "paper": paper, "final_score": part.estimate(schedule, "final_score").value})
    return pd.DataFrame(rows)
