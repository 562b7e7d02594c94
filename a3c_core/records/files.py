"""Files and directories that are written whole or not at all."""

import glob
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

UNFINISHED = ".unfinished-"  # how the names of directories begin that are being written or removed


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Let `write` fill a temporary sibling, bring it to disk, and only then give it its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(path)
    temporary = path.with_name(f".{path.name}.{platform.node()}.{os.getpid()}.tmp")
    try:
        write(temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _remove_abandoned(path: Path) -> None:
    """Remove what processes of this machine that were killed in the middle have left of the same file."""
    ours = f".{path.name}.{platform.node()}."
    for left in path.parent.glob(f"{glob.escape(ours)}*.tmp"):
        process = left.name.removeprefix(ours).removesuffix(".tmp")
        if process.isdecimal() and not _lives(int(process)):
            left.unlink(missing_ok=True)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # of another user
        return True
    return True


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write `content` as readable JSON, whole."""
    text = json.dumps(content, indent=2) + "\n"
    write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_whole_directory(path: Path, write: Callable[[Path], Any]) -> None:
    """Let `write` fill a temporary sibling with files, bring them to disk, and only then give it its name.

    A directory that has the name already is replaced. If the process is killed, a sibling that is called UNFINISHED
    may be left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=path.parent))
    try:
        write(temporary)
        for file in (*temporary.iterdir(), temporary):
            _bring_to_disk(file)
        temporary.chmod(0o755)
        remove_directory(path)
        temporary.rename(path)
        _bring_to_disk(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def remove_directory(path: Path) -> None:
    """Remove a directory, if there is one, so that it is never seen half removed."""
    if path.exists():
        doomed = path.with_name(f"{UNFINISHED}{path.name}-{os.getpid()}")
        path.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def _bring_to_disk(path: Path) -> None:
    if os.name == "posix" or path.is_file():  # elsewhere directories can't be synchronised
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
