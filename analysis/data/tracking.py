"""From an MLflow experiment to a study's folder: its plan and its compact tables, without the full records."""

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pandas as pd

from a3c_core.config import RunConfig
from a3c_core.records.files import write_json
from a3c_core.records.layout import DONE, read_json
from a3c_core.saved_settings import flatten
from a3c_core.trusted_modules import modules_of
from analysis.data import compact
from analysis.data.study import StudyError

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

DEFAULT_URI = "sqlite:///mlflow.db"
_FILES = ("config.json", "metadata.json", "summary.json", "episodes.parquet", "updates.parquet")
_STATUS, _LOGGED, _NAME, _NOTE = "cell_status", "episodes_logged", "mlflow.runName", "mlflow.note.content"
_CELL, _QUESTION = "cell", "question"
_ENVIRONMENT = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "30"}
_ENVIRONMENT |= {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false"}

OnRun = Callable[[int, int], None]  # (runs read, runs in all)


def fetch(experiment: str, uri: str | None, folder: Path, on_run: OnRun = lambda done, total: None) -> None:
    """Fill `folder` with the study of an experiment's runs: study.json and the compact tables."""
    uri = uri or os.environ.get("MLFLOW_TRACKING_URI") or DEFAULT_URI
    _refuse_other_study(folder)
    client = _connect(uri)
    runs = _runs_of(client, experiment)
    cells = newest_cells(runs)
    if not cells:
        raise StudyError(f"the experiment {experiment} holds no runs of run_sweep.py")
    planned, rows, curves = [], [], []
    for number, run in enumerate(cells):
        cell, row, curve = _read_run(client, run)
        planned.append(cell)
        rows.append(row)
        curves += [] if curve is None else [curve]
        on_run(number + 1, len(cells))
    blank = compact.empty()
    together = pd.concat(curves)[list(blank.curves.columns)] if curves else blank.curves
    write_json(folder / "study.json", _plan(experiment, runs, planned))
    compact.write(folder, compact.Compact(pd.DataFrame(rows, columns=blank.runs.columns), together))


def newest_cells(runs: "list[Run]") -> "list[Run]":
    """Return one run per cell, in the order of their start: the newest that is done, else the newest."""
    chosen: dict[str, Run] = {}
    for run in sorted((run for run in runs if _STATUS in run.data.tags), key=lambda run: run.info.start_time):
        name = _cell_of(run)
        before = chosen.get(name)
        if before is None or run.data.tags[_STATUS] in DONE or before.data.tags[_STATUS] not in DONE:
            chosen[name] = run
    return list(chosen.values())


def _cell_of(run: "Run") -> str:
    """Return the id of a run's cell, which was its name once."""
    return run.data.tags.get(_CELL) or run.data.tags[_NAME]


def settings_of(cell: str, config: dict[str, Any]) -> dict[str, Any]:
    """Return a cell's values on the axes: its id names them, by the last part of their names where that is enough."""
    flat = dict(flatten(config))
    settings: dict[str, Any] = {}
    for part in cell.split(","):
        short, _, text = part.partition("=")
        full = short if short in flat else next((name for name in flat if name.endswith(f".{short}")), short)
        settings[full] = flat.get(full, text)
    return {**settings, "seed": config["seed"]}


def _connect(uri: str) -> "MlflowClient":
    """Return a client of the store; MLflow has many ways to fail at an odd address, and the user needs the reason."""
    try:
        return _client(uri)
    except StudyError:
        raise
    except Exception as error:
        raise _cant_be_asked(error) from error


def _client(uri: str) -> "MlflowClient":
    if uri.startswith("sqlite:"):
        path = Path(urlsplit(uri).path[1:])
        if not os.path.isfile(path):
            raise StudyError(f"no tracking database {path}: give --tracking-uri, or run a sweep first")
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    return MlflowClient(uri)


def _runs_of(client: "MlflowClient", experiment: str) -> "list[Run]":
    """Return all runs of an experiment, the sweeps' own among them."""
    try:
        found = client.get_experiment_by_name(experiment)
        if found is None:
            names = [e.name for e in client.search_experiments() if e.name != "Default"]
            raise StudyError(f"no experiment {experiment}; there are {', '.join(names) if names else 'none'}")
        return list(_pages(client, found.experiment_id))
    except StudyError:
        raise
    except Exception as error:
        raise _cant_be_asked(error) from error


def _cant_be_asked(error: Exception) -> StudyError:
    return StudyError(f"MLflow can't be asked: {' '.join(str(error).split())[:200] or type(error).__name__}")


def _pages(client: "MlflowClient", experiment_id: str) -> "Iterator[Run]":
    token = None
    while True:
        page = client.search_runs([experiment_id], max_results=1000, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def _read_run(client: "MlflowClient", run: "Run") -> tuple[dict[str, Any], dict[str, Any], pd.DataFrame | None]:
    """Return a cell's plan, its row and its curve, the last None if it is not done."""
    name = _cell_of(run)
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        _download(client, run.info.run_id, directory)
        config = _config(directory, run)
        row = compact.row_of(directory, name, config)
        curve = None
        if row["status"] in DONE:
            try:
                measured = compact.measure(directory, name, config["episodes"], config.get("env_steps"))
                curve = measured.curve
                row |= {**compact.averages_of(directory), "final_score": measured.final_score}
            except StudyError as error:
                row |= {"status": "unreadable", "reason": str(error)}
        else:
            row |= {"status": run.data.tags[_STATUS], "reason": run.data.tags.get("reason") or None}
            row["played"] = int(run.data.tags.get(_LOGGED, 0))
    return {"id": name, "settings": settings_of(name, config), "config": config}, row, curve


def _download(client: "MlflowClient", run_id: str, directory: Path) -> None:
    """Bring those of the run's files that are there."""
    from mlflow.exceptions import MlflowException

    try:
        there = {item.path for item in client.list_artifacts(run_id)}
        for name in _FILES:
            if name in there:
                client.download_artifacts(run_id, name, str(directory))
    except (MlflowException, OSError) as error:
        raise StudyError(
            f"the artifacts of MLflow run {run_id} can't be read: {' '.join(str(error).split())[:200]}"
        ) from error


def _config(directory: Path, run: "Run") -> dict[str, Any]:
    """Return a run's settings: from its file, or put together from its parameters if it has not ended."""
    path = directory / "config.json"
    if path.is_file():
        settings = read_json(path)
        if settings is None or "workers" not in settings:
            raise StudyError(f"MLflow run {run.info.run_id} has a config.json that does not hold a run's settings")
        return settings
    nested: dict[str, Any] = {}
    for name, value in run.data.params.items():
        *outer, last = name.split(".")
        section = nested
        for key in outer:
            section = section.setdefault(key, {})
        section[last] = _value(value)
    known = {name: value for name, value in nested.items() if name in RunConfig.model_fields}
    if modules_of(known):
        return known  # reading results imports no modules that they name
    try:
        return RunConfig.model_validate(known).model_dump(mode="json")
    except ValueError as error:
        raise StudyError(f"MLflow run {run.info.run_id} has settings of another version") from error


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _plan(experiment: str, runs: "list[Run]", cells: list[dict[str, Any]]) -> dict[str, Any]:
    asked = [run.data.tags.get(_QUESTION) or run.data.tags.get(_NOTE) for run in runs]
    notes = [question for question in asked if question]
    axes: dict[str, list[Any]] = {}
    for cell in cells:
        for name, value in cell["settings"].items():
            if name != "seed" and value not in axes.setdefault(name, []):
                axes[name].append(value)
    question = notes[0] if notes else f"What do the runs of {experiment} show?"
    plan = {"name": experiment, "question": question, "source": "mlflow", "axes": axes, "cells": cells}
    return {**plan, **_stated(runs)}


def _stated(runs: "list[Run]") -> dict[str, Any]:
    """Return the prediction of the grid's author, and what counts as learned, if a sweep's run has them."""
    tags = [run.data.tags for run in runs]
    predictions = [tag["prediction"] for tag in tags if "prediction" in tag]
    bounds = [_number(tag["learned_above"]) for tag in tags if "learned_above" in tag]
    known: dict[str, list[Any]] = {"prediction": predictions, "learned_above": [b for b in bounds if b is not None]}
    return {name: values[-1] for name, values in known.items() if values}


def _number(text: str) -> float | None:
    """Return the number in a tag; None for what people wrote into it."""
    try:
        return float(text)
    except ValueError:
        return None


def _refuse_other_study(folder: Path) -> None:
    """Refuse to write over a study that was not made from MLflow."""
    path = folder / "study.json"
    if path.exists() and (read_json(path) or {}).get("source") != "mlflow":
        raise StudyError(f"{folder} holds a study already: read that (without --experiment), or choose another --out")
