"""Settings of our commands' processes: fewer garbage collections, and one thread for small matrices."""

import atexit
import gc
import os

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
_NEW_OBJECTS = 50_000  # between two searches, instead of 700


def tune_process() -> None:
    """Let this process, which is a command of ours, search for garbage seldom and compute with one thread.

    It imports a hundred thousand objects, all of which it keeps: to search them again and again, and once more at its
    end, took a quarter of a short command's time. NumPy's threads only hold if they are chosen before its import; they
    would wait for work in a loop, and let a run differ from the same one in a sweep.
    """
    gc.set_threshold(_NEW_OBJECTS)
    atexit.register(gc.freeze)
    for name, value in ONE_THREAD.items():
        os.environ.setdefault(name, value)
