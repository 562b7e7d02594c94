"""Write down when workers and the learner work, for `advise --log`: copy this file, it needs nothing but Python.

with timed("times.csv", "work", worker):     # in a worker: from its pull to the hand-over
with timed("times.csv", "update", worker):   # in the learner: of that worker's parcel; name all workers of a batch
"""

import os
import time
from contextlib import contextmanager


@contextmanager
def timed(path, what, *workers):
    """Append a line for each of `workers`, in one write: lines of many processes never mix."""
    began = time.time()
    yield
    ended = time.time()
    times = {"work": f"{began:.6f},{ended:.6f},,", "update": f",,{began:.6f},{ended:.6f}"}[what]
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(file, "".join(f"{worker},{times}\n" for worker in workers).encode())
    os.close(file)
