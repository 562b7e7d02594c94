"""The `simulate` runtime: the real learner on a virtual clock. N workers, one FIFO master, one event queue.

A worker pulls parameters and really plays with them at once; only the *time* that this takes is virtual, by the cost
profile. Events happen in the order of their virtual time; at the same instant the master comes first, then workers by
their id. Nothing depends on the real clock or on other processes, so that equal settings give equal bytes.
"""

import heapq
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from a3c_core.config import RunConfig
from a3c_core.costs import CostProfile
from a3c_core.engines.base import Engine
from a3c_core.master import Master
from a3c_core.models.parameters import Vector
from a3c_core.records import EpisodeRecord, Status
from a3c_core.runtimes.gradient_queue import GradientQueue
from a3c_core.runtimes.ledger import Delivery, Ledger, Totals
from a3c_core.worker import Worker

MASTER = -1  # its place among the ids of workers


class Mail(NamedTuple):
    """Parameters of a version."""

    version: int
    parameters: Vector


@dataclass
class Seat:
    """A worker in the simulation, and what is on its way to and from it."""

    worker: Worker
    held: Mail  # the parameters it plays with
    slot: Mail | None = None  # its mailbox
    delivery: Delivery | None = None  # played, but not yet handed to the master
    gradient: Vector | None = None
    core_s: float | None = None  # time on a core that its work will take, while the game still waits
    waits: int = 0  # since it last worked
    retiring: bool = False


class Simulation:
    """One run in virtual time."""

    def __init__(
        self,
        config: RunConfig,
        profile: CostProfile,
        engine: Engine,
        master: Master,
        on_episode: Callable[[EpisodeRecord], None],
        run: str = "run",
    ):
        self.config, self.profile, self.engine, self.master = config, profile, engine, master
        self.clock_s = 0.0
        self.ledger = Ledger(config, on_episode, run)
        self.overloaded = False
        self.seats: dict[int, Seat] = {}
        self.events: list[tuple[float, int]] = []  # heap of (time, worker or MASTER)
        self.queue = GradientQueue(master.parameters.size)
        self.blocked: deque[int] = deque()  # workers whose gradient waits for a place in the queue
        self.serving: tuple[Delivery, Vector] | None = None
        self.playing = 0  # workers that have or want a core
        self.crowding = 1.0  # how many times longer everything takes now, because cores are shared
        self.next_id = 0
        self._span = config.span
        self._mailboxes = config.exchange.channel == "mailbox"
        self._waits_for_apply = config.exchange.pull == "after_apply"

    def start(self) -> None:
        """Seat the first workers; their start-up time lies before the clock's zero."""
        for _ in range(self._span.start):
            self._add_worker(0.0)

    @property
    def totals(self) -> Totals:
        """What happened so far."""
        return self.ledger.totals

    def step(self) -> bool:
        """Let the next event happen; return whether there was one."""
        if not self.events or self.overloaded:
            self._abandon_queue()
            return False
        self.clock_s, who = heapq.heappop(self.events)
        if who == MASTER:
            self._finish_update()
        elif self.seats[who].delivery is None:
            self._begin(self.seats[who])
        elif self.seats[who].core_s is not None:
            self._take_core(self.seats[who])
        else:
            self._arrive(self.seats[who])
        self._share_cores()
        return True

    # Workers

    def _add_worker(self, at_s: float) -> None:
        worker = self.new_worker(self.next_id)
        newest = Mail(self.master.version, self.master.parameters.copy())
        self.seats[worker.id] = Seat(worker, newest, newest if self._mailboxes else None)
        heapq.heappush(self.events, (at_s, worker.id))
        self.next_id += 1

    def new_worker(self, worker_id: int) -> Worker:
        """Return a worker that has not begun yet."""
        return Worker(worker_id, self.config.seed, self.engine, agents=self.config.agents_per_worker)

    def _begin(self, seat: Seat) -> None:
        """Pull, play, and let the gradient arrive when that is done; or leave, if nothing is left to begin."""
        may_begin = 0 if seat.retiring else self.config.episodes - self.totals.episodes_begun
        if not may_begin and not seat.worker.in_episode:
            del self.seats[seat.worker.id]
            return
        loaded = self._pull(seat)
        progress = self.totals.episodes_begun / self.config.episodes
        work = seat.worker.work(seat.held.parameters, may_begin, self.clock_s, progress)
        seat.delivery = Delivery(seat.worker.id, seat.held.version, episodes=work.episodes)
        seat.gradient = work.gradient
        steps = work.env_steps
        self.totals.episodes_begun += work.began
        self.totals.env_steps += steps
        game_s = steps * self.config.environment.wait_s
        if game_s > 0:
            game_s += self.profile.oversleep_s * self.profile.slowdown
        away_s = game_s + self.profile.latency_s  # from any core
        waits, seat.waits = seat.waits + (away_s > 0), 0
        seat.core_s = self.profile.cycle_s(steps, work.began, loaded, waits)
        if away_s > 0:
            heapq.heappush(self.events, (self.clock_s + away_s, seat.worker.id))
        else:
            self._take_core(seat)

    def _pull(self, seat: Seat) -> bool:
        """Give the worker the parameters it can get now; return whether they are new to it."""
        if self._mailboxes:
            new, seat.slot = seat.slot, None
        else:  # no copy: it plays at once, before the master can change them
            new = Mail(self.master.version, self.master.parameters)
        if new is None:
            return False
        seat.held = new
        return True

    def _take_core(self, seat: Seat) -> None:
        """Let the gradient arrive once its worker has had a core for as long as it needs."""
        assert seat.core_s is not None
        seconds, seat.core_s = seat.core_s, None
        self.playing += 1
        self._schedule(seconds, seat.worker.id, seat.worker.rollouts)

    def _arrive(self, seat: Seat) -> None:
        """A gradient reaches the master's queue, or finds it full."""
        assert seat.delivery is not None
        self.playing -= 1
        self.totals.sent += 1
        self.totals.last_arrival_s = self.clock_s
        seat.delivery = seat.delivery._replace(arrived_s=self.clock_s, queue_length=len(self.queue))
        exchange = self.config.exchange
        if exchange.queue == "unbounded" or len(self.queue) < exchange.queue_size:
            self._enqueue(seat)
        elif exchange.queue == "bounded":
            self.blocked.append(seat.worker.id)
            seat.waits += 1
        else:
            self._enter(seat.delivery, "dropped")
            seat.delivery = seat.gradient = None
            self._begin(seat)

    def _enqueue(self, seat: Seat) -> None:
        assert seat.gradient is not None
        self.queue.append(seat.delivery, seat.gradient)
        seat.delivery = seat.gradient = None
        self.totals.queue_peak = max(self.totals.queue_peak, len(self.queue))
        limit = self.config.exchange.overload_limit
        self.overloaded = limit is not None and len(self.queue) > limit
        if self.serving is None:
            self._begin_update(idle=True)
        if self._waits_for_apply:
            seat.waits += 1
        else:
            self._begin(seat)

    # Master

    def _begin_update(self, idle: bool = False) -> None:
        delivery, gradient = self.queue.popleft()
        self.serving = delivery, gradient
        empty = sum(seat.slot is None for seat in self.seats.values()) if self._mailboxes else 0
        self.totals.master_busy_s += self._schedule(self.profile.service_s(empty, idle), MASTER, self.totals.served)
        if self.blocked:
            self._enqueue(self.seats[self.blocked.popleft()])

    def _finish_update(self) -> None:
        assert self.serving is not None
        (delivery, gradient), self.serving = self.serving, None
        staleness = self.master.version - delivery.version_pulled
        result = self.master.apply(gradient)
        if self._mailboxes:
            self._fill_mailboxes()
        self._enter(delivery, "applied" if result.applied else "rejected", staleness, result.gradient_norm)
        if self._waits_for_apply:
            self._begin(self.seats[delivery.worker])
        if len(self.queue):
            self._begin_update()

    def _fill_mailboxes(self) -> None:
        newest = Mail(self.master.version, self.master.parameters.copy())
        for seat in self.seats.values():
            if seat.slot is None:
                seat.slot = newest

    # Time

    def _schedule(self, seconds: float, who: int, count: int) -> float:
        """Push an event that costs `seconds` on a core of its own; return what it costs as things are now."""
        crowding = 1.0 if self._is_first(who) else self.crowding
        taken = self.profile.jittered(seconds * crowding, self.config.seed, who + 1, count)
        heapq.heappush(self.events, (self.clock_s + taken, who))
        return taken

    def _share_cores(self) -> None:
        """Stretch or shorten what is under way if more or fewer processes share the cores than before."""
        crowding = self.profile.crowding(self.playing, self.serving is not None)
        if crowding == self.crowding:
            return
        ratio, self.crowding = crowding / self.crowding, crowding
        for place, (time_s, who) in enumerate(self.events):
            if self._has_core(who) and not self._is_first(who):
                change_s = (time_s - self.clock_s) * (ratio - 1.0)
                self.events[place] = time_s + change_s, who
                if who == MASTER:
                    self.totals.master_busy_s += change_s
        heapq.heapify(self.events)

    def _is_first(self, who: int) -> bool:
        """Return whether others give way to `who`."""
        return who == MASTER and self.profile.master_first

    def _has_core(self, who: int) -> bool:
        """Return whether the next event of `who` is the end of some work, not of a wait."""
        if who == MASTER:
            return True
        seat = self.seats[who]
        return seat.delivery is not None and seat.core_s is None

    # Both

    def _alive(self) -> int:
        return sum(not seat.retiring for seat in self.seats.values())

    def _enter(self, delivery: Delivery, status: Status, staleness: int = 0, gradient_norm: float = math.nan) -> None:
        """Write down what became of a gradient, then let the schedule have its way."""
        alive = self._alive()
        self.ledger.enter(delivery, status, self.clock_s, alive, self.master.version, staleness, gradient_norm)
        if not delivery.episodes:
            return
        target = self.ledger.target_workers(alive, len(self.queue))
        for _ in range(target - alive):
            self._add_worker(self.clock_s + self.profile.worker_start_s * self.profile.slowdown)
        staying = [seat for seat in self.seats.values() if not seat.retiring]  # in the order of their ids
        for seat in staying[target:]:
            seat.retiring = True

    def _abandon_queue(self) -> None:
        """Record what still waits when an overloaded run ends."""
        while len(self.queue):
            delivery, _ = self.queue.popleft()
            self._enter(delivery, "dropped")
