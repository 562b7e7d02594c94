"""A run of ours as a log: from its records, virtual or real, on disk or in MLflow."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from a3c.advise.measurements import Log, LogError, Numbers
from a3c.advise.readers.timer import LEAST_ROWS, check
from a3c_core.errors import shown
from a3c_core.records.layout import CONFIG, UPDATES, read_json

if TYPE_CHECKING:
    import pyarrow as pa


def read_cell(directory: Path) -> Log:
    """Return the log of the gradients that were applied, as `train` and sweeps leave them in a directory."""
    import pyarrow as pa  # large, and no other log needs it

    from a3c_core.records.tables import UPDATE_TABLE, read_records

    try:
        updates, episodes = read_records(directory, UPDATE_TABLE), read_records(directory)
    except (pa.ArrowException, KeyError) as error:
        raise LogError(f"the records in {shown(str(directory))} can't be read: {error}") from error
    if len(updates) < LEAST_ROWS:
        message = f"{shown(str(directory))} has {len(updates)} records of updates, and at least {LEAST_ROWS} are needed"
        raise LogError(f"{message}: name a cell's directory")
    columns = {name: updates[name].to_numpy() for name in ("worker", "arrived_s", "applied_s", "service_s")}
    pull = (read_json(directory / CONFIG) or {}).get("exchange", {}).get("pull")
    started_s = _starts(pull == "after_apply", columns, episodes)
    applied = updates["status"].to_numpy() == "applied"
    known = applied & np.isfinite(columns["service_s"]) & np.isfinite(started_s)
    if known.sum() < LEAST_ROWS:
        raise LogError(f"{shown(str(directory))} has no master's updates: workers that apply their own wait for nobody")
    steps = float(episodes["steps"].to_numpy().mean()) if len(episodes) else np.nan
    log = Log(
        line=np.flatnonzero(known) + 1,
        worker=columns["worker"][known].astype(np.int64),
        start=started_s[known],
        end=columns["arrived_s"][known],
        update_start=(columns["applied_s"] - columns["service_s"])[known],
        update_end=columns["applied_s"][known],
        env_steps=steps,
        waits=None if pull is None else pull == "after_apply",
    )
    return check(log)


def read_mlflow(address: str) -> Log:
    """Return the log of a run that our sweeps tracked: MLflow's own command brings its files, we need not import it."""
    if not os.environ.get("MLFLOW_TRACKING_URI") and not Path("mlflow.db").is_file():
        raise LogError("there is no ./mlflow.db here, and MLFLOW_TRACKING_URI names no other store")
    with tempfile.TemporaryDirectory() as folder:
        run = address.removeprefix("runs:/").strip("/")
        download = ["mlflow", "artifacts", "download", "--run-id", run, "--dst-path", folder]
        silent = {"MLFLOW_DISABLE_TELEMETRY": "true", **os.environ}
        command = [sys.executable, "-m", *download]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, env=silent)
        if ended.returncode:
            reason = (ended.stderr.strip().splitlines() or ["no reason was given"])[-1]
            raise LogError(f"MLflow has no files of {shown(address)} ({reason})")
        found = next(Path(folder).rglob(UPDATES), None)
        if found is None:
            raise LogError(f"the run {shown(address)} has no {UPDATES}: it is none of our sweeps', or an older one")
        return read_cell(found.parent)


def _starts(waits: bool, columns: dict[str, Numbers], episodes: "pa.Table") -> Numbers:
    """Return when work on each gradient began: with its episode, or where its worker was done with the one before."""
    if len(episodes) == columns["worker"].size:  # one gradient an episode, both in the order of the master
        return episodes["started_s"].to_numpy()
    done_s = columns["applied_s" if waits else "arrived_s"]
    started_s = np.full(done_s.size, np.nan)
    for worker in np.unique(columns["worker"]):
        its = np.flatnonzero(columns["worker"] == worker)
        started_s[its[1:]] = done_s[its[:-1]]
    return started_s
