"""A real MLflow server for the tests, on a free port of 127.0.0.1."""

import atexit
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from experiments.tracking.store import connect
from tests.sweeps import wait_for


def new_database(folder: Path) -> Path:
    """Return the path of a new SQLite store in the folder: a copy, since making one takes MLflow seconds."""
    return Path(shutil.copy(_template(), folder / "mlflow.db"))


@cache
def _template() -> Path:
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    connect(f"sqlite:///{folder}/template.db")
    return folder / "template.db"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# Eight processes for evaluation jobs, which nobody here asks for, would each import MLflow first.
_ENVIRONMENT = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}


@contextmanager
def mlflow_server(database: Path, port: int) -> Iterator[subprocess.Popen]:
    """Serve the SQLite file until the block ends; `kill_server` ends it earlier."""
    options = ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    store = [
        "--backend-store-uri",
        f"sqlite:///{database}",
        "--artifacts-destination",
        str(database.parent / "artifacts"),
    ]
    with (database.parent / "server.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "mlflow", "server", *options, *store],
            cwd=database.parent,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, **_ENVIRONMENT},
        )
    try:
        wait_for(lambda: _is_healthy(port))
        yield process
    finally:
        kill_server(process)


def kill_server(process: subprocess.Popen) -> None:
    """End the server and its workers at once."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _is_healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False
