"""SHA-256 digests: of files, and of JSON objects that hold a digest of themselves."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def digest_of_file(path: Path) -> str:
    """Return the digest of a file's content, which is read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of(content: Mapping[str, Any]) -> str:
    """Return the digest of an object, the same before and after it has been through JSON, and in any order of keys."""
    plain = json.loads(json.dumps(content))
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def sealed(content: Mapping[str, Any], seal: str) -> dict[str, Any]:
    """Return an object with the digest of all that is in it, under the name `seal`."""
    return {**content, seal: digest_of(content)}


def is_intact(content: Mapping[str, Any], seal: str) -> bool:
    """Return whether an object is as it was `sealed`."""
    return content.get(seal) == digest_of({name: value for name, value in content.items() if name != seal})
