"""How far a run has come, as those know it who act or learn, and what sets one worker apart from the others."""

from functools import cache
from typing import NamedTuple

from a3c_core.streams import stream_words, uniform

_DRAW_KEY = (0, 0, 1)  # beside a worker's number: longer than the keys of episodes and of jitter


class Progress(NamedTuple):
    """What an algorithm may know of the run as it acts or learns."""

    share: float = 0.0  # of the run's episodes, or of its env steps if they end it: what an annealed rate goes by
    env_steps: int = 0  # that all workers have played
    draw: float = 0.0  # in [0, 1): that of the worker in question, see `worker_draw`


START = Progress()


@cache
def worker_draw(seed: int, worker: int) -> float:
    """Return a number in [0, 1) that is the worker's own for the whole run, and that of whoever replaces it."""
    return float(uniform(stream_words(seed, worker, *_DRAW_KEY)[0]))
