"""What reaches a real master, and what becomes of it."""

from collections.abc import Mapping
from typing import NamedTuple

from a3c_core.real.shared_memory import Message
from a3c_core.results.records import Status
from a3c_core.worker import Episode


class Arrival(NamedTuple):
    """A message that was taken over, and what it found."""

    slot: int
    message: Message
    episodes: tuple[Episode, ...]
    queue_length: int


class Dealt(NamedTuple):
    """What became of an arrival, still to be written up."""

    arrival: Arrival
    status: Status
    clock_s: float
    busy_s: float  # that the master had worked by then
    alive: int
    version: int
    staleness: int
    gradient_norm: float
    taken_s: float  # the run's clock when the master took it up
    statistics: Mapping[str, float]  # that the learner adds
