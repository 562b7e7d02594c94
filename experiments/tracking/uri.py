"""Tracking addresses: which MLflow store one names, and whether it answers, found out without importing MLflow."""

import http.client
import os
import sqlite3
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from experiments.grid.errors import UserError

DEFAULT = "sqlite:///mlflow.db"
_PATIENCE_S = 5.0
_WITHOUT = "or run without MLflow: --no-tracking"
_DATABASES = ("postgresql", "mysql", "mssql")
_OTHERS = ("databricks", "databricks-uc", "uc")


def tracking_uri(given: str | None) -> str:
    """Return the address to use: the one given, MLflow's own environment variable, or a SQLite file here."""
    return given or os.environ.get("MLFLOW_TRACKING_URI") or DEFAULT


def answers(uri: str) -> bool:
    """Return whether the store is known to be there; False: only MLflow can tell. Raise UserError if it is not."""
    scheme = _scheme(uri)
    if scheme == "sqlite":
        _refuse_bad_database(sqlite_path(uri))
        return True
    if scheme in ("http", "https"):
        _refuse_silent_server(uri)
        return True
    if scheme in _DATABASES or uri.partition(":")[0] in _OTHERS:
        return False
    known = ", ".join(("sqlite", "http", "https", *_DATABASES, "databricks"))
    raise UserError(f"--tracking-uri {shown(uri)}: MLflow stores are addressed by {known}; for example {DEFAULT}")


def _scheme(uri: str) -> str:
    try:
        return urlsplit(uri).scheme.partition("+")[0]
    except ValueError as error:
        raise UserError(f"--tracking-uri {uri}: not an address ({error}); for example {DEFAULT}") from error


def sqlite_path(uri: str) -> Path | None:
    """Return the file of a SQLite address (sqlite:///here.db or sqlite:////else/where.db), None for other stores."""
    parts = urlsplit(uri)
    return Path(parts.path[1:] or "mlflow.db").absolute() if parts.scheme.partition("+")[0] == "sqlite" else None


def shown(uri: str) -> str:
    """Return the address without the name and password that it may hold."""
    parts = urlsplit(uri)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])) if "@" in parts.netloc else uri


def _refuse_silent_server(uri: str) -> None:
    request = urllib.request.Request(urlunsplit(urlsplit(shown(uri))._replace(query="")).rstrip("/") + "/health")
    try:
        urllib.request.urlopen(request, timeout=_PATIENCE_S).close()
    except urllib.error.HTTPError:
        return  # it answers; whether it lets us in is for MLflow to find out
    except (OSError, ValueError, OverflowError, http.client.HTTPException) as error:  # the last two: of odd ports
        reason = getattr(error, "reason", error)
        raise UserError(
            f"the tracking server {shown(uri)} can't be reached ({reason}): start it, {_WITHOUT}"
        ) from error


def _is_too_long(name: str) -> bool:
    return len(os.fsencode(name)) > 255  # bytes, in any file system's names


def _refuse_bad_database(path: Path | None) -> None:
    assert path is not None
    folder = path.parent
    if os.path.isdir(path) or not os.path.isdir(folder) or not os.access(folder, os.W_OK) or _is_too_long(path.name):
        raise UserError(f"the tracking database {path} can't be written: choose another --tracking-uri, {_WITHOUT}")
    if not path.exists():
        return
    try:
        with sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=_PATIENCE_S) as database:
            database.execute("SELECT name FROM sqlite_master LIMIT 1").fetchall()
    except sqlite3.OperationalError:
        return  # busy
    except sqlite3.DatabaseError as error:
        raise UserError(f"{path} is not a SQLite database: choose another --tracking-uri, {_WITHOUT}") from error
