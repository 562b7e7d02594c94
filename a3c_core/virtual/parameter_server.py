"""A parameter server in shards: the parameters in k parts, each with a server, a queue and a version of its own.

A gradient is cut into parts; each server applies its own when it can. So what somebody pulls may be of mixed versions:
a parcel's staleness is that of the part that waited longest, and a parcel is dealt with when its last part is. Whether
it is too old is judged once, when the first of its parts is taken up, so that all parts have the same fate.

What is assumed of costs: a server's work on its part takes the time of a whole update times
`fixed + (1 - fixed) * its share of the parameters`; `fixed` is what does not depend on size.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from a3c_core.episode_log import EpisodeLog, Parcel
from a3c_core.learners.base import Learner
from a3c_core.models.parameters import Vector
from a3c_core.optimizers import Optimizer, global_norm
from a3c_core.progress import Progress
from a3c_core.records.tables import Status
from a3c_core.runtime import Arrays, Saved
from a3c_core.topologies.parcel_queue import ParcelQueue
from a3c_core.topologies.sharded import ServersConfig
from a3c_core.virtual.costs import CostProfile
from a3c_core.virtual.timeline import MASTER, Timeline

UPDATED = "updated"


@dataclass
class Pending:
    """A parcel of which some parts have not been dealt with."""

    parcel: Parcel
    pulled: list[int]  # versions that its sender held, by shard
    norm: float  # of the whole gradient
    left: int  # parts
    loss: float  # that it was made from, where its sender tells
    staleness: int = 0  # of the part that waited longest, so far
    is_late: bool = False

    @property
    def status(self) -> Status:
        """What became of it."""
        if self.is_late:
            return "dropped"
        return "applied" if math.isfinite(self.norm) else "rejected"

    def save(self) -> dict[str, Any]:
        """Return it for JSON, which knows no NaN."""
        return {**vars(self), "parcel": self.parcel.save(), "norm": str(self.norm), "loss": str(self.loss)}

    @classmethod
    def restored(cls, saved: dict[str, Any]) -> "Pending":
        """Return what `save` saw."""
        numbers = {name: float(saved[name]) for name in ("norm", "loss")}
        return cls(**{**saved, **numbers, "parcel": Parcel.restored(saved["parcel"])})


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


class ParameterServer:
    """k servers, each first-in-first-out."""

    def __init__(
        self,
        learner: Learner,
        servers: ServersConfig,
        profile: CostProfile,
        timeline: Timeline,
        log: EpisodeLog,
        progress: Callable[[int], Progress],
        on_settled: Callable[[Pending], None],
        bound: int | None = None,
    ):
        """`bound`: staleness that is borne. What `on_settled` gets is dealt with; its sender may go on."""
        self._learner, self._profile, self._timeline, self._log = learner, profile, timeline, log
        self._config, self._bound = servers, bound
        self._progress, self._on_settled = progress, on_settled
        self._whole: Optimizer = learner.optimizer
        size = learner.parameters.size
        count = min(servers.shards, size)
        cuts = itertools.pairwise(size * shard // count for shard in range(count + 1))
        self._servers = [
            Server(MASTER - shard, slice(*cut), learner.parameters, self._whole) for shard, cut in enumerate(cuts)
        ]
        self._pending: dict[int, Pending] = {}  # by number
        self._next_number = 0

    @property
    def waiting(self) -> int:
        """Parts that wait for the server with the longest queue."""
        return max(len(server.queue) for server in self._servers)

    def versions(self) -> list[int]:
        """Return each shard's version."""
        return [server.optimizer.updates for server in self._servers]

    def push(self, parcel: Parcel, pulled: list[int], gradient: Vector, loss: float = math.nan) -> None:
        """Let every part of a parcel reach its server's queue."""
        number = self._next_number
        self._next_number += 1
        self._pending[number] = Pending(parcel, pulled, global_norm(gradient), len(self._servers), loss)
        for server in self._servers:
            server.queue.append(number, gradient[server.part])
        totals = self._log.totals
        totals.queue_peak = max(totals.queue_peak, self.waiting)
        for server in self._servers:
            self._look(server, idle=True)

    def updated(self, station: int) -> None:
        """A server is done with what it has taken up."""
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

    def _look(self, server: Server, idle: bool) -> None:
        if server.serving is not None or not len(server.queue):
            return
        number, part = server.queue.popleft()
        server.serving = number, part
        pending, optimizer = self._pending[number], server.optimizer
        if not pending.parcel.taken_s:  # the first of its parts
            pending.parcel.taken_s = self._timeline.now_s
            age = optimizer.updates - pending.pulled[MASTER - server.station]
            pending.is_late = self._bound is not None and age > self._bound
        seconds = self._profile.discard_s(idle) if pending.is_late else self._profile.service_s(0, idle)
        seconds *= self._config.cost_share(server.parameters.size / self._learner.parameters.size)
        served = optimizer.updates + optimizer.rejected
        self._log.totals.master_busy_s += self._timeline.work(seconds, server.station, UPDATED, served)

    def _apply(self, server: Server, part: Vector, pending: Pending) -> None:
        """Apply a part as the whole gradient's length says: whether it is finite, and how much it is clipped."""
        norm, progress = pending.norm, self._progress(pending.parcel.worker)
        if pending.status != "applied":
            server.optimizer.rejected += 1
            return
        clip_norm = self._whole.clip_norm
        scale = np.float32(min(1.0, clip_norm / norm) if norm > 0 else 1.0)
        server.optimizer.apply(server.parameters, part * scale, progress.share)
        self._whole.updates = min(server.optimizer.updates for server in self._servers)

    def _settle(self, number: int) -> None:
        pending = self._pending.pop(number)
        self._whole.rejected += pending.status == "rejected"
        self._learner.follow(self._progress(pending.parcel.worker))
        self._on_settled(pending)

    # State

    def save(self) -> Saved:
        """Return the state of all servers."""
        shards, arrays = [], {}
        for shard, server in enumerate(self._servers):
            if server.serving is not None:
                arrays[f"shard{shard}_serving"] = server.serving[1]
            serving = None if server.serving is None else server.serving[0]
            optimizer = server.optimizer
            shards.append([optimizer.updates, optimizer.rejected, serving, server.queue.items()])
        numbers = {
            "shards": shards,
            "pending": {number: one.save() for number, one in self._pending.items()},
            "next_number": self._next_number,
        }
        streams = {f"shard{i}.f32": server.queue.write_gradients for i, server in enumerate(self._servers)}
        return Saved(numbers, {**arrays}, {**streams})

    def restore(self, numbers: dict[str, Any], arrays: Arrays, folder: Path) -> None:
        self._next_number = numbers["next_number"]
        for number, saved in numbers["pending"].items():
            self._pending[int(number)] = Pending.restored(saved)
        for shard, (server, saved) in enumerate(zip(self._servers, numbers["shards"], strict=True)):
            server.optimizer.updates, server.optimizer.rejected, serving, items = saved
            if serving is not None:
                server.serving = serving, np.array(arrays[f"shard{shard}_serving"])
            with (folder / f"shard{shard}.f32").open("rb") as file:
                server.queue.restore(items, file)
