"""Where results come from: the code's commit, the versions of what it runs on, and the machine."""

import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from a3c_core.system.cores import cores
from a3c_core.train import RESULTS_VERSION

ROOT = Path(__file__).resolve().parents[1]
_PACKAGES = ("numpy", "numba", "tensorflow", "mlflow")  # TensorFlow and MLflow are not imported for this


def provenance() -> dict[str, Any]:
    """Return what a cell's metadata says of the code and the machine."""
    return {**_git(), "versions": versions(), "cores": cores(), "results_version": RESULTS_VERSION}


@cache
def versions() -> dict[str, str | None]:
    """Return the versions of Python and of the packages that results may depend on."""
    return {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@cache
def _git() -> dict[str, Any]:
    """Return the commit, and whether files that it tracks were changed since; results do not count."""
    commit = _ask_git("rev-parse", "HEAD")
    changed = _ask_git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!results")
    return {"commit": commit, "dirty": None if commit is None else bool(changed)}


def _ask_git(*arguments: str) -> str | None:
    command = ["git", "-C", str(ROOT), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
