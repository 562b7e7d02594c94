"""The `sharded` topology: workers hand gradients to a parameter server in shards (Dean et al. 2012).

A record's version is the oldest of the shards' that its worker pulled, its staleness that of the part that waited
longest.
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from a3c_core.episode_log import Parcel
from a3c_core.models.parameters import Vector
from a3c_core.runtime import Arrays, Saved
from a3c_core.topologies.base import Arrow, Description
from a3c_core.topologies.exchange import ExchangeConfig
from a3c_core.topologies.parameter_server import UPDATED, ParameterServer, Pending, ServersConfig
from a3c_core.topologies.workers import WorkerSlot, WorkerTopology
from a3c_core.virtual.timeline import MASTER


class ShardsConfig(ServersConfig):
    """A parameter server's settings, and when workers pull."""

    pull: Literal["at_once", "after_apply"] = Field(
        "at_once", description="when a worker takes new parameters: without waiting, or after its gradient was applied"
    )

    @property
    def gradients(self) -> ExchangeConfig:
        """How gradients come to the servers."""
        return ExchangeConfig(pull=self.pull, queue="unbounded")

    @property
    def why_not_real(self) -> str:
        """What keeps real workers from having servers: their master is one process."""
        return "topology sharded is for virtual time: real workers have one master, and its shards would take turns"


class ShardedTopology(WorkerTopology):
    """N workers and k servers."""

    description = Description(
        ("N workers", "k queues", "k servers"),
        (
            Arrow("N workers", "k queues", "gradients\nin k parts"),
            Arrow("k queues", "k servers", "the oldest part"),
            Arrow("k servers", "N workers", "parameters, perhaps of mixed versions"),
        ),
    )
    Settings = ShardsConfig

    @classmethod
    def service_s(cls, exchange: Any, learning_s: float, writing_s: float) -> float:
        """Return a server's work on its part; nobody writes anything up."""
        return learning_s * exchange.cost_share(1.0 / exchange.shards)

    def __init__(self, *of_run: Any):
        super().__init__(*of_run)
        exchange = self.config.exchange
        self._waits_for_apply = exchange.pull == "after_apply"
        parts = self.learner, exchange, self.profile, self.timeline, self.log
        self._server = ParameterServer(*parts, self.progress, self._settled)
        self._pulled: dict[int, list[int]] = {}  # versions that workers hold, by shard
        self.handlers[UPDATED] = self._server.updated

    @property
    def waiting(self) -> int:
        return self._server.waiting

    def pull(self, slot: WorkerSlot) -> bool:
        self._pulled[slot.worker.id] = self._server.versions()
        self.give_latest(slot)
        return True

    def left(self, worker: int) -> None:
        self._pulled.pop(worker, None)

    def played(self, slot: WorkerSlot, parcel: Parcel, gradient: Vector) -> None:
        worker = slot.worker.id
        self._server.push(parcel, self._pulled[worker], gradient)
        if self._waits_for_apply:
            slot.waits += 1
        else:
            self.begin(worker)

    def _settled(self, pending: Pending) -> None:
        self.settle(pending.parcel, pending.status, pending.staleness, pending.norm)
        if self._waits_for_apply:
            self.begin(pending.parcel.worker)

    def who(self, station: int) -> tuple[str, int]:
        return ("worker", station) if station > MASTER else ("server", MASTER - station)

    # State

    def save(self) -> Saved:
        numbers, arrays, _ = super().save()
        its_numbers, its_arrays, streams = self._server.save()
        return Saved({**numbers, **its_numbers, "pulled": self._pulled}, {**arrays, **its_arrays}, streams)

    def restore(self, numbers: dict[str, Any], arrays: Arrays, folder: Path) -> None:
        super().restore(numbers, arrays, folder)
        self._pulled = {int(worker): versions for worker, versions in numbers["pulled"].items()}
        self._server.restore(numbers, arrays, folder)
