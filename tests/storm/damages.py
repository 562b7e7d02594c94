"""Damages to what a run or a sweep has left on disk, by name; each can be undone."""

import shutil
import zlib
from collections.abc import Callable
from pathlib import Path

Harm = Callable[[Path], None]


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)  # a run may be writing there
    else:
        path.unlink()


def _halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _flip(path: Path) -> None:
    """Change one byte in the middle."""
    content = bytearray(path.read_bytes())
    if content:
        content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def flip_bit(path: Path, place: float) -> None:
    """Change one bit, at a share of the file in [0, 1)."""
    content = bytearray(path.read_bytes())
    bit = int(place * 8 * len(content))
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def _flip_a_bit(path: Path) -> None:
    """Change a bit whose place depends on the file's content, so that the same round does the same."""
    if path.stat().st_size:
        flip_bit(path, zlib.crc32(path.read_bytes()) / 2**32)


def _swap(path: Path) -> None:
    """Let a cell's file be the same of another cell, or of the part before it."""
    others = [*path.parents[1].glob(f"*/{path.name}"), *path.parent.glob(f"*{path.suffix}")]
    different = [other for other in others if other.read_bytes() != path.read_bytes()]
    if different:
        path.write_bytes(different[0].read_bytes())


HARMS: dict[str, tuple[str, Harm]] = {  # name: (what it may befall, below the folder of results; how)
    "part flipped": ("**/*.parts/*.parquet", _flip_a_bit),
    "part swapped": ("**/*.parts/*.parquet", _swap),
    "records flipped": ("**/[eu]*s.parquet", _flip_a_bit),
    "records swapped": ("**/[eu]*s.parquet", _swap),
    "summary flipped": ("**/summary.json", _flip_a_bit),
    "summary swapped": ("**/summary.json", _swap),
    "part missing": ("**/episodes.parts/*.parquet", _remove),
    "part truncated": ("**/episodes.parts/*.parquet", _halve),
    "records missing": ("**/episodes.parquet", _remove),
    "records truncated": ("**/episodes.parquet", _halve),
    "checkpoint damaged": ("**/checkpoints/[0-9]*/*", _flip),
    "checkpoints missing": ("**/checkpoints", _remove),
    "summary emptied": ("**/summary.json", _empty),
    "metadata emptied": ("**/metadata.json", _empty),
    "cells missing": ("*/cells", _remove),
    "study damaged": ("*/study.json", _halve),
}


def inflict(results: Path, name: str, choice: float, backup: Path) -> Path | None:
    """Damage one of the files that it may befall, leaving a copy in `backup`; return it, or None if there is none."""
    pattern, harm = HARMS[name]
    candidates = sorted(results.glob(pattern))
    if not candidates:
        return None
    victim = candidates[int(choice * len(candidates))]
    shutil.rmtree(backup, ignore_errors=True)
    backup.mkdir()
    try:
        (shutil.copytree if victim.is_dir() else shutil.copy2)(victim, backup / victim.name)
        harm(victim)
    except (OSError, shutil.Error):  # the run itself has removed it just now
        return None
    return victim


def undo(victim: Path, backup: Path) -> None:
    """Bring back what was there before."""
    if victim.exists():
        _remove(victim)
    victim.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(backup / victim.name, victim)
