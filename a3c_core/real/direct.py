"""The master's loop where gradients need no queue of their own: what waits in the workers' rings is dealt with at once.

`RealRuntime` can do all that a run may ask of its master; this one is for what most runs ask, at a fraction of the
time: its loop is one compiled call (`direct_kernel`), no Python for each gradient, and records in blocks.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from a3c_core.algorithms import statistics_of
from a3c_core.config import RunConfig
from a3c_core.learners.base import Learner
from a3c_core.learners.gradients import GradientLearner
from a3c_core.progress import Progress
from a3c_core.real.direct_kernel import Learning, Rings, attend, new_board
from a3c_core.real.master import LOOK_S, RealRuntime
from a3c_core.real.shared_memory import RING_SIZE, SharedArrays
from a3c_core.real.worker_pool import NO_BELL, Pool
from a3c_core.records.blocks import APPLIED, BLOCK_RECORDS, RecordBlock, one_record, update_table
from a3c_core.runtime import Arrays
from a3c_core.system.cores import cores
from a3c_core.topologies.exchange import ExchangeConfig
from a3c_core.virtual.costs import CostProfile

_TOTALS = ("env_steps", "sent", "applied", "rejected", "queue_peak")
_NAP_S = 3e-3  # the longest
_NAP_ROUNDS = 1 / 3  # gradients that may come together in a nap, for each worker
_NAP_RINGS = 1 / 2  # and of their rings, for each core: a worker whose ring is full has to wait for the master
_PLAIN = ExchangeConfig()
_FREE = {"channel", "queue_size", "combine", "beyond"}  # settings that change nothing here


def is_direct(config: RunConfig, learner: Learner) -> bool:
    """Return whether a run's master needs neither a queue nor anything else between the rings and the optimizer."""
    exchange, plain = config.exchange.model_dump(exclude=_FREE), _PLAIN.model_dump(exclude=_FREE)
    fixed = config.span.start == config.span.end
    local = config.runtime in ("processes", "threads") and sys.platform == "linux"
    gradients = type(learner) is GradientLearner and config.agents_per_worker <= BLOCK_RECORDS
    gradients = gradients and not statistics_of(config.algorithm)  # which its records have no room for
    return local and fixed and gradients and config.topology == "master" and exchange == plain


class DirectRuntime(RealRuntime):
    """A run on the real clock whose gradients go from the rings straight to the parameters."""

    write_up_after = BLOCK_RECORDS // 2  # or more: what came at once is dealt with at once

    def __init__(
        self,
        config: RunConfig,
        profile: CostProfile,
        master: Learner,
        on_block: Callable[[RecordBlock], None],
        run: str = "run",
        on_updates: Callable[[pa.Table], None] | None = None,
    ):
        super().__init__(config, profile, master, lambda record: None, run)
        self._on_block, self._on_updates, self._run = on_block, on_updates, run
        self._board = new_board(len(self._slots))
        self._numbers = self._board.numbers[0]
        self._learning = _learning(config, master, self._arrays)
        self._are_crowded = config.span.end > cores() and not config.environment.wait_s
        self._counted, self._counted_s = 0, time.monotonic()  # messages, and when

    def open(self, pool: Pool) -> None:
        super().open(pool)
        numbers, totals, slots = self._numbers, self.log.totals, self._slots
        for name in _TOTALS:
            numbers[name] = getattr(totals, name)
        numbers["version"], numbers["episodes"] = self.master.version, self.log.episodes
        self._board.recorded[:] = self.recorded
        arrays = self._arrays
        counts = slots["sent"], self.inbox.taken, slots["accepted"], slots["waiting"], slots["generation"]
        places = arrays.messages, arrays.episodes, arrays.gradients, arrays.inbox
        self._rings = Rings(*counts, *places, self.worker_manager.quota.counts)
        numbers["capacity"], numbers["bell"] = self._capacity, pool.bell

    def restore(self, numbers: dict[str, Any], arrays: Arrays, folder: Path) -> None:
        super().restore(numbers, arrays, folder)
        self._board.recorded[:] = self.recorded

    def settle(self) -> None:
        """Hand what was written down to whoever keeps it, and tell the workers how far the run has come."""
        numbers, totals, board = self._numbers, self.log.totals, self._board
        totals.master_busy_s, self._record_buffer.env_steps = self._busy_s, totals.env_steps
        self.recorded = board.recorded.tolist()
        updates, records = board.updates[: numbers["updates"]], board.records[: numbers["records"]]
        numbers["updates"] = numbers["records"] = 0
        totals.staleness.add_all(updates["staleness"][updates["status"] == APPLIED])
        if len(updates) and self._on_updates is not None:
            self._on_updates(update_table(updates))
        if len(records):
            self._on_block(RecordBlock(self._run, records))
        progress = Progress(self.log.episodes / self.config.episodes, totals.env_steps)
        self._arrays.inbox["progress"], self._arrays.inbox["env_steps"] = progress.share, progress.env_steps

    def _collect(self) -> None:
        """Deal with what arrives, and sleep in between, until it is time to look at the pool."""
        self._attend(self._looked_s + LOOK_S)

    def _accept(self, slot: int) -> None:
        """Deal with what `slot` holds, and all others."""
        self._attend(0.0)

    def _attend(self, until_s: float) -> None:
        numbers, inbox, optimizer = self._numbers, self.inbox, self.master.optimizer
        numbers["offset_s"], numbers["alive"] = self.elapsed_s - self._started_s, self.worker_manager.alive
        numbers["busy_s"], numbers["awake_since_s"] = self._busy_s + inbox.busy_s, inbox.awake_since_s
        numbers["until_s"], numbers["enough"] = until_s, self.write_up_after
        self._set_nap()
        self._board.buttons[:] = NO_BELL
        for slot, member in self.pool.members.items():
            self._board.buttons[slot] = member.wake
        attend(self._rings, self._learning, self._board)
        inbox.busy_s, inbox.awake_since_s = numbers["busy_s"].item() - self._busy_s, numbers["awake_since_s"].item()
        self._busy_s += inbox.count_busy()
        optimizer.updates, optimizer.rejected = int(numbers["version"]), int(numbers["rejected"])
        self.log.episodes = int(numbers["episodes"])
        for name in _TOTALS:
            setattr(self.log.totals, name, numbers[name].item())
        if max(numbers["updates"], numbers["records"]) >= self.write_up_after:
            self.settle()

    def _set_nap(self) -> None:
        """Let gradients come together where workers share cores: a master that wakes takes one from them."""
        now_s, sent = time.monotonic(), int(self._numbers["sent"])
        passed_s = now_s - self._counted_s
        if self._are_crowded and passed_s >= LOOK_S:
            every_s = passed_s / max(1, sent - self._counted)
            together = min(_NAP_ROUNDS * len(self._slots), _NAP_RINGS * RING_SIZE * cores())
            self._numbers["nap_us"] = 1e6 * min(_NAP_S, together * every_s)
            self._counted, self._counted_s = sent, now_s

    def _replace_lost(self) -> None:
        for slot, member in self.pool.members.items():
            member.heard_s = max(member.heard_s, float(self._board.heard_s[slot]))
        super()._replace_lost()


def _learning(config: RunConfig, learner: Learner, arrays: SharedArrays) -> Learning:
    optimizer = learner.optimizer
    given = {
        "update_rule": optimizer.rule,
        "learning_rate": float(optimizer.initial_rate),
        "anneal": optimizer.anneal,
        "clip_norm": float(optimizer.clip_norm),
        "epsilon": float(optimizer.epsilon),
        "decay": float(optimizer.decay),
        "episodes_in_all": config.episodes,
    }
    published = arrays.versions, arrays.current, arrays.parameters
    return Learning(learner.parameters, optimizer.slots, *published, one_record(given))
