"""From a results folder to a study: what its cells hold, or what its compact tables kept of them.

    study = load_study(Path("results/report"))

A cell that is missing, unfinished, failed or unreadable has a row that says so.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from a3c_core.games.base import EnvironmentConfig
from a3c_core.schedules import ScheduleConfig, parse_workers
from a3c_core.virtual.costs import CostProfile
from analysis.data import compact, metrics
from analysis.data.score import StudyScore, score_of
from analysis.data.study import DONE, Study, StudyError, schedule_label, variant_label

OnCell = Callable[[int, int], None]  # (cells read, cells in all)


class Plan(NamedTuple):
    """What a study set out to run: the content of study.json."""

    name: str
    question: str
    axes: dict[str, list[Any]]
    cells: list[dict[str, Any]]


def load_study(folder: Path | str, on_cell: OnCell | None = None) -> Study:
    """Return the study in `folder`; nothing is written."""
    plan = read_plan(Path(folder))
    return assemble(plan, collect(Path(folder), plan, on_cell))


def read_plan(folder: Path) -> Plan:
    """Return the plan in `folder`/study.json; say what is wrong if there is none."""
    path = folder / "study.json"
    if not folder.is_dir():
        raise StudyError(f"no folder {folder}: give the folder of a study, such as results/report")
    if not path.exists():
        raise StudyError(f"{folder} holds no study: it has no study.json, which run_sweep.py writes")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        plan = Plan(str(content["name"]), str(content["question"]), dict(content["axes"]), list(content["cells"]))
        for cell in plan.cells:
            cell["id"], cell["settings"]["seed"], cell["config"]["workers"], cell["config"]["episodes"]
    except (ValueError, KeyError, TypeError) as error:
        raise StudyError(f"{path} is not a study's plan: it needs name, question, axes and cells") from error
    if not plan.cells:
        raise StudyError(f"{path} plans no cells")
    return plan


def collect(folder: Path, plan: Plan, on_cell: OnCell | None = None) -> compact.Compact:
    """Return the compact tables of a study: from its cells where they are done, else as kept before."""
    kept = compact.read(folder) or compact.empty()
    rows, curves = [], []
    for number, cell in enumerate(plan.cells):
        row, curve = _collect_cell(folder, cell, kept)
        if row is not None:
            rows.append(row)
        if curve is not None:
            curves.append(curve)
        if on_cell is not None:
            on_cell(number + 1, len(plan.cells))
    blank = compact.empty()
    together = pd.concat(curves) if curves else blank.curves
    runs = pd.DataFrame(rows, columns=blank.runs.columns)
    return compact.rounded(compact.Compact(runs, together[list(blank.curves.columns)].reset_index(drop=True)))


def _collect_cell(
    folder: Path, cell: dict[str, Any], kept: compact.Compact
) -> tuple[dict[str, Any] | None, pd.DataFrame | None]:
    """Return a cell's row and curve, each None if there is none."""
    directory = folder / "cells" / cell["id"]
    old = kept.runs[(kept.runs["cell"] == cell["id"]) & (kept.runs["config"] == compact.text(cell["config"]))]
    old_row = old.iloc[0].to_dict() if len(old) else None
    old_curve = kept.curves[kept.curves["cell"] == cell["id"]] if old_row and old_row["status"] in DONE else None
    if not (directory / "config.json").exists() and not (directory / "metadata.json").exists():
        return old_row, old_curve
    row = compact.row_of(directory, cell["id"], cell["config"])
    if row["status"] not in DONE:
        return (old_row, old_curve) if old_curve is not None else (row, None)
    if old_row is not None and old_curve is not None and old_row["episodes_sha256"] == row["episodes_sha256"]:
        return row, old_curve
    try:
        return row, compact.curve_of(directory, cell["id"], cell["config"]["episodes"])
    except StudyError as error:
        return {**row, "status": "unreadable", "reason": str(error)}, None


def assemble(plan: Plan, tables: compact.Compact) -> Study:
    """Return the study that a plan and its compact tables make."""
    rows = {row["cell"]: row for row in tables.runs.to_dict("records")}
    curves = dict(iter(tables.curves.groupby("cell", observed=True)))
    runs = pd.DataFrame([_run_row(cell, rows.get(cell["id"]), curves.get(cell["id"])) for cell in plan.cells])
    repeated = runs.duplicated(["schedule", "variant", "seed"])
    runs = runs[~repeated].reset_index(drop=True)
    return Study(plan.name, plan.question, plan.axes, runs, tables.curves, _score(plan.cells[0]["config"]))


def _score(config: Mapping[str, Any]) -> StudyScore:
    return score_of(config.get("environment", {}).get("id", EnvironmentConfig().id))


def _run_row(cell: dict[str, Any], row: Mapping[Any, Any] | None, curve: pd.DataFrame | None) -> dict[str, Any]:
    """Return what is known of one cell: its place in the study, how it ended, and its numbers."""
    config, chosen = cell["config"], cell["settings"]
    schedule = config.get("schedule", {})
    bounds = {name: schedule[name] for name in ("auto_min", "auto_max") if name in schedule}
    span = parse_workers(config["workers"], ScheduleConfig(**bounds))
    known: Mapping[Any, Any] = row or {"status": "missing", "reason": "not run yet", "played": 0}
    result = {
        "cell": cell["id"],
        "schedule": schedule_label(span, chosen),
        "start": span.start,
        "end": span.end,
        "dynamic": span.start != span.end,
        "adaptive": span.auto,
        "tint": -1,
        "variant": variant_label(chosen),
        "seed": int(chosen["seed"]),
        "planned": int(config["episodes"]),
        "runtime": config.get("runtime", "simulate"),
        "pull": config.get("exchange", {}).get("pull"),
        "entropy_coefficient": config.get("learner", {}).get("entropy_coefficient", np.nan),
        **{name: known.get(name) for name in ("status", "reason", "played", "commit", "dirty", "oversubscribed")},
        "episodes_sha256": known.get("episodes_sha256"),
    }
    if curve is None or known["status"] not in DONE:
        return result
    summary = json.loads(known["summary"]) if isinstance(known.get("summary"), str) else {}
    numbers = {name: value for name, value in summary.items() if isinstance(value, int | float)}
    score = _score(config)
    measured = metrics.run_metrics(curve, score)
    derived = {
        **numbers,
        **measured,
        **(_predictions(known.get("costs"), curve) or _shares_measured(numbers, measured)),
    }
    derived["clock_s"] = float(curve["clock_s"].iloc[-1]) if known["status"] == "finished" else np.nan
    derived["collapsed"] = metrics.collapsed(
        derived["final_score"],
        derived["queue_peak"],
        derived["workers_max"],
        known["status"] == "overloaded",
        score.learned_above,
    )
    return {**result, **derived}


def _predictions(costs: object, curve: pd.DataFrame) -> dict[str, float]:
    """Return what a cost profile predicts for the episodes that were played: N*, shares of a worker's time, service."""
    if not isinstance(costs, str):
        return {}
    known = {name: value for name, value in json.loads(costs).items() if name in CostProfile.model_fields}
    profile = CostProfile.model_validate(known)
    predictions = {"update_s": profile.update_s * profile.slowdown, "service_s": profile.service_s(mailboxes=1)}
    for when, part in (("start", metrics.first_tenth(curve)), ("end", metrics.last_tenth(curve))):
        steps = float(part["steps"].mean())
        cycle_s = profile.cycle_s(steps)
        play_s = profile.slowdown * (profile.reset_s + profile.step_s * steps)
        gradient_s = profile.slowdown * (profile.gradient_call_s + profile.gradient_step_s * steps)
        predictions |= {
            f"saturation_{when}": profile.saturation_workers(steps),
            f"cycle_s_{when}": cycle_s,
            f"play_share_{when}": play_s / cycle_s,
            f"gradient_share_{when}": gradient_s / cycle_s,
            f"service_share_{when}": predictions["service_s"] / cycle_s,
        }
    return predictions


def _shares_measured(summary: dict[str, float], measured: dict[str, float]) -> dict[str, float]:
    """Return the same for a run by the real clock, from what was measured there; shares are those of the whole run."""
    service_s, cycle_s = measured["service_s_start"], measured["cycle_s_start"]
    result = {"saturation_start": measured["saturation_observed"], "service_s": service_s, "update_s": service_s}
    split = {name: summary.get(f"worker_{name}_s", 0.0) for name in ("play", "gradient", "pull", "wait", "apply")}
    total_s = sum(split.values())
    if total_s > 0 and cycle_s > 0:
        for when in ("start", "end"):
            result[f"play_share_{when}"] = split["play"] / total_s
            result[f"gradient_share_{when}"] = split["gradient"] / total_s
            result[f"service_share_{when}"] = service_s / cycle_s
    return result
