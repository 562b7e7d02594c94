"""Model files that plain `keras.models.load_model` opens, written in milliseconds and without TensorFlow.

A *template* is made once per machine and model, by a short process of its own that does import Keras: the model's
`.keras` file, in which each weight holds its own place in the flat parameter vector. Filling in parameters is then a
look-up.
"""

import dataclasses
import functools
import hashlib
import importlib.metadata
import inspect
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from a3c_core.models import base, remake_model
from a3c_core.models.base import Model
from a3c_core.models.parameters import Vector
from a3c_core.system.tensorflow import import_tensorflow

_PACKAGE = Path(__file__).parents[1]
_WEIGHTS = "model.weights.h5"  # Keras's name for it inside a .keras file
_TIME_LIMIT_S = 600  # for making a template; importing TensorFlow from a cold network disk can take minutes


def contents(model_name: str, model: Model, parameters: Vector) -> bytes:
    """Return the bytes of a `.keras` file that holds `model`, called `model_name`, with `parameters`."""
    model.spec.views(parameters)  # refuses a vector of another size
    filled = io.BytesIO()
    with zipfile.ZipFile(template(model_name, model)) as source, zipfile.ZipFile(filled, "w") as target:
        for entry in source.infolist():
            data = source.read(entry)
            target.writestr(entry, _fill(data, parameters) if entry.filename == _WEIGHTS else data)
    return filled.getvalue()


def parameters_of(path: Path, model_name: str, model: Model) -> Vector:
    """Return the parameters in a file that `contents` has made of the same model, to the bit.

    Raises:
        ValueError: The file holds other weights than this model has.
    """
    with zipfile.ZipFile(path) as file:
        if file.getinfo(_WEIGHTS).file_size < model.spec.size * np.dtype(np.float32).itemsize:
            raise ValueError(f"{path.name} is smaller than the model's {model.spec.size:,} parameters")
        filled = _datasets(file.read(_WEIGHTS))
    with zipfile.ZipFile(template(model_name, model)) as file:
        places = _datasets(file.read(_WEIGHTS))
    shapes = [{name: data.shape for name, data in each.items()} for each in (filled, places)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"{path.name} holds other weights than the model has")
    parameters = np.empty(model.spec.size, np.float32)
    for name, place in places.items():
        parameters[place.astype(np.int64)] = filled[name]
    return parameters


def template(model_name: str, model: Model) -> Path:
    """Return the path of the model's template, made now if this machine has none yet, which takes some seconds."""
    settings = model_settings(model)
    shapes = list(model.spec.shapes.values())
    key = json.dumps([settings, shapes, importlib.metadata.version("keras"), _sources(model)])
    words = re.sub(r"\W+", "-", model_name)
    name = f"{words}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.keras"
    for folder in _cache_folders():
        path = folder / name
        if path.exists():
            return path
        if _is_writable(folder):
            _run_maker(path, model_name, settings)
            return path
    raise OSError("no folder can be written to for the template of model files, not even a temporary one")


def model_settings(model: Model) -> dict[str, Any]:
    """Return the constructor's arguments that make `model`, a dataclass."""
    return dataclasses.asdict(model)  # type: ignore[call-overload]


def make_template(path: Path, model_name: str, settings: dict[str, Any]) -> None:
    """Write the template, whole or not at all. This imports Keras, so call it in a process of its own."""
    model = remake_model(model_name, settings)
    import_tensorflow()
    network = model.build()
    places = np.arange(model.spec.size, dtype=np.float32)  # exact up to 2**24 parameters
    network.set_weights(list(model.spec.views(places).values()))
    partial = path.with_name(f"{path.stem}-{os.getpid()}.keras")
    network.save(partial)
    partial.replace(path)


def _sources(model: Model) -> list[str]:
    """Return the text of the modules that say what the model's file looks like."""
    own = getattr(model, "reference", "").partition(":")[0]
    modules = [sys.modules[type(model).__module__], base, *([sys.modules[own]] if own else [])]
    return [inspect.getsource(module) for module in modules]


def _run_maker(path: Path, model_name: str, settings: dict[str, Any]) -> None:
    search_path = os.pathsep.join(filter(None, [str(_PACKAGE.parent), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": search_path, "CUDA_VISIBLE_DEVICES": "-1", "KERAS_BACKEND": "tensorflow"}
    command = [sys.executable, "-m", "a3c_core.models.keras_file", str(path), model_name, json.dumps(settings)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_TIME_LIMIT_S, check=False)
    if done.returncode != 0:
        last_line = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise RuntimeError(f"Keras could not save a model {model_name!r} as {path}: {last_line}")


def _fill(weights: bytes, parameters: Vector) -> bytes:
    """Return the template's HDF5 file with each place replaced by the parameter that stands there."""
    import h5py  # no episode has to wait for it

    memory = io.BytesIO(weights)
    with h5py.File(memory, "r+") as file:

        def fill(_: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset):
                item[...] = parameters[item[...].astype(np.int64)]

        file.visititems(fill)
    return memory.getvalue()


def _datasets(weights: bytes) -> dict[str, np.ndarray]:
    """Return the arrays in an HDF5 file by their names."""
    import h5py

    found = {}

    def keep(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            found[name] = item[...]

    try:
        with h5py.File(io.BytesIO(weights), "r") as file:
            file.visititems(keep)
    except OSError as error:
        raise ValueError(f"{_WEIGHTS} is no HDF5 file: {error}") from error
    return found


def _cache_folders() -> Iterator[Path]:
    """Yield where templates may be: beside the compiled code, in the user's cache, or in this process's own folder."""
    yield _PACKAGE / "__pycache__"
    yield Path.home() / ".cache" / "a3c_core"
    yield Path(_own_folder().name)


@functools.cache
def _own_folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="a3c_core-")  # removed as the process ends


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


if __name__ == "__main__":
    make_template(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))
