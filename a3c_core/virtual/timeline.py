"""The virtual clock: events in the order of their time, and cores that all stations share."""

import heapq
from dataclasses import astuple, dataclass
from typing import Any

from a3c_core.virtual.costs import CostProfile

MASTER = -1  # its number among the stations, where there are further servers the highest; workers' are from 0 on
_SERVERS = 1 << 40  # keeps the jitter of further servers apart from that of workers


@dataclass(slots=True, order=True)
class Event:
    """What will happen to a station."""

    time_s: float
    station: int
    kind: str  # which of its topology's handlers deals with it
    cores: int  # that are left free then; 0: it ends a wait


class Timeline:
    """What will happen when. At the same instant the master comes first, then workers by their number.

    >>> timeline = Timeline(CostProfile(step_s=1, update_s=1), seed=0)
    >>> timeline.work(0.5, station=3, kind="played", count=1)
    0.5
    >>> timeline.next()
    Event(time_s=0.5, station=3, kind='played', cores=1)
    """

    def __init__(self, profile: CostProfile, seed: int):
        self.now_s = 0.0
        self._profile, self._seed = profile, seed
        self._has_jitter, self._cores = profile.jitter != "none", profile.cores
        self._events: list[tuple[float, int, Event]] = []  # a heap of (time, station, event): tuples compare fast
        self._workers_on_core = 0  # that have a core or want one
        self._servers_on_core = 0  # the master, or several
        self._crowding = 1.0  # how many times longer everything takes now, because cores are shared

    def __bool__(self) -> bool:
        return bool(self._events)

    def work(self, seconds: float, station: int, kind: str, count: int, cores: int = 1) -> float:
        """Let `kind` happen when `station` has had a core for `seconds`; return how long that takes as things are now.

        `count` is the number of this piece of work among the station's: jitter belongs to (seed, station, count).
        `cores`: that it has, where it stands for several who do the same.
        """
        if self._crowding != 1.0 and not self._goes_first(station):
            seconds *= self._crowding
        if self._has_jitter:
            who = station + 1 if station >= MASTER else _SERVERS - station
            seconds = self._profile.jittered(seconds, self._seed, who, count)
        if station <= MASTER:
            self._servers_on_core += cores
        else:
            self._workers_on_core += cores
        end_s = self.now_s + seconds
        heapq.heappush(self._events, (end_s, station, Event(end_s, station, kind, cores)))
        return seconds

    def at(self, time_s: float, station: int, kind: str) -> None:
        """Let `kind` happen at `time_s`, without a core."""
        heapq.heappush(self._events, (time_s, station, Event(time_s, station, kind, 0)))

    def next(self) -> Event:
        """Advance the clock to the next event, and return that."""
        self.now_s, station, event = heapq.heappop(self._events)
        if station <= MASTER:
            self._servers_on_core -= event.cores
        else:
            self._workers_on_core -= event.cores
        return event

    def share_cores(self) -> float:
        """Stretch or shorten what is under way if more or fewer share the cores than before.

        Return by how many seconds the master's work has changed.
        """
        if self._crowding == 1.0 and self._workers_on_core + self._servers_on_core <= self._cores:
            return 0.0
        crowding = self._profile.crowding(self._workers_on_core, self._servers_on_core)
        if crowding == self._crowding:
            return 0.0
        ratio, self._crowding = crowding / self._crowding, crowding
        master_s = 0.0
        for _, station, event in self._events:
            if event.cores and not self._goes_first(station):
                change_s = (event.time_s - self.now_s) * (ratio - 1.0)
                event.time_s += change_s
                master_s += change_s if station <= MASTER else 0.0
        self._events = [(event.time_s, station, event) for _, station, event in self._events]
        heapq.heapify(self._events)
        return master_s

    def save(self) -> dict[str, Any]:
        """Return the clock and all that is to come, as numbers for JSON."""
        events = [astuple(event) for _, _, event in self._events]
        return {"now_s": self.now_s, "events": events, "crowding": self._crowding}

    def restore(self, numbers: dict[str, Any]) -> None:
        """Bring a new timeline to the state that `save` saw."""
        self.now_s, self._crowding = numbers["now_s"], numbers["crowding"]
        for saved in numbers["events"]:
            event = Event(*saved)
            self._events.append((event.time_s, event.station, event))  # in the order of a heap already
            if event.station <= MASTER:
                self._servers_on_core += event.cores
            else:
                self._workers_on_core += event.cores

    def _goes_first(self, station: int) -> bool:
        """Return whether others give way to `station`."""
        return station <= MASTER and self._profile.master_first
