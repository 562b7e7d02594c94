"""Files that are written whole or not at all."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Let `write` fill a temporary sibling, bring it to disk, and only then give it its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write `content` as readable JSON, whole."""
    text = json.dumps(content, indent=2) + "\n"
    write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))
