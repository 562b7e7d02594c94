"""The master's loop where gradients need no queue of their own: what waits in the workers' rings is dealt with at once.

`RealRuntime` can do all that a run may ask of its master; this one is for what most runs ask, at a fraction of the
time: one compiled call for all gradients that wait (`direct_kernel`), no Python for each, and records in blocks.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from a3c_core.config import RunConfig
from a3c_core.learners.base import Learner
from a3c_core.learners.gradients import GradientLearner
from a3c_core.progress import Progress
from a3c_core.real.direct_kernel import Learning, Rings, deal, new_board
from a3c_core.real.pool import Pool
from a3c_core.real.runtime import LOOK_S, RealRuntime
from a3c_core.real.shared_memory import SharedArrays
from a3c_core.results.blocks import APPLIED, BLOCK_RECORDS, RecordBlock, one_record, update_table
from a3c_core.runtime import Arrays
from a3c_core.topologies.exchange import ExchangeConfig
from a3c_core.virtual.costs import CostProfile

_TOTALS = ("env_steps", "sent", "applied", "rejected", "queue_peak")
_PLAIN = ExchangeConfig()
_FREE = {"channel", "queue_size", "combine", "beyond"}  # settings that change nothing here


def is_direct(config: RunConfig, learner: Learner) -> bool:
    """Return whether a run's master needs neither a queue nor anything else between the rings and the optimizer."""
    exchange, plain = config.exchange.model_dump(exclude=_FREE), _PLAIN.model_dump(exclude=_FREE)
    fixed = config.span.start == config.span.end
    local = config.runtime in ("processes", "threads") and sys.platform == "linux"
    gradients = type(learner) is GradientLearner and config.agents_per_worker <= BLOCK_RECORDS
    return local and fixed and gradients and config.topology == "master" and exchange == plain


class DirectRuntime(RealRuntime):
    """A run on the real clock whose gradients go from the rings straight to the parameters."""

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

    def open(self, pool: Pool) -> None:
        super().open(pool)
        numbers, totals, slots = self._numbers, self.log.totals, self._slots
        for name in _TOTALS:
            numbers[name] = getattr(totals, name)
        numbers["version"], numbers["episodes"] = self.master.version, self.log.episodes
        self._board.recorded[:] = self.recorded
        arrays = self._arrays
        places = arrays.messages, arrays.episodes, arrays.gradients
        self._rings = Rings(slots["sent"], self.inbox.taken, slots["generation"], *places)

    def restore(self, numbers: dict[str, Any], arrays: Arrays, folder: Path) -> None:
        super().restore(numbers, arrays, folder)
        self._board.recorded[:] = self.recorded

    def settle(self) -> None:
        """Hand what was written down to whoever keeps it, and tell the workers how far the run has come."""
        numbers, totals, board = self._numbers, self.log.totals, self._board
        totals.master_busy_s, self._outcomes.env_steps = self._busy_s, totals.env_steps
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
        """Deal with what has arrived; block if there is nothing."""
        if self.inbox.pending().size or self.inbox.wait(LOOK_S).size:
            self._deal()

    def _accept(self, slot: int) -> None:
        """Deal with what `slot` holds, and all others."""
        self._deal()

    def _deal(self) -> None:
        numbers, inbox, learner = self._numbers, self.inbox, self.master
        numbers["offset_s"], numbers["alive"] = self.elapsed_s - self._started_s, self.roster.alive
        numbers["busy_s"], numbers["awake_since_s"] = self._busy_s + inbox.busy_s, inbox.awake_since_s
        left = deal(self._rings, self._learning, self._board)
        self._busy_s += inbox.count_busy()
        learner.optimizer.updates, learner.optimizer.rejected = int(numbers["version"]), int(numbers["rejected"])
        self.log.episodes = int(numbers["episodes"])
        for name in _TOTALS:
            setattr(self.log.totals, name, numbers[name].item())
        inbox.accept_taken()
        inbox.show_room(self._capacity - left)
        self._grant()
        if max(numbers["updates"], numbers["records"]) > BLOCK_RECORDS // 2:
            self.settle()

    def _grant(self) -> None:
        """Grant as many episodes as have ended; whoever waits for that is woken."""
        ended, grants = self._board.ended, self.roster.grants
        for slot in ended.nonzero()[0].tolist():
            grants.end(slot, int(ended[slot]))
            self.roster.grant_more(slot)
        ended[:] = 0

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
