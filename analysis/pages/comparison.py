"""What a page that compares studies has beyond others: where settings differ, and what became of the runs."""

from typing import Any

import pandas as pd

from analysis.data import outcomes
from analysis.data.beside import differing_settings, paired
from analysis.data.inference import share_difference
from analysis.data.statistics import Estimate, paired_difference, paired_ratio
from analysis.data.study import Schedule, Study
from analysis.pages.tables import flat
from analysis.words import number, percent, with_interval


def comparison_tables(study: Study) -> dict[str, pd.DataFrame]:
    """Return the tables by name: `settings` that differ, and `differences` between runs."""
    return {"settings": differing_settings(study), "differences": differences(study)}


def differences(study: Study) -> pd.DataFrame:
    """Return one row for each schedule that settings of two studies have in common, the first study's beside another's.

    Differences are paired by seed, over all runs.
    """
    variants = study.done.drop_duplicates("variant")[["study", "variant"]].values.tolist()
    first = variants[0][0] if variants else ""
    pairs = [(a, b) for one, a in variants if one == first for other, b in variants if other != first]
    return pd.DataFrame([row for a, b in pairs for row in _rows(study.of_variant(a), study.of_variant(b))])


def _rows(ours: Study, theirs: Study) -> list[dict[str, Any]]:
    names = {"ours": ours.variants[0], "theirs": theirs.variants[0]}
    counterparts = {schedule.label: schedule for schedule in theirs.schedules()}
    shared = [schedule for schedule in ours.schedules() if schedule.label in counterparts]
    return [{**names, "schedule": s.label, **_row(ours, s, theirs, counterparts[s.label])} for s in shared]


def _row(ours: Study, a: Schedule, theirs: Study, b: Schedule) -> dict[str, Any]:
    hits = outcomes.learned(ours, a), outcomes.learned(theirs, b)
    sides = (ours, a), (theirs, b)
    scores = paired(*sides, "final_score")
    estimates = {
        "learned_share_difference": share_difference(
            scores[0] >= ours.score.learned_above, scores[1] >= theirs.score.learned_above
        ),
        "score_difference": paired_difference(*scores),
        "clock_s_ratio": paired_ratio(*paired(*sides, "clock_s")),
    }
    learned = {
        "ours_learned": f"{hits[0].sum()} of {len(hits[0])}",
        "theirs_learned": f"{hits[1].sum()} of {len(hits[1])}",
    }
    return {**learned, **flat(estimates)}


def shown_tables(study: Study, tables: dict[str, pd.DataFrame]) -> list[dict[str, Any]]:
    """Return both tables as they stand on the page; nothing for a page of one study."""
    return (
        [_settings_table(tables["settings"]), _differences_table(study, tables["differences"])] if study.origins else []
    )


def _settings_table(table: pd.DataFrame) -> dict[str, Any]:
    note = "Every setting that is not the same in both, with all values that a study has of it."
    rows = table.astype(str).values.tolist()
    return {"title": "Settings that differ", "columns": list(table.columns) or ["none"], "rows": rows, "note": note}


def _differences_table(study: Study, table: pd.DataFrame) -> dict[str, Any]:
    columns = ["first", "second", "workers", "learned, first", "learned, second", "more often"]
    columns += [f"higher by ({study.score.unit})", "times as long"]
    rows = []
    for row in table.to_dict("records"):
        shown = [row[name] for name in ("ours", "theirs", "schedule", "ours_learned", "theirs_learned")]
        shown.append(_words(row, "learned_share_difference", percent))
        rows.append([*shown, _words(row, "score_difference"), _words(row, "clock_s_ratio")])
    note = "What both have run, the first compared with the second: how much more often it learned, how much higher it "
    note += (
        "scored at the end and how many times as long it took, with 95 % intervals; scores and times by shared seeds."
    )
    return {"title": "Runs of both", "columns": columns, "rows": rows, "note": note}


def _words(row: dict[Any, Any], name: str, show: Any = number) -> str:
    estimate = Estimate(row[name], row[f"{name}_low"], row[f"{name}_high"], row["runs"])
    return with_interval(estimate, show)
