"""The virtual clock: events in the order of their time, and cores that all stations share."""

import heapq
from typing import Any

from a3c_core.virtual.costs import CostProfile

MASTER = -1  # its number among the stations, where there are further servers the highest; workers' are from 0 on
_SERVERS = 1 << 40  # keeps the jitter of further servers apart from that of workers
Event = tuple[float, int, str, int]  # time, station, kind, and how many leave a core then; 0: it ends a wait


class Timeline:
    """What will happen when. At the same instant the master comes first, then workers by their number."""

    def __init__(self, profile: CostProfile, seed: int):
        self.now_s = 0.0
        self._profile, self._seed = profile, seed
        self._events: list[Event] = []  # a heap
        self._workers_on_core = 0  # that have a core or want one
        self._servers_on_core = 0  # the master, or several
        self._crowding = 1.0  # how many times longer everything takes now, because cores are shared

    def __bool__(self) -> bool:
        return bool(self._events)

    def work(self, seconds: float, station: int, kind: str, count: int, cores: int = True) -> float:
        """Let `kind` happen when `station` has had a core for `seconds`; return how long that takes as things are now.

        `count` is the number of this piece of work among the station's: jitter belongs to (seed, station, count).
        `cores`: that it has, where it stands for several who do the same.
        """
        crowding = 1.0 if self._goes_first(station) else self._crowding
        who = station + 1 if station >= MASTER else _SERVERS - station
        taken_s = self._profile.jittered(seconds * crowding, self._seed, who, count)
        heapq.heappush(self._events, (self.now_s + taken_s, station, kind, cores))
        self._count_core(station, cores)
        return taken_s

    def at(self, time_s: float, station: int, kind: str) -> None:
        """Let `kind` happen at `time_s`, without a core."""
        heapq.heappush(self._events, (time_s, station, kind, False))

    def next(self) -> tuple[int, str]:
        """Advance the clock to the next event; return its (station, kind)."""
        self.now_s, station, kind, cores = heapq.heappop(self._events)
        self._count_core(station, -cores)
        return station, kind

    def share_cores(self) -> float:
        """Stretch or shorten what is under way if more or fewer share the cores than before.

        Return by how many seconds the master's work has changed.
        """
        crowding = self._profile.crowding(self._workers_on_core, self._servers_on_core)
        if crowding == self._crowding:
            return 0.0
        ratio, self._crowding = crowding / self._crowding, crowding
        master_s = 0.0
        for place, (time_s, station, kind, cores) in enumerate(self._events):
            if cores and not self._goes_first(station):
                change_s = (time_s - self.now_s) * (ratio - 1.0)
                self._events[place] = time_s + change_s, station, kind, cores
                master_s += change_s if station <= MASTER else 0.0
        heapq.heapify(self._events)
        return master_s

    def save(self) -> dict[str, Any]:
        """Return the clock and all that is to come, as numbers for JSON."""
        return {"now_s": self.now_s, "events": self._events, "crowding": self._crowding}

    def restore(self, numbers: dict[str, Any]) -> None:
        self.now_s, self._crowding = numbers["now_s"], numbers["crowding"]
        self._events = [(time_s, station, kind, cores) for time_s, station, kind, cores in numbers["events"]]
        for _, station, _, cores in self._events:
            self._count_core(station, cores)

    def _count_core(self, station: int, change: int) -> None:
        if station <= MASTER:
            self._servers_on_core += change
        else:
            self._workers_on_core += change

    def _goes_first(self, station: int) -> bool:
        """Return whether others give way to `station`."""
        return station <= MASTER and self._profile.master_first
