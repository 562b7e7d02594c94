"""The MLflow store: reached and set up so that several sweeps may start on a new one at the same moment."""

import fcntl
import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from a3c_core.system.imports import for_good
from experiments.tracking.uri import sqlite_path

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment, Run

_ENVIRONMENT = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",  # we try again ourselves
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}


_EXPERIMENT_TAGS = {"mlflow.experimentKind": "custom_model_development"}  # else the UI asks


class Deleted(Exception):
    """The experiment was deleted in MLflow; the message is for the user."""


@for_good()
def connect(uri: str) -> "MlflowClient":
    """Return a client, with the store's tables in place. This imports MLflow, which takes seconds."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    database = sqlite_path(uri)
    with _alone(database):
        if database is not None and not database.exists():
            _make_whole(database)
        client = MlflowClient(uri)
        client.search_experiments(max_results=1)
    return client


def _make_whole(database: Path) -> None:
    """Make a new SQLite store under another name first: one that is left half made would be of no use for good."""
    from mlflow import MlflowClient

    new = database.with_name(f".{database.name}.new")
    for left in database.parent.glob(f"{glob.escape(new.name)}*"):  # with its journal
        left.unlink()
    MlflowClient(f"sqlite:///{new}").search_experiments(max_results=1)
    new.rename(database)


def experiment_of(client: "MlflowClient", uri: str, name: str) -> str:
    """Return the id of the experiment called `name`, which is made if there is none."""
    with _alone(sqlite_path(uri)):
        experiment = client.get_experiment_by_name(name) or _create(client, uri, name)
    if experiment.lifecycle_stage != "active":
        raise Deleted(
            f"the experiment {name} was deleted in MLflow: restore it there, or remove it for good (mlflow gc)"
        )
    return str(experiment.experiment_id)


def all_runs(client: "MlflowClient", experiment: str) -> "Iterator[Run]":
    """Yield all runs of an experiment but deleted ones."""
    token = None
    while True:
        page = client.search_runs([experiment], max_results=1000, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def _create(client: "MlflowClient", uri: str, name: str) -> "Experiment":
    from mlflow.exceptions import MlflowException

    database = sqlite_path(uri)
    location = (database.parent / "mlartifacts" / name).as_uri() if database else None
    try:
        return client.get_experiment(client.create_experiment(name, location, _EXPERIMENT_TAGS))
    except MlflowException:
        experiment = client.get_experiment_by_name(name)  # somebody else may have been faster
        if experiment is None:
            raise
        return experiment


@contextmanager
def _alone(database: Path | None) -> Iterator[None]:
    """Keep other sweeps from setting up the same SQLite file meanwhile."""
    if database is None:
        yield
        return
    with database.with_name(f"{database.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
