"""The `sharded` topology: the parameters in k parts, each with a server of its own (Dean et al. 2012).

A gradient is cut into parts; each server queues its own, applies them when it can, and counts its own version. So what
a worker pulls may be of mixed versions: a record's version is the oldest of them, its staleness that of the part that
waited longest. A parcel is dealt with when its last part is.

What is assumed of costs: a server's work on its part takes the time of a whole update times
`fixed + (1 - fixed) * its share of the parameters`; `fixed` is what does not depend on size.
"""

import itertools
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from a3c_core.episode_log import Parcel
from a3c_core.learners.optimizers import Optimizer, global_norm
from a3c_core.models.parameters import Vector
from a3c_core.runtime import Arrays, Saved
from a3c_core.section import Section
from a3c_core.topologies.base import Arrow, Description
from a3c_core.topologies.parcel_queue import ParcelQueue
from a3c_core.topologies.workers import Publication, WorkerSlot, WorkerTopology, parcel_from
from a3c_core.virtual.timeline import MASTER

UPDATED = "updated"


class ShardsConfig(Section):
    """How many servers there are, and what each costs."""

    shards: int = Field(2, ge=1, le=1_024, description="parts of the parameters, each with its own server")
    fixed: float = Field(0.0, ge=0, le=1, description="share of an update's cost that does not depend on its size")
    pull: Literal["at_once", "after_apply"] = Field(
        "at_once", description="when a worker takes new parameters: without waiting, or after its gradient was applied"
    )


@dataclass
class Pending:
    """A parcel of which some parts have not been dealt with."""

    parcel: Parcel
    pulled: list[int]  # versions that its worker held, by shard
    norm: float  # of the whole gradient
    left: int  # parts
    staleness: int = 0  # of the part that waited longest, so far


class Server:
    """One shard: a part of the parameters, the moving averages that belong to it, and a queue."""

    def __init__(self, station: int, part: slice, parameters: Vector, whole: Optimizer):
        self.station, self.parameters = station, parameters[part]
        self.part = part
        self.queue = ParcelQueue(self.parameters.size)
        self.serving: tuple[int, Vector] | None = None  # the parcel's number, and its part
        self.optimizer = Optimizer(0, whole.name, whole.initial_rate, epsilon=whole.epsilon, decay=whole.decay)
        self.optimizer.slots, self.optimizer.anneal = whole.slots[:, part], whole.anneal
        self.optimizer.updates = whole.updates


class ShardedTopology(WorkerTopology):
    """N workers and k servers, each first-in-first-out."""

    description = Description(
        ("N workers", "k queues", "k servers"),
        (
            Arrow("N workers", "k queues", "gradients\nin k parts"),
            Arrow("k queues", "k servers", "the oldest part"),
            Arrow("k servers", "N workers", "parameters, perhaps of mixed versions"),
        ),
    )
    Settings = ShardsConfig

    def __init__(self, *parts: Any):
        super().__init__(*parts)
        exchange, size = self.config.exchange, self.learner.parameters.size
        shards = min(exchange.shards, size)
        self._waits_for_apply = exchange.pull == "after_apply"
        self._whole: Optimizer = self.learner.optimizer
        cuts = [size * shard // shards for shard in range(shards + 1)]
        parts_of = [slice(*cut) for cut in itertools.pairwise(cuts)]
        self._servers = [
            Server(MASTER - shard, part, self.learner.parameters, self._whole) for shard, part in enumerate(parts_of)
        ]
        self._pulled: dict[int, list[int]] = {}  # versions that workers hold, by shard
        self._pending: dict[int, Pending] = {}  # by number
        self._next_number = 0
        self.handlers[UPDATED] = self._updated

    @property
    def waiting(self) -> int:
        return max(len(server.queue) for server in self._servers)

    # Workers

    def pull(self, slot: WorkerSlot) -> bool:
        self._pulled[slot.worker.id] = [server.optimizer.updates for server in self._servers]
        slot.held = Publication(self.learner.version, self.learner.publication)
        return True

    def left(self, worker: int) -> None:
        self._pulled.pop(worker, None)

    def played(self, slot: WorkerSlot, parcel: Parcel, gradient: Vector) -> None:
        """Every part of the parcel reaches its server's queue."""
        number, worker = self._next_number, slot.worker.id
        self._next_number += 1
        self._pending[number] = Pending(parcel, self._pulled[worker], global_norm(gradient), len(self._servers))
        for server in self._servers:
            server.queue.append(number, gradient[server.part])
        totals = self.log.totals
        totals.queue_peak = max(totals.queue_peak, self.waiting)
        for server in self._servers:
            self._look(server, idle=True)
        if self._waits_for_apply:
            slot.waits += 1
        else:
            self.begin(worker)

    # Servers

    def _look(self, server: Server, idle: bool) -> None:
        if server.serving is not None or not len(server.queue):
            return
        number, part = server.queue.popleft()
        server.serving = number, part
        pending = self._pending[number]
        if not pending.parcel.taken_s:  # the first of its parts
            pending.parcel = pending.parcel._replace(taken_s=self.timeline.now_s)
        fixed, share = self.config.exchange.fixed, server.parameters.size / self.learner.parameters.size
        seconds = self.profile.service_s(0, idle) * (fixed + (1.0 - fixed) * share)
        optimizer = server.optimizer
        served = optimizer.updates + optimizer.rejected
        self.log.totals.master_busy_s += self.timeline.work(seconds, server.station, UPDATED, served)

    def _updated(self, station: int) -> None:
        shard = MASTER - station
        server = self._servers[shard]
        assert server.serving is not None
        (number, part), server.serving = server.serving, None
        pending = self._pending[number]
        pending.staleness = max(pending.staleness, server.optimizer.updates - pending.pulled[shard])
        pending.left -= 1
        self._apply(server, part, pending)
        if not pending.left:
            self._settle(number)
        self._look(server, idle=False)

    def _apply(self, server: Server, part: Vector, pending: Pending) -> None:
        """Apply a part as the whole gradient's length says: whether it is finite, and how much it is clipped."""
        norm, progress = pending.norm, self.progress(pending.parcel.worker)
        if not math.isfinite(norm):
            server.optimizer.rejected += 1
            return
        clip_norm = self._whole.clip_norm
        scale = np.float32(min(1.0, clip_norm / norm) if norm > 0 else 1.0)
        server.optimizer.apply(server.parameters, part * scale, progress.share)
        self._whole.updates = min(server.optimizer.updates for server in self._servers)

    def _settle(self, number: int) -> None:
        pending = self._pending.pop(number)
        applied = math.isfinite(pending.norm)
        self._whole.rejected += not applied
        self.learner.follow(self.progress(pending.parcel.worker))
        self.settle(pending.parcel, "applied" if applied else "rejected", pending.staleness, pending.norm)
        if self._waits_for_apply:
            self.begin(pending.parcel.worker)

    # State

    def save(self) -> Saved:
        numbers, arrays, _ = super().save()
        shards = []
        for shard, server in enumerate(self._servers):
            if server.serving is not None:
                arrays[f"shard{shard}_serving"] = server.serving[1]
            serving = None if server.serving is None else server.serving[0]
            optimizer = server.optimizer
            shards.append([optimizer.updates, optimizer.rejected, serving, server.queue.items()])
        pending = {number: asdict(one) for number, one in self._pending.items()}
        numbers |= {"shards": shards, "pending": pending, "pulled": self._pulled, "next_number": self._next_number}
        queues = [server.queue for server in self._servers]
        return Saved(numbers, arrays, {f"shard{i}.f32": queue.write_gradients for i, queue in enumerate(queues)})

    def restore(self, numbers: dict[str, Any], arrays: Arrays, folder: Path) -> None:
        super().restore(numbers, arrays, folder)
        self._next_number = numbers["next_number"]
        self._pulled = {int(worker): versions for worker, versions in numbers["pulled"].items()}
        for number, saved in numbers["pending"].items():
            self._pending[int(number)] = Pending(**{**saved, "parcel": parcel_from(saved["parcel"])})
        for shard, (server, saved) in enumerate(zip(self._servers, numbers["shards"], strict=True)):
            server.optimizer.updates, server.optimizer.rejected, serving, items = saved
            if serving is not None:
                server.serving = serving, np.array(arrays[f"shard{shard}_serving"])
            with (folder / f"shard{shard}.f32").open("rb") as file:
                server.queue.restore(items, file)
