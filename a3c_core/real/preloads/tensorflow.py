"""Imported once by the fork server of workers that need TensorFlow: they share it instead of each loading its own.

It is only loaded. A process must be forked before it has threads, and TensorFlow begins them with its first operation.
"""

import a3c_core.real.worker  # noqa: F401  what a worker process imports
from a3c_core.progress import worker_draw
from a3c_core.system.imports import for_good
from a3c_core.system.tensorflow import load_tensorflow

load_tensorflow()
with for_good():
    worker_draw(seed=0, worker=0)  # loads the compiled streams, which would take each worker a fifth of a second
