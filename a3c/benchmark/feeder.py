"""A real run's master without workers: this process itself fills its slots, so that it always finds a gradient."""

import multiprocessing
import time
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from a3c_core.build import new_learner
from a3c_core.config import ExchangeConfig, RunConfig
from a3c_core.models.parameters import Vector
from a3c_core.real.direct import DirectRuntime, is_direct
from a3c_core.real.local_pool import Member
from a3c_core.real.master import RealRuntime
from a3c_core.real.shared_memory import RING_SIZE, Message, SharedArrays
from a3c_core.real.transport import letter_of
from a3c_core.real.worker_pool import NO_BELL
from a3c_core.records.tables import RecordWriter
from a3c_core.virtual.costs import load_profile
from a3c_core.worker import Episode

EXCHANGES: dict[str, dict[str, Any]] = {  # settings of a run
    "shared": {"exchange": ExchangeConfig()},
    "queue": {"exchange": ExchangeConfig(transport="queue", channel="mailbox")},
    "hogwild": {"topology": "hogwild"},
}
_SEED = 24
_ROUNDS = 150  # in one look; with them comes, now and then, the bringing of records to their table


class Feeder:
    """Stands where the pool of a run stands; each slot is filled to the brim when asked."""

    bell = NO_BELL

    def __init__(self, arrays: SharedArrays, slots: int, pipes: bool):
        self._arrays = arrays
        self._message = Message(0, 62, 0.0, episodes=1)
        self._episode = Episode(0, 0.0, 0, -5.0, 62, False, 0.0, 0.7)  # an untrained bird's
        size = arrays.gradients.shape[-1]
        self._gradient: Vector = np.random.default_rng(_SEED).standard_normal((size,), np.float32)
        arrays.gradients[...] = self._gradient
        arrays.messages[...] = self._message
        arrays.episodes[...] = self._episode
        self._gradient_ends: list[Connection] = []
        self.members = {slot: self._new_member(slot, pipes) for slot in range(slots)}

    def feed(self) -> int:
        """Fill all slots, which are empty; return how many gradients wait now."""
        for gradients in self._gradient_ends:
            for _ in range(RING_SIZE):
                gradients.send(letter_of(self._message, (self._episode,), self._gradient))
        self._arrays.slots["sent"] += RING_SIZE
        return len(self._arrays.slots) * RING_SIZE

    def empty_mailboxes(self) -> None:
        """Do what workers do when they take over parameters."""
        self._arrays.slots["mail_taken"] = self._arrays.slots["mail_sent"]

    def close(self) -> None:
        for member in self.members.values():
            if member.gradients is not None:
                member.gradients.close()
        for connection in self._gradient_ends:
            connection.close()

    def look(self) -> None:
        """All that arrives is in the slots."""

    def wait(self, limit_s: float) -> None:
        """Nobody has to wait here."""

    def spawn(self, slot: int, episode: int) -> None:
        """Nobody is spawned."""

    def remove(self, slot: int) -> None:
        """Nobody is lost."""

    def wake(self, slot: int) -> None:
        """Nobody waits."""

    def lost(self) -> tuple[()]:
        """Nobody is lost."""
        return ()

    def _new_member(self, slot: int, pipes: bool) -> Member:
        if not pipes:
            return Member(slot, body=None, wake=-1)
        gradients, theirs = multiprocessing.Pipe(duplex=False)
        self._gradient_ends.append(theirs)
        return Member(slot, None, -1, gradients)


class FedMaster:
    """A master on `transport` that can be driven as fast as it goes, records included."""

    def __init__(self, transport: str, slots: int = 4):
        config = RunConfig(workers=str(slots), episodes=10**9, runtime="processes", seed=_SEED, **EXCHANGES[transport])
        parts, writer = (config, load_profile("uniform"), new_learner(config)), RecordWriter()
        self.runtime: RealRuntime = (
            DirectRuntime(*parts, lambda block: writer.extend(block.table()))
            if is_direct(config, parts[-1])
            else RealRuntime(*parts, writer.append)
        )
        self._feeder = Feeder(self.runtime.block.arrays, slots, pipes=transport == "queue")
        self.runtime.open(self._feeder)

    def update_s(self, seconds: float) -> float:
        """Return the seconds of a core that one gradient costs, all in all, by the best of several looks."""
        self._round()  # fills caches
        looks: list[float] = []
        began_s = time.perf_counter()
        while time.perf_counter() - began_s < seconds or len(looks) < 2:
            looks.append(self._look())
        return min(looks)

    def post_s(self) -> float:
        """Return the seconds that it takes to put parameters into one mailbox."""
        taken: list[float] = []
        for _ in range(_ROUNDS):
            self._feeder.empty_mailboxes()
            began_s = time.process_time()
            self.runtime.inbox.post(0, self.runtime.master)
            taken.append(time.process_time() - began_s)
        return float(np.median(taken))

    def close(self) -> None:
        self._feeder.close()
        self.runtime.block.close()

    def _look(self) -> float:
        """Return the seconds per gradient over many rounds, all of it written up."""
        spent_s = sum(self._round() for _ in range(_ROUNDS))
        began_s = time.process_time()
        self.runtime.settle()
        return (spent_s + time.process_time() - began_s) / (_ROUNDS * self._gradients)

    def _round(self) -> float:
        """Let the master empty all slots; return the seconds that it took."""
        self._feeder.empty_mailboxes()
        self._gradients = self._feeder.feed()
        done = self.runtime.log.totals.sent + self._gradients
        began_s = time.process_time()  # not disturbed by other programs
        while self.runtime.log.totals.sent < done or self.runtime.waiting:
            self.runtime.step()
        return time.process_time() - began_s
