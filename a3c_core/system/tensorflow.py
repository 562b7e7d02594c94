"""TensorFlow, imported late, quietly, and with one thread per process: the same in every cell, however many workers."""

import contextlib
import functools
import os
from collections.abc import Iterator
from typing import Any

from a3c_core.system.imports import as_if_missing, for_good

_CPU_LIMITS = {"OMP_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
_UNUSED = ("matplotlib", "matplotlib.pyplot", "pandas", "sklearn")  # which Keras imports: a third of the time


def limit_gpus(gpus: tuple[int, ...], worker: int) -> None:
    """Show TensorFlow one of `gpus`, in turn by worker, or none; this must come before its import."""
    os.environ["CUDA_VISIBLE_DEVICES"] = str(gpus[worker % len(gpus)]) if gpus else "-1"


def allow_onednn() -> None:
    """Let TensorFlow use oneDNN, with which convolutions are three times as fast; this must come before its import."""
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")


@functools.cache
def import_tensorflow() -> Any:
    """Return the module `tensorflow`, ready for use."""
    tf = load_tensorflow()
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)  # else the first process takes all of a GPU's memory
    return tf


def load_tensorflow() -> Any:
    """Return the module `tensorflow`, which has begun nothing yet: no thread, so that a process may still be forked.

    Limits only hold because they are set before the first import.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # its sums of small networks differ from run to run
    for name, value in _CPU_LIMITS.items():
        os.environ.setdefault(name, value)
    with for_good(), _stderr_silenced(), as_if_missing(*_UNUSED):
        import tensorflow as tf
    return tf


@contextlib.contextmanager
def _stderr_silenced() -> Iterator[None]:
    """Drop what C++ writes to stderr: as it loads, TensorFlow says that there is no GPU, whatever its log level."""
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
