"""The `processes`, `threads` and `ray` runtimes: a master and its workers on the real clock.

The process that runs this is the master. It takes messages from the workers' lanes into one FIFO queue, applies one
gradient at a time, publishes the parameters, and looks after the crew. It blocks when there is nothing to do.
"""

import math
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from a3c_core.config import RunConfig
from a3c_core.costs import CostProfile
from a3c_core.master import Master, new_optimizer
from a3c_core.parameters import Vector
from a3c_core.records import EpisodeRecord, Status
from a3c_core.runtimes.crew import Crew, LocalCrew, Loss
from a3c_core.runtimes.desk import Desk
from a3c_core.runtimes.gradient_queue import GradientQueue
from a3c_core.runtimes.grants import Grants
from a3c_core.runtimes.ledger import Delivery, Ledger
from a3c_core.runtimes.shared_memory import AFTER_THIS_EPISODE, GRANTED, LANE, Layout, Message, SharedBlock
from a3c_core.worker import Episode

TIME_SPLIT = ("play_s", "gradient_s", "pull_s", "wait_s", "apply_s", "cpu_s")
_LOOK_S = 0.1  # between two looks at the crew
_WRITE_UP = 32  # gradients dealt with before they are written up together, which is cheaper than one by one
_ENVELOPE = 512  # bytes of a pickled model beside its numbers


class Arrival(NamedTuple):
    """A message that was taken over, and what it found."""

    lane: int
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


class RunFailed(Exception):
    """More workers were lost than the run may replace; the message says why."""


class RealRuntime:
    """One run on the real clock."""

    def __init__(
        self,
        config: RunConfig,
        profile: CostProfile,
        master: Master,
        on_episode: Callable[[EpisodeRecord], None],
        run: str = "run",
    ):
        self.config, self.profile, self.master = config, profile, master
        self.ledger = Ledger(config, on_episode, run)
        self.overloaded = False
        self.elapsed_s = 0.0  # before this process took the run over
        lanes = config.span.end
        self.recorded: list[int] = [0] * lanes  # numbers of episodes below which all are recorded or given up, by lane
        self._generations = [0] * lanes  # workers lost or dismissed so far, by lane
        self._hogwild = config.exchange.transport == "hogwild"
        self._waits_for_apply = config.exchange.pull == "after_apply"
        slots = master.optimizer.slots.shape[0] if self._hogwild else 0
        size = master.parameters.size
        mail_bytes = 4 * size + _ENVELOPE if config.exchange.transport == "queue" else 0
        self.block = SharedBlock(Layout(lanes, size, config.agents_per_worker, slots, mail_bytes))
        self._arrays = self.block.arrays
        self._lanes = self._arrays.lanes
        self._grants = Grants(self._lanes, config.agents_per_worker)
        self._leaving: set[int] = set()  # lanes whose workers were told to go
        self._queue = GradientQueue(master.parameters.size)
        self._dealt: list[Dealt] = []
        self._opened = False
        self._busy_s = 0.0  # that the master has worked
        by_profile = config.schedule.clock == "profile"
        self._episode_s = (lambda episode: profile.cycle_s(episode.steps)) if by_profile else None
        self._capacity = config.exchange.queue_size if config.exchange.queue == "bounded" else sys.maxsize
        self._started_s = self._looked_s = time.monotonic()

    @property
    def clock_s(self) -> float:
        """Seconds since the run began, interruptions left out."""
        return self.elapsed_s + time.monotonic() - self._started_s

    @property
    def waiting(self) -> int:
        """Gradients that wait for the master."""
        return len(self._queue)

    def start(self, is_asked_to_stop: Callable[[], bool] = lambda: False) -> None:
        """Publish the parameters and hire the first workers; the clock starts when all of them are up."""
        self.open(self._new_crew())
        workers = self.config.span.start
        for lane in range(workers):
            self._hire(lane)
        while self._lanes["ready"].sum() < workers and not is_asked_to_stop():
            self.desk.sleep(_LOOK_S)
            self._replace_lost()
        self.desk.count_busy()  # all this was no work on gradients
        self._started_s = time.monotonic()
        self._grant()

    def open(self, crew: Crew) -> None:
        """Make ready for gradients that `crew` will send."""
        self.crew, self.desk, self._opened = crew, Desk(self.config, self._arrays, crew), True
        self._grants.open(self.recorded, self.config.episodes - self.ledger.episodes)
        self._busy_s = self.ledger.totals.master_busy_s
        warm_up = new_optimizer(self.config, self.master.parameters.size)
        warm_up.apply(self.master.parameters.copy(), np.zeros_like(self.master.parameters))
        if self._hogwild:
            self._arrays.slots[:] = self.master.optimizer.slots
            self._arrays.parameters[0] = self.master.parameters
            self._lanes["updates"][0] = self.master.version
        else:
            self.desk.publish(self.master)

    def step(self) -> bool:
        """Do what there is to do, or wait for it; return whether the run goes on."""
        if self.ledger.episodes + len(self._dealt) >= self.config.episodes or self.overloaded:
            self.settle()
            if self.ledger.episodes >= self.config.episodes or self.overloaded:
                return False
        self._collect()
        if len(self._queue):
            self._serve()
        if time.monotonic() - self._looked_s > _LOOK_S:
            self._looked_s = time.monotonic()
            self._replace_lost()
            self._grant()
            self.settle()
        return True

    def stop(self) -> dict[str, float]:
        """Dismiss the crew, take the last parameters, and return where the workers' time went, in seconds."""
        if self._opened:
            self.crew.close()
        while len(self._queue):  # of an overloaded or interrupted run
            arrival, _ = self._queue.popleft()
            self._note(arrival, "dropped")
        self.settle()
        split = {name: float(self._lanes[name].sum()) for name in TIME_SPLIT}
        self.block.close()
        return split

    def settle(self) -> None:
        """Write up what was dealt with, and bring the master up to date where workers update the parameters."""
        dealt, self._dealt = self._dealt, []
        for one in dealt:
            self._write_up(one)
        if self._hogwild:
            self.master.parameters[:] = self._arrays.parameters[0]
            self.master.optimizer.slots[:] = self._arrays.slots
            self.master.optimizer.updates = int(self._lanes["updates"].sum())

    # Gradients

    def _collect(self) -> None:
        """Take over what has arrived, as far as the queue allows; block if there is nothing at all to do."""
        desk, queue = self.desk, self._queue
        pending = desk.pending() if len(queue) else desk.wait(_LOOK_S)
        for lane in desk.oldest_first(pending)[: max(0, self._capacity - len(queue))]:
            self._accept(lane)
        desk.show_room(self._capacity - len(queue))

    def _accept(self, lane: int) -> None:
        """Take one message over from `lane`, unless it is not from the lane's worker."""
        received = self.desk.receive(lane)
        totals = self.ledger.totals
        if received is None:
            totals.lost += 1
            totals.sent += 1
        elif received[0].generation == self._generations[lane]:
            self._take_over(lane, *received)
            totals.sent += 1
        self.desk.accept(lane)

    def _take_over(self, lane: int, message: Message, episodes: tuple[Episode, ...], gradient: Vector) -> None:
        self.crew.hands[lane].heard_s = message.finished_s
        for _ in episodes:
            self._grants.end_one(lane)
            self._grant_one(lane)
        queue, exchange = self._queue, self.config.exchange
        arrival = Arrival(lane, message, episodes, len(queue))
        if self._hogwild:
            staleness = max(0, message.version_applied - 1 - message.version_pulled)
            status: Status = "rejected" if message.rejected else "applied"
            self._note(arrival, status, message.version_applied, staleness, message.gradient_norm)
        elif exchange.queue == "dropping" and len(queue) >= exchange.queue_size:
            self._note(arrival, "dropped")
            self._mark_served(arrival)
        else:
            queue.append(arrival, gradient)
            totals = self.ledger.totals
            totals.queue_peak = max(totals.queue_peak, len(queue))
            self.overloaded = exchange.overload_limit is not None and len(queue) > exchange.overload_limit

    def _serve(self) -> None:
        """Apply the oldest gradient and publish what comes of it."""
        arrival, gradient = self._queue.popleft()
        master = self.master
        staleness = master.version - arrival.message.version_pulled
        result = master.apply(gradient)
        self.desk.publish(master)
        self._mark_served(arrival)
        self._busy_s += self.desk.count_busy()
        status: Status = "applied" if result.applied else "rejected"
        self._note(arrival, status, master.version, staleness, result.gradient_norm)

    def _mark_served(self, arrival: Arrival) -> None:
        if self._waits_for_apply and arrival.message.generation == self._generations[arrival.lane]:
            self.desk.mark_served(arrival.lane)

    # Records and schedule

    def _note(
        self,
        arrival: Arrival,
        status: Status,
        version: int | None = None,
        staleness: int = 0,
        gradient_norm: float = math.nan,
    ) -> None:
        """Note what became of an arrival. Writing it up can wait: others wait for the master."""
        version = self.master.version if version is None else version
        self._dealt.append(
            Dealt(arrival, status, self.clock_s, self._busy_s, self.alive, version, staleness, gradient_norm)
        )
        if len(self._dealt) >= _WRITE_UP:
            self.settle()

    def _write_up(self, dealt: Dealt) -> None:
        arrival = dealt.arrival
        message, lane = arrival.message, arrival.lane
        offset_s = self.elapsed_s - self._started_s
        episodes = tuple(episode._replace(started_s=episode.started_s + offset_s) for episode in arrival.episodes)
        arrived_s = message.finished_s + offset_s
        delivery = Delivery(lane, message.version_pulled, arrived_s, arrival.queue_length, episodes)
        totals = self.ledger.totals
        totals.env_steps += message.env_steps
        totals.master_busy_s = dealt.busy_s
        self.ledger.enter(
            delivery,
            dealt.status,
            dealt.clock_s,
            dealt.alive,
            dealt.version,
            dealt.staleness,
            dealt.gradient_norm,
            wall_s=dealt.clock_s,
            episode_s=self._episode_s,
        )
        if episodes:
            self.recorded[lane] = max(self.recorded[lane], *(episode.number + 1 for episode in episodes))
            alive = self.alive
            self._change_workers(alive, self.ledger.target_workers(alive, len(self._queue)))

    # Crew

    def _new_crew(self) -> Crew:
        if self.config.runtime != "ray":
            return LocalCrew(self.config, self.block)
        from a3c_core.runtimes.ray_crew import RayCrew  # an optional extra

        return RayCrew(self.config, self._arrays)

    @property
    def alive(self) -> int:
        """Workers at work, those on their way out left aside."""
        return len(self.crew.hands) - len(self._leaving)

    def _change_workers(self, alive: int, target: int) -> None:
        if target == alive:
            return
        if target > alive:
            free = [lane for lane in range(len(self._lanes)) if lane not in self.crew.hands]
            for lane in free[: target - alive]:
                self._hire(lane)
        for lane in sorted(self.crew.hands.keys() - self._leaving)[target:]:
            self._leaving.add(lane)
            self._lanes["stop"][lane] = AFTER_THIS_EPISODE
            self.crew.wake(lane)

    def _hire(self, lane: int) -> None:
        self._grants.show(lane)
        self.crew.hire(lane, self._grants.granted[lane])
        self.desk.post(lane, self.master)

    def _grant_one(self, lane: int) -> bool:
        """Let a worker begin one more episode, unless it leaves or has enough; return whether."""
        if lane in self._leaving or not self._grants.grant(lane):
            return False
        self.desk.wake(lane, GRANTED)
        return True

    def _grant(self) -> None:
        """Grant in advance to all who are up: to new ones, and what lost or dismissed workers have left undone."""
        lanes = [lane for lane in self.crew.hands if self._lanes["ready"][lane]]
        while lanes := [lane for lane in lanes if self._grant_one(lane)]:
            pass

    def _replace_lost(self) -> None:
        for lane, hand in self.crew.hands.items():
            if self._lanes["ready"][lane] and self._grants.is_idle(lane):
                hand.heard_s = time.monotonic()  # who has nothing to play is not stuck
        for loss in self.crew.lost():
            lane = loss.lane
            while self.desk.holds(lane):  # what it had handed over is not lost
                self._accept(lane)
            self.crew.bury(lane)
            self._vacate(lane)
            if lane in self._leaving:
                self._leaving.discard(lane)
            else:
                self._count_loss(loss)
                self._hire(lane)

    def _vacate(self, lane: int) -> None:
        """Make a lane ready for another worker. Should the last one live all the same, nobody listens to it."""
        self._generations[lane] += 1
        self._lanes["generation"][lane] = self._generations[lane]
        for name in set(LANE.names or ()) - {"generation", "updates", *TIME_SPLIT}:
            self._lanes[name][lane] = 0
        self.desk.clear(lane, self._generations[lane])
        self._grants.take_back(lane)

    def _count_loss(self, loss: Loss) -> None:
        totals, restarts = self.ledger.totals, self.config.restarts
        totals.crashes += 1
        if loss.hopeless:
            raise RunFailed(f"worker {loss.lane} can't start: {loss.reason}")
        if totals.crashes > restarts:
            raise RunFailed(f"worker {loss.lane}: {loss.reason} (lost worker {totals.crashes}, {restarts} allowed)")
