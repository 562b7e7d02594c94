"""The `simulate` runtime: the real learner on a virtual clock. N workers, one FIFO master, one event queue.

A worker pulls parameters and really plays with them at once; only the *time* that this takes is virtual, by the cost
profile. Events happen in the order of their virtual time; at the same instant the master comes first, then workers by
their id. Nothing depends on the real clock or on other processes, so that equal settings give equal bytes.
"""

import heapq
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from a3c_core.config import RunConfig
from a3c_core.costs import CostProfile
from a3c_core.engines.base import Engine
from a3c_core.master import Master
from a3c_core.optimizers import UpdateResult
from a3c_core.parameters import Vector
from a3c_core.records import EpisodeRecord, Status
from a3c_core.runtimes.gradient_queue import GradientQueue
from a3c_core.schedules import Measured, target_workers
from a3c_core.worker import Episode, Worker

MASTER = -1  # its place among the ids of workers
_NOT_A_TIME = float("nan")


class Delivery(NamedTuple):
    """What travels with a gradient."""

    worker: int
    version_pulled: int
    started_s: float  # of the episode
    arrived_s: float = 0.0
    queue_length: int = 0  # that it found
    episode: Episode | None = None  # if this gradient ends one


class Moment(NamedTuple):
    """When an episode was recorded, how long the master had worked by then, and how long the episode took."""

    clock_s: float
    master_busy_s: float
    episode_s: float


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
    episode_started_s: float = 0.0
    delivery: Delivery | None = None  # played, but not yet handed to the master
    gradient: Vector | None = None
    retiring: bool = False


@dataclass
class Totals:
    """What happened so far, over all gradients."""

    episodes_begun: int = 0
    env_steps: int = 0
    sent: int = 0
    applied: int = 0
    dropped: int = 0
    rejected: int = 0
    queue_peak: int = 0
    master_busy_s: float = 0.0
    last_arrival_s: float = 0.0
    staleness: Counter[int] = field(default_factory=Counter)  # gradients applied, by staleness

    @property
    def served(self) -> int:
        """Gradients that the master has dealt with."""
        return self.applied + self.rejected


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
        self.totals = Totals()
        self.episodes = 0  # recorded
        self.overloaded = False
        self.seats: dict[int, Seat] = {}
        self.events: list[tuple[float, int]] = []  # heap of (time, worker or MASTER)
        self.queue = GradientQueue(master.parameters.size)
        self.blocked: deque[int] = deque()  # workers whose gradient waits for a place in the queue
        self.serving: tuple[Delivery, Vector] | None = None
        self.playing = 0
        self.next_id = 0
        self.window: deque[Moment] = deque(maxlen=config.schedule.window)  # the last recorded episodes
        self.changed_at = 0  # episodes recorded when the worker count last changed
        self._on_episode = on_episode
        self._run = run
        self._span = config.span
        self._mailboxes = config.exchange.channel == "mailbox"
        self._waits_for_apply = config.exchange.pull == "after_apply"

    def start(self) -> None:
        """Seat the first workers; their start-up time lies before the clock's zero."""
        for _ in range(self._span.start):
            self._add_worker(0.0)

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
        else:
            self._arrive(self.seats[who])
        return True

    # Workers

    def _add_worker(self, at_s: float) -> None:
        worker = Worker(self.next_id, self.config.seed, self.engine)
        newest = Mail(self.master.version, self.master.parameters.copy())
        self.seats[worker.id] = Seat(worker, newest, newest if self._mailboxes else None)
        heapq.heappush(self.events, (at_s, worker.id))
        self.next_id += 1

    def _begin(self, seat: Seat) -> None:
        """Pull, play, and let the gradient arrive when that is done; or leave, if nothing is left to begin."""
        if not seat.worker.in_episode:
            if seat.retiring or self.totals.episodes_begun == self.config.episodes:
                del self.seats[seat.worker.id]
                return
            self.totals.episodes_begun += 1
            seat.episode_started_s = self.clock_s
        loaded = self._pull(seat)
        work = seat.worker.work(seat.held.parameters)
        seat.delivery = Delivery(seat.worker.id, seat.held.version, seat.episode_started_s, episode=work.episode)
        seat.gradient = work.rollout.gradient
        self.totals.env_steps += work.rollout.env_steps
        self.playing += 1
        seconds = self.profile.cycle_s(work.rollout.env_steps, resets=work.began_episode, loads=loaded)
        self._schedule(seconds, seat.worker.id, seat.worker.rollouts)

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
        else:
            self.totals.dropped += 1
            self._record(seat.delivery, "dropped", None, 0)
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
            self._begin_update()
        if not self._waits_for_apply:
            self._begin(seat)

    # Master

    def _begin_update(self) -> None:
        delivery, gradient = self.queue.popleft()
        self.serving = delivery, gradient
        empty = sum(seat.slot is None for seat in self.seats.values()) if self._mailboxes else 0
        self.totals.master_busy_s += self._schedule(self.profile.service_s(empty), MASTER, self.totals.served)
        if self.blocked:
            self._enqueue(self.seats[self.blocked.popleft()])

    def _finish_update(self) -> None:
        assert self.serving is not None
        (delivery, gradient), self.serving = self.serving, None
        staleness = self.master.version - delivery.version_pulled
        result = self.master.apply(gradient)
        if result.applied:
            self.totals.applied += 1
            self.totals.staleness[staleness] += 1
        else:
            self.totals.rejected += 1
        if self._mailboxes:
            self._fill_mailboxes()
        self._record(delivery, "applied" if result.applied else "rejected", result, staleness)
        if self._waits_for_apply:
            self._begin(self.seats[delivery.worker])
        if len(self.queue):
            self._begin_update()

    def _fill_mailboxes(self) -> None:
        newest = Mail(self.master.version, self.master.parameters.copy())
        for seat in self.seats.values():
            if seat.slot is None:
                seat.slot = newest

    def _schedule(self, seconds: float, who: int, count: int) -> float:
        """Push an event that costs `seconds` on a free core; return what it costs here and now."""
        busy = self.playing + (self.serving is not None)
        taken = self.profile.jittered(seconds * self.profile.contention(busy), self.config.seed, who + 1, count)
        heapq.heappush(self.events, (self.clock_s + taken, who))
        return taken

    # Records and schedule

    def _record(self, delivery: Delivery, status: Status, result: UpdateResult | None, staleness: int) -> None:
        episode = delivery.episode
        if episode is None:
            return
        waited_s = max(0.0, self.clock_s - delivery.arrived_s)
        self._on_episode(
            EpisodeRecord(
                run=self._run,
                episode=self.episodes,
                worker=delivery.worker,
                worker_episode=episode.number,
                workers_alive=self._alive(),
                score=episode.score,
                return_=episode.reward,
                steps=episode.steps,
                truncated=episode.truncated,
                started_s=delivery.started_s,
                finished_s=delivery.arrived_s,
                applied_s=self.clock_s,
                wall_s=_NOT_A_TIME,
                version_pulled=delivery.version_pulled,
                version_applied=self.master.version,
                staleness=staleness,
                queue_length=delivery.queue_length,
                queue_wait_s=waited_s,
                master_busy_s=self.totals.master_busy_s,
                loss=episode.loss,
                entropy=episode.entropy,
                gradient_norm=result.gradient_norm if result else _NOT_A_TIME,
                status=status,
            )
        )
        self.episodes += 1
        episode_s = delivery.arrived_s - delivery.started_s
        self.window.append(Moment(self.clock_s, self.totals.master_busy_s, episode_s))
        self._follow_schedule()

    def _alive(self) -> int:
        return sum(not seat.retiring for seat in self.seats.values())

    def _follow_schedule(self) -> None:
        if self._span.start == self._span.end:
            return
        alive = self._alive()
        target = target_workers(self._span, self.config.schedule, self._measured(alive))
        if target == alive:
            return
        for _ in range(target - alive):
            self._add_worker(self.clock_s + self.profile.worker_start_s * self.profile.slowdown)
        staying = [seat for seat in self.seats.values() if not seat.retiring]  # in the order of their ids
        for seat in staying[target:]:
            seat.retiring = True
        self.changed_at = self.episodes

    def _measured(self, alive: int) -> Measured:
        full = len(self.window) == self.window.maxlen
        first, last = self.window[0], self.window[-1]
        elapsed_s, busy_s = last.clock_s - first.clock_s, last.master_busy_s - first.master_busy_s
        return Measured(
            workers=alive,
            mean_episode_s=sum(moment.episode_s for moment in self.window) / len(self.window) if full else 0.0,
            episodes_since_change=self.episodes - self.changed_at,
            utilisation=min(1.0, busy_s / elapsed_s) if elapsed_s > 0 else 0.0,
            queue_length=len(self.queue),
        )

    def _abandon_queue(self) -> None:
        """Record what still waits when an overloaded run ends."""
        while len(self.queue):
            delivery, _ = self.queue.popleft()
            self.totals.dropped += 1
            self._record(delivery, "dropped", None, 0)
