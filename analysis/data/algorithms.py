"""Algorithms side by side: what each makes of env steps, episodes, updates and time, by its number of workers."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from analysis.data import outcomes, statistics
from analysis.data.capacity import limit_of
from analysis.data.study import Schedule, Study

QUEUE = "exchange.queue"
_FEWEST = 3  # algorithms, and worker counts, that make a comparison
_USUAL = 10  # workers


def compares_algorithms(study: Study) -> bool:
    """Return whether several algorithms were run with several numbers of workers and a master."""
    done = study.done
    if not {"algorithm", "topology", QUEUE} <= set(done.columns) or not (done["topology"] == "master").all():
        return False
    return bool(done["algorithm"].nunique() >= _FEWEST and done["schedule"].nunique() >= _FEWEST)


def queues(study: Study) -> list[str]:
    """Return the kinds of queue that were tried, in the order of the plan."""
    return list(dict.fromkeys(study.done[QUEUE]))


def parts(study: Study, queue: str) -> Iterator[tuple[str, Study]]:
    """Yield each algorithm's part of the study with one kind of queue, in the order of the plan."""
    for variant in study.done_variants:
        part = study.of_variant(variant)
        first = part.done.iloc[0]
        if first[QUEUE] == queue:
            yield str(first["algorithm"]), part


def usual(part: Study) -> Schedule | None:
    """Return the number of workers at which algorithms are compared: ten, or the middle of what was tried."""
    fixed = part.schedules(dynamic=False)
    return part.fixed(_USUAL) or (fixed[len(fixed) // 2] if fixed else None)


def reference(study: Study) -> float:
    """Return the highest mark that most runs of some algorithm with some number of workers have reached."""
    done = study.done
    groups = [done["variant"], done["schedule"]]
    reached = {mark: np.isfinite(done[f"time_to_{mark:g}_s"]).groupby(groups).mean() for mark in study.score.marks}
    return max((mark for mark, shares in reached.items() if (shares > 0.5).any()), default=study.score.marks[0])


def comparison(study: Study) -> pd.DataFrame:
    """Return one row per kind of queue, algorithm and worker count: who learned, how well, and after how much of what.

    `to_..` are medians over all runs, infinite where most never reach the reference score.
    """
    mark, rows = reference(study), []
    for queue in queues(study):
        for algorithm, part in parts(study, queue):
            limit = limit_of(part)  # of the algorithm's master, known before the runs
            known = {"limit": limit.workers, "cycle_s": limit.cycle_s, "service_s": limit.service_s} if limit else {}
            for schedule in part.schedules(dynamic=False):
                row = {"queue": queue, "algorithm": algorithm, "workers": schedule.end, **known}
                rows.append({**row, **_row(part, schedule, mark)})
    return pd.DataFrame(rows)


def _row(part: Study, schedule: Schedule, mark: float) -> dict[str, float]:
    scores = part.values(schedule, "final_score").to_numpy(float)
    score, low, high, runs = statistics.estimate(scores)
    row: dict[str, float] = {"runs": runs, "learned": int(outcomes.learned(part, schedule).sum())}
    row |= {"final_score": score, "final_score_low": low, "final_score_high": high, "reference_score": mark}
    for column, name in ((f"env_steps_to_{mark:g}", "env_steps"), (f"episodes_to_{mark:g}", "episodes")):
        row[f"to_{name}"] = float(np.median(part.values(schedule, column)))
    row["to_s"] = float(np.median(part.values(schedule, f"time_to_{mark:g}_s")))
    row["staleness"] = float(part.values(schedule, "staleness_mean").median())
    row["updates"] = float(part.values(schedule, "updates").median())
    row["clock_s"] = float(part.values(schedule, "clock_s").median())
    return row
