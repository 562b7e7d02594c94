"""The `processes`, `threads` and `ray` runtimes: a master and its workers on the real clock.

The process that runs this is the master. It takes messages from the workers' slots into one FIFO queue, learns from one
parcel at a time, publishes the parameters, and looks after the pool. It blocks when there is nothing to do.
"""

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from a3c_core import topologies
from a3c_core.algorithms import make_algorithm, statistics_of
from a3c_core.algorithms.base import gradients_of_play
from a3c_core.build import warm_up
from a3c_core.config import RunConfig
from a3c_core.episode_log import NO_STATISTICS, EpisodeLog, Parcel, Totals
from a3c_core.learners.base import Learner, settled_by
from a3c_core.models.parameters import Vector
from a3c_core.progress import Progress, worker_draw
from a3c_core.real.local_pool import LocalPool
from a3c_core.real.shared_memory import Message, SharedBlock, follow_workers, new_block, share_learner
from a3c_core.real.transport import Inbox
from a3c_core.real.worker_manager import TIME_SPLIT, RunFailed, StalenessThrottle, WorkerManager
from a3c_core.real.worker_pool import Pool
from a3c_core.records.tables import EpisodeRecord, Status, UpdateRow
from a3c_core.runtime import Arrays, Saved
from a3c_core.topologies import TOPOLOGIES
from a3c_core.topologies.base import Topology
from a3c_core.topologies.parcel_queue import ParcelQueue
from a3c_core.topologies.remedies import Remedies
from a3c_core.virtual.costs import CostProfile
from a3c_core.worker import Episode

LOOK_S = 0.1  # seconds between two looks at the pool
_NOBODY = -1  # a generation that no worker has
_FILE = "queue.f32"  # of a checkpoint: the gradients that wait


class Arrival(NamedTuple):
    """A message that was taken over, and what it found; its times are those of the run's clock."""

    slot: int
    message: Message
    episodes: tuple[Episode, ...]
    queue_length: int
    taken_s: float = math.nan  # when the master took it up

    def at(self, taken_s: float) -> "Arrival":
        """Return the same, taken up: `_replace` takes twice as long, and others wait for the master."""
        return Arrival(self.slot, self.message, self.episodes, self.queue_length, taken_s)


def arrival_at(
    clock_at: Callable[[float], float], slot: int, message: Message, episodes: tuple[Episode, ...], queue_length: int
) -> Arrival:
    """Return what has arrived, its times on the run's clock: the monotonic one ends with the machine's session."""
    placed = tuple([episode._replace(started_s=clock_at(episode.started_s)) for episode in episodes])
    return Arrival(slot, message._replace(finished_s=clock_at(message.finished_s)), placed, queue_length)


def arrival_from(saved: list[Any]) -> Arrival:
    """Return the arrival that JSON made lists of; its worker is gone, so it is of no present one's generation."""
    slot, message, episodes, *found = saved
    message = Message(*message)._replace(generation=_NOBODY)
    return Arrival(slot, message, tuple(Episode(*episode) for episode in episodes), *found)


def waiting_slots(arrivals: Iterable[Arrival], worker_manager: WorkerManager) -> set[int]:
    """Return the slots whose present workers have sent one of these."""
    return {one.slot for one in arrivals if worker_manager.is_current(one.slot, one.message.generation)}


def takeable(rules: Topology, queue: ParcelQueue, worker_manager: WorkerManager) -> int:
    """Return of how many of the waiting parcels an update is made now."""
    waiting = len(queue)
    return rules.take(waiting, _players(rules, queue, worker_manager)) if waiting else 0


def _players(rules: Topology, queue: ParcelQueue, worker_manager: WorkerManager) -> int:
    """Return how many workers will still hand something over, or just whether any will, as the rules need it."""
    if rules.counts_players:
        return len(worker_manager.at_work() - waiting_slots(queue.items(), worker_manager))
    return int(not worker_manager.quota.are_done)


class PendingQueue(ParcelQueue):
    """Everything that arrived and has no outcome yet: waiting, being served, or kept by the learner for a batch.

    It is part of a checkpoint, so that an interrupted run loses no gradient.
    """

    def __init__(self, size: int):
        super().__init__(size)
        self.serving: list[tuple[Arrival, Vector]] = []  # where an update takes its time
        self.joined: list[Arrival] = []  # whose batch the learner still collects

    def append(self, item: Arrival, gradient: Vector) -> None:
        """Let an arrival wait, with a copy of its gradient, whose place in shared memory will be used again."""
        super().append(item, gradient.copy())

    @property
    def unserved(self) -> int:
        """Parcels that wait or are being served."""
        return len(self.serving) + len(self)

    def arrivals(self) -> Iterator[Arrival]:
        """Yield all that has no outcome yet, oldest first."""
        yield from self.joined
        yield from (arrival for arrival, _ in self.serving)
        yield from self.items()

    def has_rest(self, worker_manager: WorkerManager, workers_wait: bool) -> bool:
        """Return whether the learner's batch will have no more: all have left, or wait for what becomes of it."""
        if not self.joined or self.unserved:
            return False
        waiting = waiting_slots(self.joined, worker_manager) if workers_wait else set()
        return not worker_manager.at_work() - waiting

    def clear(self) -> list[Arrival]:
        """Return all that is left, and leave nothing."""
        left = list(self.arrivals())
        self.serving, self.joined = [], []
        while len(self):
            self.popleft()
        return left

    def save(self) -> tuple[dict[str, Any], dict[str, Callable[[IO[bytes]], object]]]:
        """Return (arrivals as numbers for JSON; what writes their gradients to a file, by its name)."""
        waiting = [arrival for arrival, _ in self.serving] + self.items()
        untaken = [arrival[:4] for arrival in waiting]  # what was being served waits again
        return {"queue": untaken, "joined": self.joined}, {_FILE: self._write}

    def load(self, numbers: dict[str, Any], folder: Path) -> None:
        """Fill an empty queue with what `save` gave."""
        self.joined = [arrival_from(one) for one in numbers["joined"]]
        with (folder / _FILE).open("rb") as file:
            self.restore([arrival_from(one) for one in numbers["queue"]], file)

    def ungranted(self, recorded: list[int], episodes: int) -> tuple[list[int], int]:
        """Return (numbers of episodes below which all were played, by slot; how many of `episodes` are to be played).

        `recorded` and `episodes` count what is here as not played.
        """
        played = list(recorded)
        for arrival in self.arrivals():
            episodes -= len(arrival.episodes)
            played[arrival.slot] = max([played[arrival.slot], *(one.number + 1 for one in arrival.episodes)])
        return played, episodes

    def _write(self, file: IO[bytes]) -> None:
        for _, gradient in self.serving:
            file.write(gradient.tobytes())
        self.write_gradients(file)


def say_that_nothing_waits(totals: Totals) -> None:
    """Warn that a run goes on with an empty queue, if it had one: older checkpoints do not hold it."""
    if waited := totals.sent - totals.outcomes:
        warnings.warn(
            f"the checkpoint, of an older version, does not hold the {waited:,} gradients that waited for the master: "
            "the run goes on with an empty queue, and their episodes are played again",
            stacklevel=3,
        )


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
    statistics: Mapping[str, float] = NO_STATISTICS  # that the learner adds


class RecordBuffer:
    """Outcomes that are not in the log yet: they are written in batches, because workers wait for the master."""

    def __init__(self, config: RunConfig, log: EpisodeLog, learner: Learner, profile: CostProfile):
        self._config, self._log, self._learner = config, log, learner
        changes = config.span.start != config.span.end  # or else nobody asks how long episodes take
        by_profile = changes and config.schedule.clock == "profile" and not config.is_paced
        self._repeats = gradients_of_play(make_algorithm(config.algorithm, config.learner)) - 1
        self._profile = profile
        self._episode_s = self._by_profile if by_profile else None
        self._dealt: list[Dealt] = []
        self._ended = 0  # episodes that end with those
        self.env_steps = 0  # of all that was dealt with

    def __len__(self) -> int:
        return len(self._dealt)

    def progress(self, slot: int = 0) -> Progress:
        """Return how far the run has come, with what sets the worker of `slot` apart."""
        share = (self._log.episodes + self._ended) / self._config.episodes
        return Progress(share, self.env_steps, worker_draw(self._config.seed, slot))

    def _by_profile(self, episode: Episode) -> float:
        """Return how long an episode takes a worker at the costs of the profile, were it one piece of play."""
        first_s = self._profile.cycle_s(episode.steps)
        return first_s + self._repeats * self._profile.cycle_s(0, resets=0, repeated=episode.steps)

    def note(self, dealt: Dealt) -> None:
        """Note what became of an arrival, with what the learner has to say of it."""
        arrival = dealt.arrival
        self.env_steps += arrival.message.env_steps
        if self._log.statistics and dealt.status != "dropped":
            learned = self._learner.statistics(self.progress(arrival.slot))
            dealt = dealt._replace(statistics={**learned, **arrival.message.measured})
        self._dealt.append(dealt)
        self._ended += len(arrival.episodes)

    def write_up(self) -> Iterator[tuple[int, tuple[Episode, ...]]]:
        """Enter what was noted into the log, one by one; yield the slots and the episodes that ended there."""
        dealt, self._dealt, self._ended = self._dealt, [], 0
        for one in dealt:
            _enter(one, self._log, self._config.pace.speed, self._episode_s)
            yield one.arrival.slot, one.arrival.episodes


def _enter(dealt: Dealt, log: EpisodeLog, speed: float, episode_s: Callable[[Episode], float] | None) -> None:
    """Enter what became of an arrival into the log.

    `speed`: seconds of the run's clock in a real one; `episode_s`: an episode's length for the schedule, if that is
    not its length on the run's clock.
    """
    slot, message, episodes, found, taken_s = dealt.arrival
    log.totals.env_steps += message.env_steps
    log.totals.master_busy_s = dealt.busy_s
    log.enter(
        Parcel(slot, message.version_pulled, message.finished_s, found, episodes, taken_s),
        dealt.status,
        dealt.clock_s,
        dealt.alive,
        dealt.version,
        dealt.staleness,
        dealt.gradient_norm,
        wall_s=dealt.clock_s / speed,
        episode_s=episode_s,
        statistics=dealt.statistics,
    )


def new_pool(config: RunConfig, block: SharedBlock) -> Pool:
    """Return a pool without workers, whose slots are in `block`."""
    if TOPOLOGIES.get(config.topology).has_predictors:
        from a3c_core.real.ga3c_predictor import AgentPool

        return AgentPool(config, block)
    if config.runtime != "ray":
        return LocalPool(config, block)
    from a3c_core.real.ray_pool import RayPool  # an optional extra

    return RayPool(config, block.arrays)


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
        self.block = new_block(config, master)
        self._arrays, self._slots = self.block.arrays, self.block.arrays.slots
        self._queue = PendingQueue(self._remedies.parcel_size)
        self._record_buffer = RecordBuffer(config, self.log, master, profile)
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
        self.worker_manager.change(workers)
        while self.worker_manager.up < workers and not is_asked_to_stop():
            self.inbox.sleep(LOOK_S)
            self._replace_lost()
        self.inbox.count_busy()  # all this was no work on gradients
        self._started_s = time.monotonic()
        self.worker_manager.grant_all()

    def open(self, pool: Pool) -> None:
        """Make ready for gradients that `pool` will send."""
        self.pool, self.inbox, self._opened = pool, Inbox(self.config, self._arrays, pool), True
        self.worker_manager = WorkerManager(self.config, self._slots, pool, self.inbox, self.master)
        self._throttle = StalenessThrottle(self._rules, self._slots, self.inbox, self.worker_manager)
        self.worker_manager.quota.open(*self._queue.ungranted(self.recorded, self.config.episodes - self.log.episodes))
        self._busy_s = self.log.totals.master_busy_s
        warm_up(self.config, self.master.parameters)
        if self._hogwild:
            share_learner(self.master, self._arrays)
        else:
            self.inbox.publish(self.master)

    def step(self) -> bool:
        """Do what there is to do, or wait for it; return whether the run goes on."""
        if self.log.episodes + len(self._record_buffer) >= self.config.episodes or self.overloaded:
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
            self.worker_manager.grant_all()
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
        for slot, episodes in self._record_buffer.write_up():
            if episodes:
                self._count(slot, episodes)
        progress = self._record_buffer.progress()
        self._arrays.inbox["progress"], self._arrays.inbox["env_steps"] = progress.share, progress.env_steps
        if self._hogwild:
            follow_workers(self.master, self._arrays, progress)

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
        self._record_buffer.env_steps = totals.env_steps

    # Gradients

    def _collect(self) -> None:
        """Take over what has arrived, as far as the queue allows; block if there is nothing at all to do."""
        inbox, queue = self.inbox, self._queue
        self._throttle.give(queue.unserved)
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
        elif self.worker_manager.is_current(slot, received[0].generation):
            self._take_over(slot, *received)
            totals.sent += 1
        self.inbox.accept(slot)

    def _take_over(self, slot: int, message: Message, episodes: tuple[Episode, ...], gradient: Vector) -> None:
        self.pool.members[slot].heard_s = message.finished_s
        for _ in episodes:
            self.worker_manager.quota.end(slot)
            self.worker_manager.grant_next(slot)
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
        return takeable(self._rules, self._queue, self.worker_manager)

    def _has_rest(self) -> bool:
        """Return whether there is a batch to which nobody will add any more."""
        return self._queue.has_rest(self.worker_manager, self._waits_for_apply) and not self.inbox.pending().size

    def _take_up(self, taken: list[tuple[Arrival, Vector]]) -> None:
        """Deal with what was taken from the queue: at once, unless that is to take its time."""
        self._learn(taken, self.clock_s)

    def _learn(self, taken: list[tuple[Arrival, Vector]], taken_s: float) -> None:
        """Let the learner have what was taken, or make do with what it has kept; publish what comes of it."""
        version, queue = self.master.version, self._queue
        pulled = [(arrival.message.version_pulled, vector) for arrival, vector in taken]
        result = self._remedies.apply(self._rules.combine, pulled, self._record_buffer.progress())
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
        if self._waits_for_apply and self.worker_manager.is_current(arrival.slot, arrival.message.generation):
            self.inbox.mark_served(arrival.slot)

    # Records and schedule

    def _note(
        self, arrival: Arrival, status: Status, version: int | None = None, staleness: int = 0, norm: float = math.nan
    ) -> None:
        """Note what became of an arrival. Writing it up can wait: others wait for the master."""
        version = self.master.version if version is None else version
        dealt = Dealt(arrival, status, self.clock_s, self._busy_s, self.worker_manager.alive, version, staleness, norm)
        self._record_buffer.note(dealt)
        if len(self._record_buffer) >= self.write_up_after:
            self.settle()

    def _count(self, slot: int, episodes: tuple[Episode, ...]) -> None:
        """Remember which episodes are recorded, then let the schedule have its way."""
        self.recorded[slot] = max(self.recorded[slot], *(episode.number + 1 for episode in episodes))
        alive = self.worker_manager.alive
        if (target := self.log.target_workers(alive, len(self._queue))) != alive:
            self.worker_manager.change(target)

    def _replace_lost(self) -> None:
        served_later = self._queue.arrivals() if self._waits_for_apply else []
        for loss in self.worker_manager.lost(waiting_slots(served_later, self.worker_manager)):
            while self.inbox.holds(loss.slot):  # what it had handed over is not lost
                self._accept(loss.slot)
            if not self.worker_manager.replace(loss):
                continue
            totals, restarts = self.log.totals, self.config.restarts
            totals.crashes += 1
            if totals.crashes > restarts:
                raise RunFailed(f"worker {loss.slot}: {loss.reason} (lost worker {totals.crashes}, {restarts} allowed)")
            self.worker_manager.spawn(loss.slot)
