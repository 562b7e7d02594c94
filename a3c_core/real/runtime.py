"""The `processes`, `threads` and `ray` runtimes: a master and its workers on the real clock.

The process that runs this is the master. It takes messages from the workers' slots into one FIFO queue, learns from one
parcel at a time, publishes the parameters, and looks after the pool. It blocks when there is nothing to do.
"""

import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from a3c_core import topologies
from a3c_core.algorithms import statistics_of
from a3c_core.config import RunConfig
from a3c_core.episode_log import EpisodeLog
from a3c_core.learners.base import Learner, settled_by
from a3c_core.learners.gradients import warm_up
from a3c_core.models.parameters import Vector
from a3c_core.real import memory
from a3c_core.real.arrivals import Arrival, arrival_at, takeable, waiting_slots
from a3c_core.real.backlog import Backlog, say_that_nothing_waits
from a3c_core.real.inbox import Inbox
from a3c_core.real.outcomes import Dealt, Outcomes
from a3c_core.real.permits import Permits
from a3c_core.real.pool import Pool
from a3c_core.real.pools import new_pool
from a3c_core.real.roster import TIME_SPLIT, Roster, RunFailed
from a3c_core.real.shared_memory import Message
from a3c_core.results.records import EpisodeRecord, Status, UpdateRow
from a3c_core.runtime import Arrays, Saved
from a3c_core.topologies.remedies import Remedies
from a3c_core.virtual.costs import CostProfile
from a3c_core.worker import Episode

LOOK_S = 0.1  # between two looks at the pool


class RealRuntime:
    """One run on the real clock; a resumed one plays again what was under way, and counts no episode twice."""

    steps_between_looks = 1
    write_up_after = 32  # parcels dealt with are written up together, which is cheaper than one by one

    def __init__(
        self,
        config: RunConfig,
        profile: CostProfile,
        master: Learner,
        on_episode: Callable[[EpisodeRecord], None],
        run: str = "run",
        on_update: Callable[[UpdateRow], None] | None = None,
    ):
        self.config, self.profile, self.master = config, profile, master
        statistics = statistics_of(config.algorithm) + topologies.statistics_of(config.topology)
        self.log = EpisodeLog(config.span, config.schedule, on_episode, run, on_update, statistics)
        self.overloaded = False
        self.elapsed_s = 0.0  # before this process took the run over
        self.recorded = [0] * config.span.end  # numbers of episodes below which all are recorded or given up, by slot
        self._rules = topologies.rules_of(config.topology, config.exchange)
        self._remedies = Remedies(config.gradients, master)
        self._hogwild, self._gradients = not self._rules.has_master, config.gradients
        self._waits_for_apply = self._rules.waits_for_apply
        self.block = memory.new_block(config, master)
        self._arrays, self._slots = self.block.arrays, self.block.arrays.slots
        self._queue = Backlog(self._remedies.parcel_size)
        self._outcomes = Outcomes(config, self.log, master, profile)
        self._opened = False
        self._busy_s = 0.0  # that the master has worked
        self._speed = config.pace.speed
        self._capacity = self._gradients.queue_size if self._gradients.queue == "bounded" else sys.maxsize
        self._started_s = self._looked_s = time.monotonic()

    @property
    def clock_s(self) -> float:
        """Seconds since the run began, interruptions left out; the profile's, where the run is paced to one."""
        return self._clock_at(time.monotonic())

    def _clock_at(self, moment_s: float) -> float:
        return self.elapsed_s + (moment_s - self._started_s) * self._speed

    @property
    def waiting(self) -> int:
        """Parcels that wait for the master."""
        return len(self._queue)

    def start(self, is_asked_to_stop: Callable[[], bool] = lambda: False) -> None:
        """Publish the parameters and spawn the first workers; the clock starts when all of them are up."""
        self.open(new_pool(self.config, self.block))
        workers = self.config.span.start
        self.roster.change(workers)
        while self.roster.up < workers and not is_asked_to_stop():
            self.inbox.sleep(LOOK_S)
            self._replace_lost()
        self.inbox.count_busy()  # all this was no work on gradients
        self._started_s = time.monotonic()
        self.roster.grant_all()

    def open(self, pool: Pool) -> None:
        """Make ready for gradients that `pool` will send."""
        self.pool, self.inbox, self._opened = pool, Inbox(self.config, self._arrays, pool), True
        self.roster = Roster(self.config, self._slots, pool, self.inbox, self.master)
        self._permits = Permits(self._rules, self._slots, self.inbox, self.roster)
        self.roster.grants.open(*self._queue.ungranted(self.recorded, self.config.episodes - self.log.episodes))
        self._busy_s = self.log.totals.master_busy_s
        warm_up(self.config, self.master.parameters)
        if self._hogwild:
            memory.share(self.master, self._arrays)
        else:
            self.inbox.publish(self.master)

    def step(self) -> bool:
        """Do what there is to do, or wait for it; return whether the run goes on."""
        if self.log.episodes + len(self._outcomes) >= self.config.episodes or self.overloaded:
            self.settle()
            if self.log.episodes >= self.config.episodes or self.overloaded:
                return False
        if self._has_rest():
            self._take_up([])
        self._collect()
        if taken := self._may_take():
            self._take_up(self._queue.popleft_many(taken))
        if time.monotonic() - self._looked_s > LOOK_S:
            self._looked_s = time.monotonic()
            self._replace_lost()
            self.roster.grant_all()
            self.settle()
        return True

    def advance(self, steps: int) -> bool:
        """Take up to `steps` steps; return whether the run goes on."""
        return all(self.step() for _ in range(steps))

    def stop(self) -> dict[str, float]:
        """Dismiss the pool, take the last parameters, and return where the workers' time went, in seconds."""
        if self._opened:
            self.pool.close()
        for arrival in self._queue.clear():  # of an overloaded or interrupted run
            self._note(arrival, "dropped")
        self.settle()
        split = {name: float(self._slots[name].sum()) for name in TIME_SPLIT}
        self.block.close()
        return split

    def settle(self) -> None:
        """Write up what was dealt with, and bring the master up to date where workers update the parameters."""
        for slot, episodes in self._outcomes.write_up():
            if episodes:
                self._count(slot, episodes)
        progress = self._outcomes.progress()
        self._arrays.inbox["progress"], self._arrays.inbox["env_steps"] = progress.share, progress.env_steps
        if self._hogwild:
            memory.follow(self.master, self._arrays, progress)

    def save(self) -> Saved:
        """Return what the run needs in order to go on; what workers have under way will be played again."""
        self.settle()
        backlog, files = self._queue.save()
        numbers = {"elapsed_s": self.clock_s, "recorded": self.recorded, "log": self.log.save()}
        return Saved({**numbers, "remedies": self._remedies.save(), "backlog": backlog}, {}, files)

    def restore(self, numbers: dict[str, Any], arrays: Arrays, folder: Path) -> None:
        self.elapsed_s, self.recorded = numbers["elapsed_s"], numbers["recorded"]
        self.log.restore(numbers["log"])
        self._remedies.restore(numbers.get("remedies", {}))
        if "backlog" in numbers:
            self._queue.load(numbers["backlog"], folder)
        else:
            self.master.forget_batch()
            say_that_nothing_waits(self.log.totals)
        totals = self.log.totals
        totals.sent = totals.outcomes + len(self._queue) + len(self._queue.joined)
        self._outcomes.env_steps = totals.env_steps

    # Gradients

    def _collect(self) -> None:
        """Take over what has arrived, as far as the queue allows; block if there is nothing at all to do."""
        inbox, queue = self.inbox, self._queue
        self._permits.give(queue.unserved)
        pending = inbox.pending() if self._may_take() else self._wait()
        for slot in inbox.oldest_first(pending)[: max(0, self._capacity - len(queue))]:
            self._accept(slot)
        inbox.show_room(self._capacity - len(queue))

    def _wait(self) -> NDArray[np.intp]:
        """Wait for messages; return the slots that have some."""
        return self.inbox.wait(LOOK_S)

    def _accept(self, slot: int) -> None:
        """Take one message over from `slot`, unless it is not from the slot's worker."""
        received = self.inbox.receive(slot)
        totals = self.log.totals
        if received is None:
            totals.lost += 1
            totals.sent += 1
        elif self.roster.is_current(slot, received[0].generation):
            self._take_over(slot, *received)
            totals.sent += 1
        self.inbox.accept(slot)

    def _take_over(self, slot: int, message: Message, episodes: tuple[Episode, ...], gradient: Vector) -> None:
        self.pool.members[slot].heard_s = message.finished_s
        for _ in episodes:
            self.roster.grants.end(slot)
            self.roster.grant_next(slot)
        queue = self._queue
        arrival = arrival_at(self._clock_at, slot, message, episodes, len(queue))
        if self._hogwild:
            staleness = max(0, message.version_applied - 1 - message.version_pulled)
            status: Status = "rejected" if message.rejected else "applied"
            self._note(arrival, status, message.version_applied, staleness, message.gradient_norm)
        elif self._rules.is_late(self.master.version - message.version_pulled) or (
            self._rules.drops_when_full and len(queue) >= self._rules.queue_size
        ):
            self._note(arrival, "dropped")
            self._mark_served(arrival)
        else:
            queue.append(arrival, gradient)
            totals = self.log.totals
            totals.queue_peak = max(totals.queue_peak, len(queue))
            self.overloaded = len(queue) > self._rules.overload_limit

    def _may_take(self) -> int:
        """Return of how many parcels the topology makes an update now."""
        return takeable(self._rules, self._queue, self.roster)

    def _has_rest(self) -> bool:
        """Return whether there is a batch to which nobody will add any more."""
        return self._queue.has_rest(self.roster, self._waits_for_apply) and not self.inbox.pending().size

    def _take_up(self, taken: list[tuple[Arrival, Vector]]) -> None:
        """Deal with what was taken from the queue: at once, unless that is to take its time."""
        self._learn(taken, self.clock_s)

    def _learn(self, taken: list[tuple[Arrival, Vector]], taken_s: float) -> None:
        """Let the learner have what was taken, or make do with what it has kept; publish what comes of it."""
        version, queue = self.master.version, self._queue
        pulled = [(arrival.message.version_pulled, vector) for arrival, vector in taken]
        result = self._remedies.apply(self._rules.combine, pulled, self._outcomes.progress())
        arrivals = [arrival.at(taken_s) for arrival, _ in taken]
        settled, queue.joined = settled_by(result, queue.joined, arrivals)
        if result is not None and settled:
            self.inbox.publish(self.master)
        for arrival in settled:
            self._mark_served(arrival)
        self._busy_s += self._count_busy()
        for arrival in settled:
            staleness = version - arrival.message.version_pulled
            if result is None or self._remedies.is_too_old(staleness):
                self._note(arrival, "dropped")
            else:
                status: Status = "applied" if result.applied else "rejected"
                self._note(arrival, status, self.master.version, staleness, result.gradient_norm)

    def _count_busy(self) -> float:
        """Return the seconds that the master has worked since the last call."""
        return self.inbox.count_busy()

    def _mark_served(self, arrival: Arrival) -> None:
        if self._waits_for_apply and self.roster.is_current(arrival.slot, arrival.message.generation):
            self.inbox.mark_served(arrival.slot)

    # Records and schedule

    def _note(
        self, arrival: Arrival, status: Status, version: int | None = None, staleness: int = 0, norm: float = math.nan
    ) -> None:
        """Note what became of an arrival. Writing it up can wait: others wait for the master."""
        version = self.master.version if version is None else version
        dealt = Dealt(arrival, status, self.clock_s, self._busy_s, self.roster.alive, version, staleness, norm)
        self._outcomes.note(dealt)
        if len(self._outcomes) >= self.write_up_after:
            self.settle()

    def _count(self, slot: int, episodes: tuple[Episode, ...]) -> None:
        """Remember which episodes are recorded, then let the schedule have its way."""
        self.recorded[slot] = max(self.recorded[slot], *(episode.number + 1 for episode in episodes))
        alive = self.roster.alive
        if (target := self.log.target_workers(alive, len(self._queue))) != alive:
            self.roster.change(target)

    def _replace_lost(self) -> None:
        served_later = self._queue.arrivals() if self._waits_for_apply else []
        for loss in self.roster.lost(waiting_slots(served_later, self.roster)):
            while self.inbox.holds(loss.slot):  # what it had handed over is not lost
                self._accept(loss.slot)
            if not self.roster.replace(loss):
                continue
            totals, restarts = self.log.totals, self.config.restarts
            totals.crashes += 1
            if totals.crashes > restarts:
                raise RunFailed(f"worker {loss.slot}: {loss.reason} (lost worker {totals.crashes}, {restarts} allowed)")
            self.roster.spawn(loss.slot)
