"""The numbers behind the figures as tables: schedules, comparisons, runs and claims."""

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.claims.catalogue import judge_all
from analysis.claims.claim import Claim
from analysis.data import statistics
from analysis.data.study import Schedule, Study

_ESTIMATED = ("final_score", "mean_score", "clock_s", "steps_per_s", "utilisation_start", "load_start", "load_end")
_TYPICAL = ("staleness_mean", "queue_peak", "saturation_start", "saturation_observed", "held_share", "workers_max")
_OF_RUNS = ["cell", "variant", "schedule", "seed", "status", "reason", "planned", "played", "collapsed", *_ESTIMATED]
_OF_RUNS += [
    *_TYPICAL,
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
        "claims": claims(study, more_claims),
        "runs": runs(study),
    }


def schedules(study: Study) -> pd.DataFrame:
    """Return one row per setting and schedule: estimates over runs with 95 % intervals, and times to scores."""
    rows = []
    for variant, part in _parts(study):
        for schedule in part.schedules():
            rows.append({"variant": variant, "schedule": schedule.label, **_schedule_row(part, schedule)})
    return pd.DataFrame(rows)


def _schedule_row(study: Study, schedule: Schedule) -> dict[str, float]:
    collapsed = study.values(schedule, "collapsed").astype(bool)
    row: dict[str, float] = {"runs": len(collapsed), "collapsed": int(collapsed.sum())}
    for column in _ESTIMATED:
        estimate = study.estimate(schedule, column)
        row |= {column: estimate.value, f"{column}_low": estimate.low, f"{column}_high": estimate.high}
    for column in _TYPICAL:
        row[column] = study.estimate(schedule, column).value if column in study.done else np.nan
    for score in study.score.marks:
        times = study.values(schedule, f"time_to_{score:g}_s").to_numpy(float)
        row[f"reached_{score:g}"] = float(np.isfinite(times).mean())
        row[f"time_to_{score:g}_s_median"] = float(np.median(times))
    return row


def comparisons(study: Study) -> pd.DataFrame:
    """Return one row per pair of schedules with the same settings: differences and ratios paired by seed."""
    rows = []
    for variant, part in _parts(study):
        for ours, theirs in itertools.combinations(part.schedules(), 2):
            scores = part.paired(ours, theirs, "final_score")
            if len(scores[0]):
                estimates = {
                    "score_difference": statistics.paired_difference(*scores),
                    "steps_per_s_ratio": statistics.paired_ratio(*part.paired(ours, theirs, "steps_per_s")),
                    "probability_of_improvement": statistics.improvement_estimate(*scores),
                }
                rows.append({"variant": variant, "ours": ours.label, "theirs": theirs.label, **_flat(estimates)})
    return pd.DataFrame(rows, columns=None if rows else ["variant", "ours", "theirs"])


def claims(study: Study, more: Sequence[Claim] = ()) -> pd.DataFrame:
    """Return one row per setting, claim and finding."""
    rows = []
    for variant, _ in _parts(study):
        for judgement in judge_all(study, variant, more):
            for finding in judgement.findings:
                row = {"variant": variant, "claim": judgement.number, "verdict": judgement.verdict}
                row |= {"finding": finding.text, "finding_verdict": finding.verdict, "needed": finding.needed}
                rows.append({**row, **_flat({"estimate": finding.estimate})} if finding.estimate else row)
    return pd.DataFrame(rows)


def runs(study: Study) -> pd.DataFrame:
    """Return one row per planned cell, also those that are missing."""
    return study.runs[[column for column in _OF_RUNS if column in study.runs]]


def csv(table: pd.DataFrame) -> str:
    """Return a table as CSV whose digits do not depend on the machine."""
    return table.to_csv(index=False, float_format="%.6g", lineterminator="\n")


def _parts(study: Study) -> list[tuple[str, Study]]:
    return [(variant, study.of_variant(variant)) for variant in dict.fromkeys(study.done["variant"])]


def _flat(estimates: dict[str, statistics.Estimate]) -> dict[str, float]:
    flat: dict[str, float] = {}
    for name, estimate in estimates.items():
        flat |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        flat["runs"] = estimate.runs
    return flat
