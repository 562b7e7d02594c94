"""TensorFlow, imported late and quietly, with one thread per process, whatever the worker count."""

import os
from typing import Any

_CPU_LIMITS = {"OMP_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}


def import_tensorflow() -> Any:
    """Return the module `tensorflow`; limits only hold because they are set before the first import."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # its sums differ from run to run in their last bits
    for name, value in _CPU_LIMITS.items():
        os.environ.setdefault(name, value)
    import tensorflow as tf

    return tf
