"""The rollout queue as slow and obvious as can be: objects in lists, and a look at everything after every event."""

from dataclasses import dataclass, field

import numpy as np

from a3c.advise.simulator import DRAIN, IN_FLIGHT, System, draw


@dataclass
class Group:
    """Rollouts of one prompt."""

    pulled: int
    left: int
    arrived: int = 0


@dataclass
class Queue:
    """A system at work; numbers are drawn in the order in which rollouts and updates begin."""

    system: System
    cycle_factors: np.ndarray
    service_factors: np.ndarray
    seed: int = 1
    now_s: float = 0.0
    free: list[int] = field(default_factory=list)
    at_work: dict[int, tuple[float, Group]] = field(default_factory=dict)  # seconds left of each slot's rollout
    outside: list[Group] = field(default_factory=list)  # complete groups that wait for a place
    inside: list[Group] = field(default_factory=list)
    served: list[Group] = field(default_factory=list)  # those being learned from
    opened: Group | None = None
    not_begun: int = 0
    learner: str = "idle"
    left_s: float = 0.0  # of what the learner does
    version: int = 0
    published: int = 0
    syncs: int = 0
    batches: int = 0
    admitted: int = 0
    dropped: int = 0
    come: int = 0
    busy_s: float = 0.0
    stalenesses: list[int] = field(default_factory=list)
    before: list[int] = field(default_factory=list)

    def __post_init__(self):
        self.stream = np.array([self.seed], np.uint32)
        self.free = list(range(self.system.workers))
        self.needed = -(-self.system.batch // self.system.group)
        if self.system.waits:
            self.needed = min(self.needed, max(1, self.system.workers // self.system.group))
        self.places = max(1, self.system.queue // self.system.group) if self.system.queue else 10**9
        self.needed = min(self.needed, self.places)

    def paused(self) -> bool:
        syncing = self.learner == "syncing" and self.system.sync_mode not in (DRAIN, IN_FLIGHT)
        return syncing or (self.learner == "busy" and self.system.colocated)

    def held(self) -> int:
        """Return how many slots wait for groups that are complete."""
        groups = len(self.outside) + (len(self.inside) + len(self.served) if self.system.waits else 0)
        return self.system.group * groups

    def may_open(self) -> bool:
        system = self.system
        if system.staleness >= 0:
            if system.one_ahead:
                most = int(system.staleness * self.needed * system.sync_every) + self.needed * (self.batches + 1)
            else:
                rounds = system.sync_every * (self.syncs + 1)
                most = int(system.staleness * self.needed * system.sync_every) + self.needed * rounds
            if self.admitted + 1 > most:
                return False
        if system.in_flight:
            whole = {id(group) for _, group in self.at_work.values()}
            return system.group * len(whole) + system.group <= system.in_flight
        return True

    def begin(self) -> bool:
        """Let a free slot begin a rollout, if the rules allow it."""
        drains = self.learner == "draining" or (self.learner == "syncing" and self.system.sync_mode == DRAIN)
        if not self.free or drains or len(self.at_work) + self.held() >= self.system.workers:
            return False
        if self.not_begun == 0:
            if not self.may_open():
                return False
            self.opened = Group(self.published, self.system.group)
            self.not_begun = self.system.group
            self.admitted += 1
        self.not_begun -= 1
        seconds = self.system.cycle_s * draw(self.cycle_factors, self.stream)
        self.at_work[self.free.pop(0)] = (seconds, self.opened)
        return True

    def take(self) -> bool:
        """Let an idle learner take up a batch."""
        if self.learner != "idle" or len(self.inside) < self.needed:
            return False
        if self.system.drop_age >= 0:
            fresh = [group for group in self.inside if self.version - group.pulled <= self.system.drop_age]
            self.dropped += len(self.inside) - len(fresh)
            self.admitted -= len(self.inside) - len(fresh)
            self.inside = fresh
            if len(fresh) < self.needed:
                return True
        self.served, self.inside = self.inside[: self.needed], self.inside[self.needed :]
        self.batches += 1
        self.learner, self.left_s = "busy", self.system.service_s * draw(self.service_factors, self.stream)
        return True

    def enter(self) -> bool:
        """Let a complete group into the queue."""
        if not self.outside or (len(self.inside) >= self.places and not self.system.drops_oldest):
            return False
        if len(self.inside) >= self.places:
            self.inside.pop(0)
            self.dropped += 1
            self.admitted -= 1
        self.inside.append(self.outside.pop(0))
        self.come += 1
        return True

    def sync(self) -> None:
        if self.system.sync_s > 0:
            self.learner, self.left_s = "syncing", self.system.sync_s
        else:
            self.learner, self.published = "idle", self.version
            self.syncs += 1

    def step(self) -> None:
        """Go on to the next event, and let everything happen that it allows."""
        while self.enter() or self.begin() or self.take():
            pass
        generates = bool(self.at_work) and not self.paused()
        slot = min(self.at_work, key=lambda one: (self.at_work[one][0], one)) if generates else None
        rollout_s = self.at_work[slot][0] if slot is not None else np.inf
        learner_s = self.left_s if self.learner in ("busy", "syncing") else np.inf
        passed_s = min(rollout_s, learner_s)
        self.now_s += passed_s
        self.busy_s += passed_s * (self.learner == "busy")
        self.left_s -= passed_s
        if generates:
            self.at_work = {one: (left_s - passed_s, group) for one, (left_s, group) in self.at_work.items()}
        if learner_s <= rollout_s:
            self.learner_is_done()
        else:
            self.rollout_is_done(slot)

    def learner_is_done(self) -> None:
        if self.learner == "syncing":
            self.learner, self.published = "idle", self.version
            self.syncs += 1
            return
        self.stalenesses += [self.version - group.pulled for group in self.served]
        self.before += [group.arrived - group.pulled for group in self.served]
        self.served = []
        self.version += 1
        self.learner = "idle"
        if self.version % self.system.sync_every == 0:
            if self.system.sync_mode == DRAIN and self.at_work:
                self.learner = "draining"
            else:
                self.sync()

    def rollout_is_done(self, slot: int) -> None:
        _, group = self.at_work.pop(slot)
        group.left -= 1
        self.free.append(slot)
        if group.left == 0:
            group.arrived = self.version
            self.outside.append(group)
        if self.learner == "draining" and not self.at_work:
            self.sync()
