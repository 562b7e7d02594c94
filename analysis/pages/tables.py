"""The numbers behind the figures as tables: schedules, comparisons, capacity, runs and claims."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from a3c_core.errors import printable
from analysis.claims.catalogue import judge_all
from analysis.claims.claim import Claim
from analysis.data import outcomes, statistics
from analysis.data.algorithms import compares_algorithms, comparison
from analysis.data.capacity import limit_of
from analysis.data.domination import outlook
from analysis.data.edge import edges, has_edge
from analysis.data.factors import effects
from analysis.data.inference import chance, holm, mcnemar, share_difference
from analysis.data.speedups import compares_speedups, speedups
from analysis.data.study import Schedule, Study
from analysis.figures import domination, factors, stations

_ESTIMATED = ("final_score", "mean_score", "clock_s", "steps_per_s", "utilisation_start", "load_start", "load_end")
_TYPICAL = ("staleness_mean", "queue_peak", "held_share", "workers_max")
_KNOWN_BEFORE = ("limit_name", "limit_workers", "n0", "n_star")
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # how they begin
_OF_RUNS = ["cell", "variant", "schedule", "seed", "status", "reason", "planned", "played", "collapsed", *_ESTIMATED]
_OF_RUNS += [
    *_TYPICAL,
    *_KNOWN_BEFORE,
    "env_steps",
    "updates",
    "gradients_dropped",
    "oversubscribed",
    "commit",
    "dirty",
    "episodes_sha256",
]


def all_tables(study: Study, more_claims: Sequence[Claim] = ()) -> dict[str, pd.DataFrame]:
    """Return every table by its name."""
    return {
        "schedules": schedules(study),
        "comparisons": comparisons(study),
        "capacity": capacity(study),
        **({"edge": edges(study)} if has_edge(study) else {}),
        **({"factors": effects(study)} if factors.applies(study) else {}),
        **({"stations": _stations(study)} if stations.FIGURE.of(study) else {}),
        **({"domination": _domination(study)} if domination.applies(study) else {}),
        **({"algorithms": comparison(study)} if compares_algorithms(study) else {}),
        **({"table2": speedups(study)} if compares_speedups(study) else {}),
        "claims": claims(study, more_claims),
        "runs": runs(study),
    }


def schedules(study: Study) -> pd.DataFrame:
    """Return one row per setting and schedule: the share of runs that learned, and estimates over all runs.

    `score_of_learned` is the final score of those that learned; `learned` says how many these are.
    """
    rows = []
    for variant, part in _parts(study):
        for schedule in part.schedules():
            rows.append({"variant": variant, "schedule": schedule.label, **_schedule_row(part, schedule)})
    return pd.DataFrame(rows)


def _schedule_row(study: Study, schedule: Schedule) -> dict[str, float]:
    collapsed = study.values(schedule, "collapsed").astype(bool)
    row: dict[str, float] = {"runs": len(collapsed), "learned": int(outcomes.learned(study, schedule).sum())}
    row |= {**flat({"learned_share": outcomes.share_learned(study, schedule)}), "collapsed": int(collapsed.sum())}
    for column in _ESTIMATED:
        estimate = outcomes.estimate(study, schedule, column)
        row |= {column: estimate.value, f"{column}_low": estimate.low, f"{column}_high": estimate.high}
    row["score_of_learned"] = outcomes.estimate_of_learned(study, schedule).value
    for column in _TYPICAL:
        row[column] = outcomes.estimate(study, schedule, column).value if column in study.done else np.nan
    for score in study.score.marks:
        times = study.values(schedule, f"time_to_{score:g}_s").to_numpy(float)
        row[f"reached_{score:g}"] = float(np.isfinite(times).mean())
        row[f"time_to_{score:g}_s_median"] = float(np.median(times))
    return row


def comparisons(study: Study) -> pd.DataFrame:
    """Return one row per pair of schedules with the same settings: who learned more often, differences paired by seed.

    `share_chance` is McNemar's exact p-value of equal shares. `score_holds` says whether the difference in
    score is there after Holm's correction for all rows of the table.
    """
    rows = []
    for variant, part in _parts(study):
        for ours, theirs in itertools.combinations(part.schedules(), 2):
            if len(part.paired(ours, theirs, "final_score")[0]):
                pair = {"variant": variant, "ours": ours.label, "theirs": theirs.label}
                rows.append({**pair, **_comparison(part, ours, theirs)})
    table = pd.DataFrame(rows, columns=None if rows else ["variant", "ours", "theirs", "score_chance"])
    return table.assign(score_holds=holm(table["score_chance"].tolist()))


def _comparison(study: Study, ours: Schedule, theirs: Schedule) -> dict[str, float]:
    hits = outcomes.paired_hits(study, ours, theirs)
    difference = statistics.paired_difference(*study.paired(ours, theirs, "final_score"))
    estimates = {
        "learned_share_difference": share_difference(*hits),
        "score_difference": difference,
        "steps_per_s_ratio": statistics.paired_ratio(*study.paired(ours, theirs, "steps_per_s")),
        "probability_of_improvement": statistics.improvement_estimate(*study.paired(ours, theirs, "final_score")),
    }
    return {**flat(estimates), "share_chance": mcnemar(*hits), "score_chance": chance(difference, 0.0)}


def capacity(study: Study) -> pd.DataFrame:
    """Return one row per setting: the limit known before its runs, and how many worker counts it sorts rightly."""
    rows = [{"variant": variant, **_capacity_row(part)} for variant, part in _parts(study)]
    if len(rows) > 1:
        rows.append(
            {"variant": "all", **{name: sum(row[name] for row in rows) for name in ("sorted_rightly", "counts")}}
        )
    return pd.DataFrame(rows)


def _capacity_row(study: Study) -> dict[str, Any]:
    limit, fixed = limit_of(study), study.schedules(dynamic=False)
    if limit is None:
        return {"sorted_rightly": 0, "counts": 0}
    fine = outcomes.split_by_learning(study, fixed)[0]
    right = sum((schedule.end < limit.workers) == (schedule in fine) for schedule in fixed)
    return {**limit._asdict(), "sorted_rightly": right, "counts": len(fixed)}


def claims(study: Study, more: Sequence[Claim] = ()) -> pd.DataFrame:
    """Return one row per setting, claim and finding."""
    rows = []
    for variant, _ in _parts(study):
        for judgement in judge_all(study, variant, more):
            for finding in judgement.findings:
                row = {"variant": variant, "claim": judgement.number, "verdict": judgement.verdict}
                row |= {"finding": finding.text, "finding_verdict": finding.verdict, "needed": finding.needed}
                rows.append({**row, **flat({"estimate": finding.estimate})} if finding.estimate else row)
    columns = ["variant", "claim", "verdict", "finding", "finding_verdict", "needed"]
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=columns)


def _stations(study: Study) -> pd.DataFrame:
    """Return who is at work for which share of the time, and where staleness comes from, by setting."""
    return stations.stations(study).rename_axis("variant").reset_index()


def _domination(study: Study) -> pd.DataFrame:
    """Return how soon each setting comes to a score, how well it plays in the end, and which others beat it."""
    table = outlook(study.shown, outcomes.reference_score(study.shown))
    named = table.assign(beaten_by=[" ".join(others) for others in table["beaten_by"]])
    return named.rename_axis("variant").reset_index()


def runs(study: Study) -> pd.DataFrame:
    """Return one row per planned cell, also those that are missing."""
    return study.runs[[column for column in _OF_RUNS if column in study.runs]]


def csv(table: pd.DataFrame) -> str:
    """Return a table as CSV whose digits do not depend on the machine, and whose text no spreadsheet computes."""
    table = table.apply(lambda column: column.map(_no_formula) if column.dtype.kind not in "bif" else column)
    return table.to_csv(index=False, float_format="%.6g", lineterminator="\n")


def _no_formula(value: Any) -> Any:
    """Return a value; text that a spreadsheet would compute begins with an apostrophe, its sign of plain text."""
    if not isinstance(value, str):
        return value
    return printable(f"'{value}" if value.startswith(_FORMULAS) else value)


def _parts(study: Study) -> list[tuple[str, Study]]:
    return [(variant, study.of_variant(variant)) for variant in dict.fromkeys(study.done["variant"])]


def flat(estimates: dict[str, statistics.Estimate]) -> dict[str, float]:
    """Return estimates as columns: the value under its name, its interval as NAME_low and NAME_high."""
    columns: dict[str, float] = {}
    for name, estimate in estimates.items():
        columns |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        columns["runs"] = estimate.runs
    return columns
