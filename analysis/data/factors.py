"""A factorial study: what each factor does to learning, and whether that depends on the number of workers.

Everything is paired by seed: runs with a factor's level are compared with those without it, over all of the other
factors. A seed is one block, since its runs share initial parameters and pipes. Whether an effect depends on the number
of workers is a permutation test of these differences, corrected for all of them (Holm).
"""

import json
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from analysis.data import statistics
from analysis.data.inference import holm, interaction_chance
from analysis.data.statistics import Estimate
from analysis.data.study import Study

OUTCOMES = {"learned": "share that learned", "learning_begins": "learning begins", "final_score": "final score"}


def factors_of(study: Study) -> dict[str, list[str]]:
    """Return the settings besides worker counts that a study varies, with their levels; the first is the reference."""
    skipped = ("workers", "seed", "case")
    axes = {name: levels for name, levels in study.axes.items() if name not in skipped}
    varied = {name: levels for name, levels in axes.items() if len(levels) > 1 and not name.startswith("schedule.")}
    return {name: [str(level) for level in levels] for name, levels in varied.items()}


def _levels(settings: dict[str, Any]) -> dict[str, str]:
    return {name: str(level) for name, level in settings.items()}


def runs_of(study: Study) -> pd.DataFrame:
    """Return the runs with fixed workers: a column for each factor, and the outcomes; what never began is censored."""
    rows = study.done[~study.done["dynamic"].astype(bool)]
    chosen = pd.DataFrame([_levels(json.loads(text)) for text in rows["settings"]], index=rows.index)
    begins = rows["learning_begins"].astype(float).clip(upper=rows["planned"])
    outcomes: dict[str, pd.Series] = {"learned": (rows["final_score"] >= study.score.learned_above).astype(float)}
    outcomes |= {"learning_begins": begins, "final_score": rows["final_score"], "workers": rows["end"]}
    return chosen.assign(seed=rows["seed"], **outcomes)


def differences(study: Study, factor: str, level: str, outcome: str) -> pd.DataFrame:
    """Return what a level changes against the first [seeds, worker counts], on average over the other factors."""
    levels, rows = factors_of(study), runs_of(study)
    ours, reference = (rows[rows[factor] == value] for value in (level, levels[factor][0]))
    tables = [part.pivot_table(index="seed", columns="workers", values=outcome) for part in (ours, reference)]
    return tables[0] - tables[1]


@lru_cache(maxsize=8)
def effects(study: Study) -> pd.DataFrame:
    """Return a row for each factor's level, outcome and worker count: the effect, and whether it depends on workers."""
    rows, chances = [], {}
    for factor, levels in factors_of(study).items():
        for level in levels[1:]:
            for outcome in OUTCOMES:
                table = differences(study, factor, level, outcome)
                chances[factor, level, outcome] = interaction_chance(table.to_numpy(float))
                for workers, values in table.items():
                    found = _effect(values.dropna().to_numpy(float), outcome)
                    rows.append((factor, level, outcome, workers, *found))
    names = ["factor", "level", "outcome", "workers", "effect", "low", "high", "runs"]
    holds = dict(zip(chances, holm(list(chances.values()), 1.0 - statistics.LEVEL), strict=True))
    table = pd.DataFrame(rows, columns=names)
    keys = list(zip(table["factor"], table["level"], table["outcome"], strict=True))
    return table.assign(interaction=[chances[key] for key in keys], holds=[holds[key] for key in keys])


def _effect(values: np.ndarray, outcome: str) -> Estimate:
    """Return a mean effect: of shares the plain mean, since a trimmed one of noughts and ones says nothing."""
    if outcome != "learned" or len(values) < 2:
        return statistics.estimate(values)
    half = 1.96 * float(np.std(values, ddof=1)) / np.sqrt(len(values)) + 0.5 / len(values)  # with Yates's half
    mean = float(values.mean())
    return Estimate(mean, max(-1.0, mean - half), min(1.0, mean + half), len(values))
