"""From a results folder to a study: what its cells hold, or what its compact tables kept of them.

    study = load_study("results/report")    # docs/data.md says what can be done with it

A cell that is missing, unfinished, failed or unreadable has a row that says so.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pydantic import ValidationError

from a3c_core.games.base import EnvironmentConfig
from a3c_core.records import plan as plans
from a3c_core.records.completeness import flaw
from a3c_core.records.layout import CELLS, CONFIG, DONE, METADATA, STUDY
from a3c_core.saved_settings import of_saved
from a3c_core.schedules import ScheduleConfig, parse_workers
from a3c_core.virtual.costs import CostProfile
from analysis.data import capacity, compact, metrics, stations
from analysis.data.score import StudyScore, score_of, with_untrained
from analysis.data.study import Study, StudyError, schedule_label, variant_label

OnCell = Callable[[int, int], None]  # (cells read, cells in all)
_SAID_ELSEWHERE = ("episodes", "env_steps", "update_s")  # settings whose names stand for what a run came to


class Plan(NamedTuple):
    """What a study set out to run: the content of study.json."""

    name: str
    question: str
    axes: dict[str, list[Any]]
    cells: list[dict[str, Any]]
    prediction: str = ""
    learned_above: float | None = None  # by the study's grid


def load_study(folder: Path | str, on_cell: OnCell | None = None) -> Study:
    """Return the study in `folder`; nothing is written."""
    plan = read_plan(Path(folder))
    return replace(assemble(plan, collect(Path(folder), plan, on_cell)), folder=Path(folder))


def read_plan(folder: Path) -> Plan:
    """Return the plan in `folder`/study.json; say what is wrong if there is none."""
    if not folder.is_dir():
        raise StudyError(f"no folder {folder}: give the folder of a study, such as results/report")
    content = plans.read_plan(folder)
    if content is None:
        raise StudyError(f"{folder} holds no study: it has no {STUDY}, which run_sweep.py writes")
    if not content["cells"]:
        raise StudyError(f"{folder / STUDY} plans no cells")
    grid = {**content, **(content.get("grid") or {})}  # a study that was fetched from MLflow has no grid
    stated = str(grid.get("prediction") or ""), grid.get("learned_above")
    return Plan(content["name"], content["question"], content["axes"], content["cells"], *stated)


class Gathered(NamedTuple):
    """The compact tables of a study, and where they come from."""

    tables: compact.Compact
    kept: int = 0  # planned runs that could not be seen anew, and are as the tables had them
    beyond: int = 0  # runs that the plan does not know (any more)


def collect(folder: Path, plan: Plan, on_cell: OnCell | None = None) -> compact.Compact:
    """Return the compact tables of a study: from its cells where they are done, else as kept before."""
    return gather(folder, plan, on_cell).tables


def gather(folder: Path, plan: Plan, on_cell: OnCell | None = None) -> Gathered:
    """Bring the compact tables up to date: a run is replaced by a newer one of its cell, and never dropped."""
    kept = compact.read(folder) or compact.empty()
    kept_curves, kept_rows = _by_cell(kept.curves), defaultdict(list)
    for row in kept.runs.to_dict("records"):
        kept_rows[row["cell"]].append(row)
    found = []
    for number, cell in enumerate(plan.cells):
        old = _kept_of(cell, kept_rows[cell["id"]], kept_curves.get(cell["id"]))
        found.append(_collect_cell(folder / CELLS / cell["id"], cell, old))
        if on_cell is not None:
            on_cell(number + 1, len(plan.cells))
    rows = [row for row, _, _ in found if row is not None]
    done = {row["cell"] for row in rows if row["status"] in DONE}
    beyond = kept.runs[kept.runs["status"].isin(DONE) & ~kept.runs["cell"].isin(done)]
    curves = [curve for _, curve, _ in found if curve is not None]
    curves += [kept.curves[kept.curves["cell"].isin(beyond["cell"])]] if len(beyond) else []
    tables = _tables([*rows, *beyond.to_dict("records")], curves)
    return Gathered(tables, sum(is_kept for _, _, is_kept in found), len(beyond))


def _tables(rows: list[dict[Any, Any]], curves: list[pd.DataFrame]) -> compact.Compact:
    blank = compact.empty()
    together = pd.concat(curves) if curves else blank.curves
    runs = pd.DataFrame(rows, columns=blank.runs.columns)
    return compact.rounded(compact.Compact(runs, together[list(blank.curves.columns)].reset_index(drop=True)))


Kept = tuple[dict[str, Any] | None, pd.DataFrame | None]  # a cell's row and curve
Found = tuple[dict[str, Any] | None, pd.DataFrame | None, bool]  # both, and whether they were kept


def _by_cell(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {str(cell): rows for cell, rows in table.groupby("cell", observed=True)}


def _collect_cell(directory: Path, cell: dict[str, Any], old: Kept) -> Found:
    """Return what is there of a cell: what its directory holds, or what was kept if that is all, or better."""
    new = _read_cell(directory, cell, old)
    if new[0] is None or (new[0]["status"] not in DONE and old[1] is not None):
        return (*old, old[1] is not None)
    return (*new, False)


def _kept_of(cell: dict[str, Any], rows: Sequence[dict[Any, Any]], curve: pd.DataFrame | None) -> Kept:
    """Return the row and the curve of a cell with these settings, of those that were kept under its name."""
    for row in rows:
        if compact.is_of(row, cell):
            return {str(name): value for name, value in row.items()}, curve if row["status"] in DONE else None
    return None, None


def _read_cell(directory: Path, cell: dict[str, Any], old: Kept) -> Kept:
    """Return the row and the curve of a cell's directory; the curve is the old one if the records are the same."""
    if not (directory / CONFIG).exists() and not (directory / METADATA).exists():
        return None, None
    row = compact.row_of(directory, cell["id"], cell["config"])
    if row["status"] not in DONE:
        return row, None
    old_row, curve = old
    planned = cell["config"]["episodes"], cell["config"].get("env_steps")
    try:
        if problem := flaw(directory, *planned):
            raise StudyError(problem)
        known: dict[str, Any] = {name: (old_row or {}).get(name) for name in (*compact.AVERAGES, "final_score")}
        same = old_row is not None and old_row["episodes_sha256"] == row["episodes_sha256"]
        if not same or curve is None or any(map(_is_missing, known.values())):
            curve, final_score = compact.measure(directory, cell["id"], *planned)
            known = {**compact.averages_of(directory), "final_score": final_score}
        row |= known
    except StudyError as error:
        return {**row, "status": "unreadable", "reason": str(error)}, None
    return row, curve


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value))


def assemble(plan: Plan, tables: compact.Compact) -> Study:
    """Return the study that a plan and its compact tables make; runs of other settings are no part of it."""
    planned = {cell["id"]: cell for cell in plan.cells}
    every = [row for row in tables.runs.to_dict("records") if row["cell"] in planned]
    rows = {row["cell"]: row for row in every if compact.is_of(row, planned[row["cell"]])}
    ours = tables.curves[tables.curves["cell"].isin(rows)].reset_index(drop=True)
    curves = _by_cell(ours)
    score = _score(plan, [float(curve["score"].iloc[0]) for curve in curves.values()])
    found = [_run_row(cell, rows.get(cell["id"]), curves.get(cell["id"]), score) for cell in plan.cells]
    runs = pd.DataFrame(found)
    repeated = runs.duplicated(["schedule", "variant", "seed"])
    runs = runs[~repeated].reset_index(drop=True)
    runs, identical = _without_identical(runs, curves)
    return Study(
        plan.name, plan.question, plan.axes, runs, ours, score, identical=identical, prediction=plan.prediction
    )


def _without_identical(
    runs: pd.DataFrame, curves: Mapping[str, pd.DataFrame]
) -> tuple[pd.DataFrame, tuple[tuple[str, str], ...]]:
    """Return the runs without schedules whose curves are exactly those of another one, and which these are.

    Growing schedules with different ends are the same where none comes so far: two copies are no two observations.
    """
    same: list[tuple[str, str]] = []
    seen: dict[tuple[object, ...], str] = {}
    dynamic = runs[runs["dynamic"] & runs["cell"].isin(curves)]
    for (variant, schedule), rows in dynamic.groupby(["variant", "schedule"], sort=False):
        cells = rows[["seed", "cell"]].values.tolist()
        told = sorted((seed, curves[cell].drop(columns="cell").to_numpy(float).tobytes()) for seed, cell in cells)
        what = (variant, *told)
        if what in seen:
            same.append((seen[what], str(schedule)))
        seen.setdefault(what, str(schedule))
    left_out = {schedule for _, schedule in same}
    return runs[~runs["schedule"].isin(left_out)].reset_index(drop=True), tuple(dict.fromkeys(same))


def _score(plan: Plan, firsts: Sequence[float]) -> StudyScore:
    """Return the score of the study's game; `firsts` are the mean scores of the runs' first bins."""
    environment = plan.cells[0]["config"].get("environment", {}).get("id", EnvironmentConfig().id)
    return with_untrained(score_of(environment, plan.learned_above), firsts)


def _run_row(
    cell: dict[str, Any], row: Mapping[Any, Any] | None, curve: pd.DataFrame | None, score: StudyScore
) -> dict[str, Any]:
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
        "planned_env_steps": config.get("env_steps") or np.nan,
        "runtime": config.get("runtime", "simulate"),
        "pull": config.get("exchange", {}).get("pull"),
        "algorithm": config.get("algorithm", "a3c"),
        "entropy_coefficient": config.get("learner", {}).get("entropy_coefficient", np.nan),
        "optimizer": config.get("learner", {}).get("optimizer"),
        "hold": config.get("exchange", {}).get("hold", 0),
        **{name: known.get(name) for name in ("status", "reason", "played", "commit", "dirty", "oversubscribed")},
        **{name: known.get(name) for name in ("episodes_sha256", *compact.AVERAGES)},
        "settings": compact.text({name: value for name, value in chosen.items() if name not in ("workers", "seed")}),
    }
    result |= {name: value for name, value in _settings(config).items() if name not in result}
    if curve is None or known["status"] not in DONE:
        return result
    summary = compact.parsed(known.get("summary"))
    numbers = {name: value for name, value in summary.items() if isinstance(value, int | float)}
    measured = metrics.run_metrics(curve, score, known.get("final_score"))
    profile = _profile(known.get("costs"))
    derived = {
        **numbers,
        **measured,
        **(_shares_given(profile, curve) if profile else _shares_measured(numbers, measured)),
        **capacity.numbers_of(config, summary, profile),
        **stations.numbers_of(curve, config, summary, profile),
    }
    mark = score.marks[min(1, len(score.marks) - 1)]  # the second: pipes passed by luck are no learning
    derived["learning_begins"] = derived[f"episodes_to_{mark:g}"]
    derived["clock_s"] = float(curve["clock_s"].iloc[-1]) if known["status"] == "finished" else np.nan
    derived["collapsed"] = metrics.collapsed(
        derived["final_score"],
        derived.get("queue_peak", np.nan),
        derived.get("workers_max", np.nan),
        known["status"] == "overloaded",
        score.learned_above,
    )
    return {**result, **derived}


def _settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return every setting of a run under its dotted name; lists as text, so that runs can be grouped by them."""
    flat = {name: value for name, value in of_saved(config).items() if name not in _SAID_ELSEWHERE}
    return {name: str(value) if isinstance(value, list) else value for name, value in flat.items()}


def _profile(costs: object) -> CostProfile | None:
    """Return the costs that a run was given; None if it ran by the real clock, or with a profile of another version."""
    known = {name: value for name, value in compact.parsed(costs).items() if name in CostProfile.model_fields}
    try:
        return CostProfile.model_validate(known)
    except ValidationError:
        return None


def _shares_given(profile: CostProfile, curve: pd.DataFrame) -> dict[str, float]:
    """Return what a worker's and the master's time went to, by the profile, in the episodes that were played."""
    shares = {"update_s": profile.update_s * profile.slowdown, "service_s": profile.service_s(mailboxes=1)}
    for when, part in (("start", metrics.first_tenth(curve)), ("end", metrics.last_tenth(curve))):
        steps = float(part["steps"].mean())
        cycle_s = profile.cycle_s(steps)
        play_s = profile.slowdown * (profile.reset_s + profile.step_s * steps)
        gradient_s = profile.slowdown * (profile.gradient_call_s + profile.gradient_step_s * steps)
        shares |= {
            f"play_share_{when}": _share(play_s, cycle_s),
            f"gradient_share_{when}": _share(gradient_s, cycle_s),
            f"service_share_{when}": _share(shares["service_s"], cycle_s),
        }
    return shares


def _share(part_s: float, whole_s: float) -> float:
    """Return the share of a whole; of nothing, where everything is free, there is none."""
    return part_s / whole_s if whole_s else np.nan


def _shares_measured(summary: dict[str, float], measured: dict[str, float]) -> dict[str, float]:
    """Return the same for a run by the real clock, from what was measured there; shares are those of the whole run."""
    service_s, cycle_s = measured["service_s_start"], measured["cycle_s_start"]
    result = {"service_s": service_s, "update_s": service_s}
    split = {name: summary.get(f"worker_{name}_s", 0.0) for name in ("play", "gradient", "pull", "wait", "apply")}
    total_s = sum(split.values())
    if total_s > 0 and cycle_s > 0:
        for when in ("start", "end"):
            result[f"play_share_{when}"] = split["play"] / total_s
            result[f"gradient_share_{when}"] = split["gradient"] / total_s
            result[f"service_share_{when}"] = service_s / cycle_s
    return result
