"""Virtual time of `sharded`: workers hand gradients to a parameter server in shards."""

from pathlib import Path
from typing import Any

from a3c_core.episode_log import Parcel
from a3c_core.models.parameters import Vector
from a3c_core.runtime import Arrays, Saved
from a3c_core.virtual.parameter_server import UPDATED, ParameterServer, Pending
from a3c_core.virtual.timeline import MASTER
from a3c_core.virtual.workers import WorkerSlot, WorkerStations


class ShardStations(WorkerStations):
    """N workers and k servers."""

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
