"""Work on the real clock that takes what a cost profile says: who is done sooner sleeps until then.

A second of the profile is 1 / `speed` real ones. The formulas are those of virtual time. Work ends at moments that are
each counted from the one before, so that the errors of single sleeps do not add up. Who is not done when its time has
passed is late, and makes up for that as far as it can.
"""

import time
from collections.abc import Callable

from a3c_core.config import RunConfig
from a3c_core.real.shared_memory import SharedArrays
from a3c_core.virtual.capacity import profile_of
from a3c_core.virtual.costs import CostProfile
from a3c_core.worker import Work

MOST_LAG_S = 1.0  # real: who lags further behind, as after a machine's sleep, does not make up for it
TOLERATED = 0.05  # share of late work above which a run is not what its profile says
_NOTHING_S = 1e-9
_SLICE_S = 0.1  # real: how long a sleeper is deaf to who shares its cores, and to being stopped


def crowding(profile: CostProfile, arrays: SharedArrays) -> float:
    """Return how many times longer everything takes now, because stations share the cores that the profile has."""
    slots = arrays.slots
    if len(slots) < profile.cores:
        return 1.0
    workers = int(((slots["on_core"] != 0) & (slots["waiting"] == 0)).sum())
    return profile.crowding(workers, int(arrays.inbox["serving"][0]))


class WorkerPace:
    """Lets a worker's pieces of work take their time."""

    def __init__(self, config: RunConfig, slot: int, arrays: SharedArrays, heed_stop: Callable[[], None]):
        """`heed_stop` raises what ends the worker, if it is to end."""
        self._profile, self._speed = profile_of(config), config.pace.speed
        self._seed, self._wait_s = config.seed, config.environment.wait_s
        self._has_mailbox = config.gradients.channel == "mailbox"
        self._always_waits = config.gradients.pull == "after_apply"
        self._arrays, self._slot_number, self._slot = arrays, slot, arrays.slots[slot]
        self._heed_stop = heed_stop
        self._due_s = -1.0  # when the piece of work was to end, by the monotonic clock; negative: there is none yet
        self._rested = False  # since that began
        self._waited_s = 0.0  # for the master, by then
        self._version = -1  # that it played with

    def await_end(self, work: Work, version: int, began_s: float, count: int) -> None:
        """Sleep until a piece of work, the worker's number `count`, begun at `began_s`, has taken its time."""
        waited = self._begin(began_s)
        profile = self._profile
        away_s = profile.away_s(work.env_steps, self._wait_s)
        loaded = not self._has_mailbox or version != self._version
        waits = waited + (away_s > 0)
        core_s = profile.cycle_s(work.env_steps, work.began, loaded, waits, work.repeated_steps)
        self._version = version
        self._pass(away_s)
        self._slot["on_core"] = 1
        self._work(profile.jittered(core_s, self._seed, self._slot_number + 1, count))
        self._count()

    def _begin(self, now_s: float) -> bool:
        """Count from where the work before was to end, or else from now; return whether the master was waited for."""
        waited_s, is_first = float(self._slot["wait_s"]), self._due_s < 0
        waited, self._waited_s = self._always_waits or waited_s > self._waited_s, waited_s  # even if served meanwhile
        if is_first or waited or now_s - self._due_s > MOST_LAG_S:
            self._due_s = now_s
        self._rested = False
        return waited and not is_first

    def _pass(self, seconds: float) -> None:
        """Let seconds of the profile pass in which the worker needs no core."""
        if seconds:
            self._slot["on_core"] = 0
        while seconds > _NOTHING_S:
            seconds -= self._speed * self._sleep(seconds / self._speed)

    def _work(self, seconds: float) -> None:
        """Let the worker have a core for `seconds` of the profile; that takes longer where others want it, too."""
        while seconds > _NOTHING_S:
            stretched = crowding(self._profile, self._arrays) / self._speed
            seconds -= self._sleep(seconds * stretched) / stretched

    def _sleep(self, seconds: float) -> float:
        """Sleep for `seconds`, but at most a slice, or not at all if they have passed already; return which it was."""
        self._heed_stop()
        slice_s = min(seconds, _SLICE_S)
        self._due_s += slice_s
        left_s = self._due_s - time.monotonic()
        if left_s > 0:
            self._rested = True
            time.sleep(left_s)
        return slice_s

    def _count(self) -> None:
        """Count the piece of work, and whether it was done too late for any rest."""
        slot, late_s = self._slot, time.monotonic() - self._due_s
        slot["paced"] += 1
        if not self._rested and late_s > 0:
            slot["late"] += 1
            slot["late_s"] += late_s * self._speed
