"""Checkpoints: the model as Keras opens it, and all else that a run needs in order to go on.

DIR/000000012000/ is the state after 12,000 updates:
    model.keras    for `keras.models.load_model`
    learner.npz    flat parameters and the optimizer's moving averages
    <name>.npz     further arrays that the run gave to `save`
    <name>         further files that the run wrote itself, such as a long queue
    manifest.json  the format, what the model is, counters, and SHA-256 digests: of every file, of the parts of records
                   that the checkpoint rests on, and of itself
A copy that only plays has no learner.npz: its parameters are read from model.keras.
It appears whole or not at all, the newest two are kept, and nothing in it can run code when it is read.
"""

import json
import math
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, get_args

import numpy as np
from numpy.typing import NDArray

from a3c_core.errors import shown
from a3c_core.models import MODELS, keras_file, remake_model
from a3c_core.models.base import POLICY_AND_VALUE, Model
from a3c_core.models.parameters import Vector
from a3c_core.optimizers import Optimizer, OptimizerName
from a3c_core.records.digests import digest_of, digest_of_file
from a3c_core.records.files import UNFINISHED, remove_directory, write_whole_directory
from a3c_core.records.layout import CHECKPOINTS, read_json
from a3c_core.registry import is_reference

Arrays = Mapping[str, NDArray[Any]]
Write = Callable[[IO[bytes]], object]  # writes a file's content

KEPT = 2  # the newest ones
FORMAT, VERSION = "a3c_core checkpoint", 1
_MANIFEST, _MODEL, _LEARNER = "manifest.json", "model.keras", "learner.npz"
_OWN_DIGEST = "manifest_sha256"
PART_DIGESTS = "parts_sha256"  # in a run's info: lists in the order of the parts, by the kind of records
_NUMBERED, _FILE_NAME = re.compile(r"\d{12}"), re.compile(r"\w[\w.-]*")


class CheckpointError(Exception):
    """There is no checkpoint that can be used; the message is one line for the user."""


class Damaged(CheckpointError):
    """Files are not as they were written: there is nothing in them to go on from."""


@dataclass(frozen=True)
class Checkpoint:
    """What `load` found."""

    path: Path
    model_name: str
    model_settings: dict[str, Any]
    parameters: Vector
    optimizer_name: str
    slots: NDArray[np.float32]  # [moving averages, P]
    updates: int  # gradients applied
    rejected: int  # gradients refused
    info: dict[str, Any]
    extra: dict[str, dict[str, NDArray[Any]]]  # further files of the run's own are in `path`, and verified

    @property
    def model(self) -> Model:
        """The model, if it is one of ours. A model of others is not made from a file: see tools/policies.py."""
        if is_reference(self.model_name):
            raise CheckpointError(f"{self.path} holds {self.model_name}, a model of others, which no file can make")
        return remake_model(self.model_name, self.model_settings)


def save(
    directory: Path,
    model_name: str,
    model: Model,
    parameters: Vector,
    optimizer: Optimizer,
    info: Mapping[str, Any] | None = None,
    extra: Mapping[str, Arrays] | None = None,
    streams: Mapping[str, Write] | None = None,
    keep_all: bool = False,
    for_play: bool = False,
) -> Path:
    """Write a checkpoint into `directory`, return its path, and (unless `keep_all`) remove all but the last before it.

    `info` is whatever JSON can hold; `extra` maps the names of further .npz files to their arrays; `streams` maps the
    names of files too large for memory to what writes them. With `for_play` the weights are written once, into
    model.keras, unless the model is somebody else's: to read those back, its module would have to be imported.
    """
    own: dict[str, Write] = {_MODEL: lambda file: file.write(keras_file.contents(model_name, model, parameters))}
    if not for_play or is_reference(model_name):
        own[_LEARNER] = _npz({"parameters": parameters, "slots": optimizer.slots})
    further = {**{f"{name}.npz": _npz(arrays) for name, arrays in (extra or {}).items()}, **(streams or {})}
    for name in further:
        if name in {_MODEL, _LEARNER, _MANIFEST} or not _FILE_NAME.fullmatch(name):
            raise ValueError(f"{name!r} can't be the name of a further file in a checkpoint")
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "model": {"name": model_name, "settings": keras_file.model_settings(model)},
        "optimizer": {"name": optimizer.name, "updates": optimizer.updates, "rejected": optimizer.rejected},
        "info": dict(info or {}),
    }
    path = directory / f"{optimizer.updates:012d}"
    write_whole_directory(path, lambda folder: _write_files(folder, {**own, **further}, manifest))
    if not keep_all:
        _remove_old(path)
    return path


def found(directory: Path) -> list[Path]:
    """Return the checkpoints, sound or not, newest first.

    `directory` is one checkpoint, or holds numbered ones, or has a folder `checkpoints` that does.
    """
    if (directory / _MANIFEST).is_file():
        return [directory]
    below = directory / CHECKPOINTS
    return _numbered(below if below.is_dir() else directory)


def load(directory: Path) -> Checkpoint:
    """Return the newest sound checkpoint, and warn of each newer one that is damaged or foreign.

    Args:
        directory: a checkpoint, a folder of checkpoints, or the directory of a run.

    Raises:
        CheckpointError: there is no checkpoint that can be used.
    """
    candidates = found(directory)
    if not candidates:
        raise CheckpointError(f"{directory} holds no checkpoint" if directory.is_dir() else f"no directory {directory}")
    problems: list[CheckpointError] = []
    for path in candidates:
        try:
            checkpoint = _read(path)
        except CheckpointError as error:
            problems.append(error)
            continue
        for problem in problems:
            warnings.warn(f"{problem}; using {path.name} instead", stacklevel=2)
        return checkpoint
    kind = Damaged if all(isinstance(problem, Damaged) for problem in problems) else CheckpointError
    raise kind("no usable checkpoint: " + "; ".join(map(str, problems)))


def records_of(path: Path, kind: str = "records") -> int | None:
    """Return how many records of its run a checkpoint rests on; None if it does not say.

    `kind`: `records` of episodes, or `updates`, of which older checkpoints know nothing.
    """
    manifest = read_json(path / _MANIFEST) or {}
    try:
        _, count = manifest["info"][kind]
    except (KeyError, TypeError, ValueError):
        return None
    return count if type(count) is int else None


def vouched_parts(path: Path, kind: str = "records") -> list[str]:
    """Return the digests of the parts of records that a checkpoint rests on; none if it is older, or damaged."""
    try:
        digests = _read_manifest(path / _MANIFEST)["info"][PART_DIGESTS][kind]
    except (CheckpointError, LookupError, TypeError):
        return []
    return digests if isinstance(digests, list) else []


def restore_optimizer(checkpoint: Checkpoint, optimizer: Optimizer) -> None:
    """Put the checkpoint's moving averages and counters into `optimizer`, which must be of the same kind and size."""
    ours, theirs = (optimizer.name, optimizer.slots.shape), (checkpoint.optimizer_name, checkpoint.slots.shape)
    if ours != theirs:
        raise CheckpointError(f"{checkpoint.path} was saved by optimizer {theirs}, which can't be restored into {ours}")
    optimizer.slots[...] = checkpoint.slots
    optimizer.updates, optimizer.rejected = checkpoint.updates, checkpoint.rejected


def _npz(arrays: Arrays) -> Write:
    return lambda file: np.savez(file, allow_pickle=False, **arrays)


def _write_files(folder: Path, files: Mapping[str, Write], manifest: dict[str, Any]) -> None:
    """Write `files` and the manifest, which gets their digests and its own."""
    for name, write in files.items():
        with (folder / name).open("wb") as file:
            write(file)
    manifest = {**manifest, "sha256": {name: _file_digest(folder / name) for name in files}}
    text = json.dumps({**manifest, _OWN_DIGEST: _digest(manifest)}, indent=2, allow_nan=False) + "\n"
    (folder / _MANIFEST).write_text(text, encoding="utf-8")


def _digest(manifest: dict[str, Any]) -> str:
    """Return the digest of a manifest without the one in it."""
    return digest_of({name: value for name, value in manifest.items() if name != _OWN_DIGEST})


def _remove_old(newest: Path) -> None:
    """Keep `newest` and the last before it. Later ones, if any, are damaged: else the run had gone on from there."""
    before = [path for path in _numbered(newest.parent) if path < newest]
    kept = {newest, *before[: KEPT - 1]}
    for path in newest.parent.iterdir():
        if path.name.startswith(UNFINISHED) or (_NUMBERED.fullmatch(path.name) and path not in kept):
            remove_directory(path)


def _numbered(directory: Path) -> list[Path]:
    """Return the numbered directories in `directory`, newest first."""
    if not directory.is_dir():
        return []
    return sorted((path for path in directory.iterdir() if _NUMBERED.fullmatch(path.name)), reverse=True)


def _read(path: Path) -> Checkpoint:
    manifest = _read_manifest(path / _MANIFEST)
    _refuse_other_shape(manifest, path / _MANIFEST)
    try:
        for name, digest in manifest["sha256"].items():
            if digest != _file_digest(path / name):
                raise Damaged(f"{path / name} is damaged: its digest is not the one in {_MANIFEST}")
        arrays = {file.stem: _read_arrays(file) for file in path.glob("*.npz") if file.name in manifest["sha256"]}
        optimizer = manifest["optimizer"]
        name, settings = manifest["model"]["name"], _heads_of_old(manifest["model"]["settings"])
        only_plays = _LEARNER not in manifest["sha256"] and _MODEL in manifest["sha256"] and not is_reference(name)
        learner = _learner_for_play(path / _MODEL, name, settings) if only_plays else arrays.pop("learner")
        _refuse_other_numbers(learner)
        state = learner["parameters"], optimizer["name"], learner["slots"], optimizer["updates"], optimizer["rejected"]
        checkpoint = Checkpoint(path, name, settings, *state, manifest["info"], arrays)
        if not is_reference(name):  # reading a checkpoint runs no module of others
            checkpoint.model.spec.views(checkpoint.parameters)  # refuses a vector of another size
        return checkpoint
    except (LookupError, TypeError, ValueError, AttributeError, EOFError, RuntimeError, zipfile.BadZipFile) as error:
        raise CheckpointError(f"{path / _MANIFEST} does not fit its files: {type(error).__name__} {error}") from error


def _learner_for_play(file: Path, name: str, settings: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Return what learner.npz would hold in a copy that only plays: parameters, and no moving averages."""
    parameters = keras_file.parameters_of(file, name, remake_model(name, settings))
    return {"parameters": parameters, "slots": np.empty((0, parameters.size), np.float32)}


def _refuse_other_numbers(learner: Mapping[str, NDArray[Any]]) -> None:
    """Raise ValueError unless parameters [P] and moving averages [n, P] are float32."""
    for name, dimensions in (("parameters", 1), ("slots", 2)):
        array = learner[name]
        if array.dtype != np.float32 or array.ndim != dimensions:
            raise ValueError(f"{name} must be float32 in {dimensions} dimensions, not {array.dtype} in {array.ndim}")


def _heads_of_old(settings: dict[str, Any]) -> dict[str, Any]:
    """Return a model's settings as they are today; older ones name the number of actions instead of the heads."""
    if "actions" not in settings:
        return settings
    others = {name: value for name, value in settings.items() if name != "actions"}
    return {**others, "heads": ((POLICY_AND_VALUE[0][0], settings["actions"]), POLICY_AND_VALUE[1])}


def _refuse_other_shape(manifest: dict[str, Any], path: Path) -> None:
    """Refuse a manifest whose parts are not what `save` writes, though its digest may be right."""

    def require(place: str, value: Any, fits: bool, allowed: str) -> None:
        if not fits:
            raise CheckpointError(f"{path} does not fit its files: {place} must be {allowed}, not {shown(value)}")

    for name in ("sha256", "model", "optimizer", "info"):
        require(name, manifest.get(name), isinstance(manifest.get(name), dict), "a mapping")
    for name in manifest["sha256"]:
        require("a file's name", name, _FILE_NAME.fullmatch(name) is not None, "a plain one")
    for place, allowed in (("model", MODELS.names()), ("optimizer", get_args(OptimizerName))):
        name = manifest[place].get("name")
        own = place == "model" and isinstance(name, str) and is_reference(name)
        require(f"{place}.name", name, own or name in allowed, " or ".join(allowed))
    settings = manifest["model"].get("settings")
    require("model.settings", settings, isinstance(settings, dict), "a mapping")
    for name in ("updates", "rejected"):
        count = manifest["optimizer"].get(name)
        require(f"optimizer.{name}", count, type(count) is int and count >= 0, "a whole number from 0 on")


@contextmanager
def fitting(checkpoint: Checkpoint) -> Iterator[None]:
    """Within this block, what is missing in a checkpoint or of another kind than expected is said in one line."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(
            f"{checkpoint.path} does not fit this run: its state can't be taken over ({type(error).__name__} {error})"
        ) from error


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_bytes())
        digest = _digest(manifest) if isinstance(manifest, dict) else ""
    except OSError as error:
        raise CheckpointError(f"{path} can't be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{path} is damaged: {error}") from error
    return _verified(manifest, digest, path)


def _verified(manifest: Any, digest: str, path: Path) -> dict[str, Any]:
    """Return what was read from `path` if it is a manifest as it was written."""
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise CheckpointError(f"{path} does not belong to a checkpoint of a3c_core")
    if manifest.get("version") != VERSION:
        raise CheckpointError(f"{path} has format version {manifest.get('version')}, and this program reads {VERSION}")
    if manifest.get(_OWN_DIGEST) != digest:
        raise Damaged(f"{path} is damaged: its digest is not the one in it")
    return manifest


def _file_digest(path: Path) -> str:
    try:
        return digest_of_file(path)
    except OSError as error:
        raise Damaged(f"{path} can't be read: {error.strerror}") from error


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file; refuse one whose header claims more than it holds, which would take memory."""
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.compress_type != zipfile.ZIP_STORED or member.file_size > path.stat().st_size:
                raise ValueError(f"{member.filename} is not stored as it is")
            with archive.open(member) as file:
                _refuse_claims(file, member)
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def _refuse_claims(file: IO[bytes], member: zipfile.ZipInfo) -> None:
    """Raise ValueError unless an array's header claims the very bytes that follow it."""
    version = np.lib.format.read_magic(file)
    if version != (1, 0):  # the others are for headers that ours never need
        raise ValueError(f"{member.filename} has a header of version {version}")
    shape, _, kind = np.lib.format.read_array_header_1_0(file)
    claimed = math.prod(shape) * kind.itemsize
    if kind.hasobject or claimed != member.file_size - file.tell():
        raise ValueError(f"{member.filename} claims {claimed:,} bytes of {kind} in a file of {member.file_size:,}")
