"""The `processes` and `threads` runtimes: a master and its workers on the real clock.

The process that runs this is the master. It takes messages from the workers' lanes into one FIFO queue, applies one
gradient at a time, publishes the parameters, and looks after the crew. It blocks when there is nothing to do.
"""

import math
import sys
import time
from collections.abc import Callable

import numpy as np

from a3c_core.config import RunConfig
from a3c_core.costs import CostProfile
from a3c_core.master import Master, new_optimizer
from a3c_core.parameters import Vector
from a3c_core.records import EpisodeRecord, Status
from a3c_core.runtimes.crew import Crew
from a3c_core.runtimes.desk import Desk
from a3c_core.runtimes.gradient_queue import GradientQueue
from a3c_core.runtimes.ledger import Delivery, Ledger
from a3c_core.runtimes.lines import episode_of
from a3c_core.runtimes.shared_memory import GRANTED, Layout, Message, SharedBlock

TIME_SPLIT = ("play_s", "gradient_s", "pull_s", "wait_s", "apply_s", "cpu_s")
_LOOK_S = 0.1  # between two looks at the crew
_AHEAD = 16  # episodes granted to a worker in advance, so that it need not wait for the next grant


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
        self.recorded: list[int] = [0] * lanes  # episodes, by lane
        self._arrived: list[int] = [0] * lanes  # episodes whose last gradient was taken over, by lane
        self._generations = [0] * lanes  # workers hired so far, by lane
        self._hogwild = config.exchange.transport == "hogwild"
        slots = master.optimizer.slots.shape[0] if self._hogwild else 0
        self.block = SharedBlock(Layout(lanes, master.parameters.size, slots))
        self._arrays = self.block.arrays
        self._lanes = self._arrays.lanes
        self._granted: list[int] = [0] * lanes  # episodes, by lane, as the lanes say
        self._tickets = 0  # episodes that nobody has been granted
        self._leaving: set[int] = set()  # lanes whose workers were told to go
        self._queue = GradientQueue(master.parameters.size)
        self._capacity = config.exchange.queue_size if config.exchange.queue == "bounded" else sys.maxsize
        self._started_s = self._looked_s = time.monotonic()

    @property
    def clock_s(self) -> float:
        """Seconds since the run began, interruptions left out."""
        return self.elapsed_s + time.monotonic() - self._started_s

    def start(self) -> None:
        """Publish the parameters and hire the first workers; the clock starts when all of them are up."""
        self.open(Crew(self.config, self.block))
        for lane in range(self.config.span.start):
            self._hire(lane)
        while not all(self._lanes["ready"][lane] for lane in self.crew.hands):
            self.desk.sleep(_LOOK_S)
            self._replace_lost()
        self.desk.count_busy()  # all this was no work on gradients
        self._started_s = time.monotonic()

    def open(self, crew: Crew) -> None:
        """Make ready for gradients that `crew` will send."""
        self.crew, self.desk = crew, Desk(self.config, self._arrays, crew)
        self._arrived = list(self.recorded)
        self._tickets = self.config.episodes - sum(self.recorded)
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
        if self.ledger.episodes >= self.config.episodes or self.overloaded:
            return False
        self._collect()
        if len(self._queue):
            self._serve()
        if time.monotonic() - self._looked_s > _LOOK_S:
            self._looked_s = time.monotonic()
            self._replace_lost()
            self._grant()
        return True

    def stop(self) -> dict[str, float]:
        """Dismiss the crew, take the last parameters, and return where the workers' time went, in seconds."""
        self.crew.close()
        while len(self._queue):  # of an overloaded or interrupted run
            (delivery, _), _ = self._queue.popleft()
            self._enter(delivery, "dropped")
        self.take_parameters()
        split = {name: float(self._lanes[name].sum()) for name in TIME_SPLIT}
        self.block.close()
        return split

    def take_parameters(self) -> None:
        """Bring the master up to date where the workers update the parameters themselves."""
        if self._hogwild:
            self.master.parameters[:] = self._arrays.parameters[0]
            self.master.optimizer.slots[:] = self._arrays.slots
            self.master.optimizer.updates = int(self._lanes["updates"].sum())

    # Gradients

    def _collect(self) -> None:
        """Take over what has arrived, as far as the queue allows; block if there is nothing at all to do."""
        desk, queue = self.desk, self._queue
        pending = desk.pending()
        if not pending.size and not len(queue):
            desk.sleep(_LOOK_S)
            pending = desk.pending()
        while pending.size and len(queue) < self._capacity:
            self._accept(desk.oldest(pending))
            pending = desk.pending()
        desk.show_room(self._capacity - len(queue))

    def _accept(self, lane: int) -> None:
        """Take one message over from `lane`."""
        received = self.desk.receive(lane)
        if received is None:
            self.ledger.totals.lost += 1
        else:
            self._take_over(lane, *received)
        self.ledger.totals.sent += 1
        self.desk.accept(lane)

    def _take_over(self, lane: int, message: Message, gradient: Vector) -> None:
        self.crew.hands[lane].heard_s = message.finished_s
        totals, exchange = self.ledger.totals, self.config.exchange
        delivery = self._delivery(lane, message)
        if delivery.episode is not None:
            self._arrived[lane] += 1
            self._grant_one(lane)
        if self._hogwild:
            self._enter_hogwild(delivery, message)
        elif exchange.queue == "dropping" and len(self._queue) >= exchange.queue_size:
            self._enter(delivery, "dropped")
            self._mark_served(lane, self._generations[lane])
        else:
            self._queue.append((delivery, self._generations[lane]), gradient)
            totals.queue_peak = max(totals.queue_peak, len(self._queue))
            self.overloaded = exchange.overload_limit is not None and len(self._queue) > exchange.overload_limit

    def _delivery(self, lane: int, message: Message) -> Delivery:
        self.ledger.totals.env_steps += message.rollout_steps
        offset_s = self.elapsed_s - self._started_s
        started_s = max(0.0, message.started_s + offset_s)  # the first may begin before the last worker is up
        arrived_s = max(0.0, message.finished_s + offset_s)
        return Delivery(lane, message.version_pulled, started_s, arrived_s, len(self._queue), episode_of(message))

    def _serve(self) -> None:
        """Apply the oldest gradient and publish what comes of it."""
        (delivery, generation), gradient = self._queue.popleft()
        staleness = self.master.version - delivery.version_pulled
        result = self.master.apply(gradient)
        self.desk.publish(self.master)
        self.ledger.totals.master_busy_s += self.desk.count_busy()
        self._enter(delivery, "applied" if result.applied else "rejected", staleness, result.gradient_norm)
        self._mark_served(delivery.worker, generation)

    def _mark_served(self, lane: int, generation: int) -> None:
        if generation == self._generations[lane]:
            self.desk.mark_served(lane)

    # Records and schedule

    def _enter(self, delivery: Delivery, status: Status, staleness: int = 0, gradient_norm: float = math.nan) -> None:
        self._enter_at(delivery, status, self.master.version, staleness, gradient_norm)

    def _enter_hogwild(self, delivery: Delivery, message: Message) -> None:
        staleness = max(0, message.version_applied - 1 - message.version_pulled)
        status: Status = "rejected" if message.rejected else "applied"
        self._enter_at(delivery, status, message.version_applied, staleness, message.gradient_norm)

    def _enter_at(self, delivery: Delivery, status: Status, version: int, staleness: int, norm: float) -> None:
        clock_s, alive, episode = self.clock_s, self.alive, delivery.episode
        by_profile = episode is not None and self.config.schedule.clock == "profile"
        episode_s = self.profile.cycle_s(episode.steps) if by_profile and episode else None
        self.ledger.enter(delivery, status, clock_s, alive, version, staleness, norm, clock_s, episode_s)
        if episode is not None:
            self.recorded[delivery.worker] += 1
            self._change_workers(alive, self.ledger.target_workers(alive, len(self._queue)))

    # Crew

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
            self._lanes["stop"][lane] = 1  # it leaves after its episode
            self.crew.wake(lane)

    def _hire(self, lane: int) -> None:
        kept = {name: self._lanes[name][lane] for name in ("updates", *TIME_SPLIT)}
        self._lanes[lane] = np.zeros((), self._lanes.dtype)
        for name, value in kept.items():
            self._lanes[name][lane] = value
        self.desk.clear(lane)
        self._generations[lane] += 1
        self._lanes["granted"][lane] = self._granted[lane] = self._arrived[lane]
        self.crew.hire(lane, self._arrived[lane])
        for _ in range(_AHEAD):
            self._grant_one(lane)
        self.desk.post(lane, self.master)

    def _grant_one(self, lane: int) -> None:
        """Let a worker begin one more episode, if there is one left that nobody has been granted.

        Towards the end of the run fewer are granted in advance, so that no worker is left alone with many.
        """
        ahead = min(_AHEAD, 1 + self._tickets // (2 * len(self._granted)))
        if self._tickets and self._granted[lane] - self._arrived[lane] < ahead and lane not in self._leaving:
            self._tickets -= 1
            self._granted[lane] += 1
            self._lanes["granted"][lane] = self._granted[lane]
            self.desk.wake(lane, GRANTED)

    def _grant(self) -> None:
        """Give what lost or dismissed workers have left undone to those who have nothing to do."""
        for lane in self.crew.hands:
            self._grant_one(lane)

    def _replace_lost(self) -> None:
        for lane, reason in self.crew.lost():
            while self.desk.holds(lane):  # what it had handed over is not lost
                self._accept(lane)
            self.crew.bury(lane)
            self._tickets += self._granted[lane] - self._arrived[lane]  # what it was granted, but left undone
            self._granted[lane] = self._arrived[lane]
            if lane in self._leaving:
                self._leaving.discard(lane)
                continue
            totals = self.ledger.totals
            totals.crashes += 1
            if totals.crashes > self.config.restarts or not self._lanes["ready"].any():
                raise RunFailed(
                    f"worker {lane}: {reason} (lost worker {totals.crashes}, {self.config.restarts} allowed)"
                )
            self._hire(lane)
