"""The `simulate` runtime where all of it can be compiled: `Simulation`'s fast twin."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from a3c_core.algorithms import statistics_of
from a3c_core.algorithms.base import LearnerSettings
from a3c_core.algorithms.values import ValueSettings
from a3c_core.build import make_engine
from a3c_core.config import RunConfig
from a3c_core.engines.compiled import CompiledEngine
from a3c_core.episode_log import EpisodeLog
from a3c_core.games.published import RESETS
from a3c_core.learners.base import Learner
from a3c_core.learners.target import TargetLearner
from a3c_core.records.blocks import APPLIED, STATUSES, RecordBlock, one_record, update_table
from a3c_core.records.tables import update_table_with
from a3c_core.runtime import Arrays, Saved
from a3c_core.schedules import rule_of
from a3c_core.streams import shared_actions
from a3c_core.topologies import TOPOLOGIES
from a3c_core.virtual.compiled import master
from a3c_core.virtual.compiled.queue_file import NAME, QueueFile
from a3c_core.virtual.compiled.state import (
    SAVED,
    Given,
    Player,
    State,
    blank_arrays,
    restored,
    with_room_for_twice,
    written_part,
)
from a3c_core.virtual.costs import BATCHED, FROM_TRAJECTORIES, CostProfile

_NO_LIMIT = 1 << 62
_LOOK_ENV_STEPS = 200_000  # about a tenth of a second
_FEWEST_EVENTS, _MOST_EVENTS = 64, 4096  # between two looks
_TOTALS = ("episodes_begun", "env_steps", "sent", "queue_peak", "master_busy_s", "last_arrival_s", *STATUSES)


class CompiledSimulation:
    """One run in virtual time."""

    def __init__(
        self,
        config: RunConfig,
        profile: CostProfile,
        learner: Learner,
        on_block: Callable[[RecordBlock], None],
        run: str = "run",
        on_updates: Callable[[pa.Table], None] | None = None,
    ):
        self.log = EpisodeLog(config.span, config.schedule, lambda record: None, run)
        self.steps_between_looks = 256
        self._learner, self._on_block, self._on_updates, self._run = learner, on_block, on_updates, run
        self._update_schema = update_table_with(statistics_of(config.algorithm)).schema
        engine = make_engine(config)
        assert isinstance(engine, CompiledEngine)
        self._state = _new_state(config, profile, learner, engine)
        self._player = Player(engine.settings, engine.buffers)
        self._file = QueueFile(learner.parameters.size)

    @property
    def clock_s(self) -> float:
        """Virtual seconds since the run began."""
        return float(self._state.numbers["now_s"][0])

    @property
    def overloaded(self) -> bool:
        return bool(self._state.numbers["overloaded"][0])

    def start(self, is_asked_to_stop: Callable[[], bool] = lambda: False) -> None:
        """Push the first events, unless there are some from a checkpoint."""
        self.advance(0)

    def advance(self, steps: int) -> bool:
        """Let `steps` events happen, or as many as there are; return whether there were so many."""
        self._state.numbers["version"] = self._learner.version
        if isinstance(self._learner, TargetLearner):
            self._state.numbers["target_set_at"] = self._learner.target_set_at
        left, env_steps, need = steps, self.log.totals.env_steps, None
        while need != master.NOTHING:
            done, need = master.advance(self._state, self._player, left)
            left -= done
            self._meet(need)
        self._hand_over()
        self._choose_looks(steps - left, self.log.totals.env_steps - env_steps)
        return not left

    def stop(self) -> dict[str, float]:
        """End the run; in virtual time nothing is left to end, and no worker's real time was counted."""
        return {}

    def save(self) -> Saved:
        """Return all that the run needs in order to go on to the same bytes."""
        arrays = {name: written_part(self._state, name) for name in SAVED}
        return Saved({"log": self.log.save()}, arrays, {NAME: self._file.write})

    def restore(self, numbers: dict[str, Any], arrays: Arrays, folder: Path) -> None:
        """Bring a fresh simulation to the state that `save` saw; `folder` holds the streams' files."""
        self.log.restore(numbers["log"])
        self._state = restored(self._state, arrays)
        self._file.restore(folder, int(self._state.numbers["spilled"][0]))

    def _meet(self, need: int) -> None:
        """Do what compiled code can't: files, and memory."""
        if need == master.RECORDS_TAKEN:
            self._hand_over()
        elif need == master.QUEUE_SPILLED:
            self._file.spill(self._state)
        elif need == master.QUEUE_REFILLED:
            self._file.refill(self._state)
        elif need == master.MORE_ROOM:
            self._state = with_room_for_twice(self._state)

    def _hand_over(self) -> None:
        """Bring the learner's counts, the totals and the records up to date."""
        numbers, totals, optimizer = self._state.numbers[0], self.log.totals, self._learner.optimizer
        optimizer.updates = int(numbers["version"])
        optimizer.rejected += int(numbers["rejected"]) - totals.rejected
        if isinstance(self._learner, TargetLearner):
            self._learner.target_set_at = int(numbers["target_set_at"])
        for name in _TOTALS:
            setattr(totals, name, numbers[name].item())
        updates = self._state.updates[: numbers["updates"]]
        totals.staleness.add_all(updates["staleness"][updates["status"] == APPLIED])
        self.log.episodes = int(numbers["episodes"])
        rows = self._state.records[: numbers["records"]]
        numbers["records"] = numbers["updates"] = 0
        if len(updates) and self._on_updates is not None:
            self._on_updates(update_table(updates, self._update_schema))
        if len(rows):
            self._on_block(RecordBlock(self._run, rows))

    def _choose_looks(self, events: int, env_steps: int) -> None:
        """Choose how many events take about a tenth of a second, going by the last ones."""
        enough = _LOOK_ENV_STEPS * events // max(env_steps, 1)
        most = min(2 * self.steps_between_looks, _MOST_EVENTS)
        self.steps_between_looks = min(max(enough, _FEWEST_EVENTS), most)


def _new_state(config: RunConfig, profile: CostProfile, learner: Learner, engine: CompiledEngine) -> State:
    given = _given(config, profile, learner, engine.steps_at_once)
    elsewhere = BATCHED | FROM_TRAJECTORIES  # only some profiles have them, and other fields need other compiled code
    costs = {name: float(value) for name, value in profile if isinstance(value, int | float) and name not in elsewhere}
    places = 1 + config.span.end + (config.span.end - config.span.start)  # some may still be about to leave
    sizes = learner.parameters.size, learner.publication.size
    state = State(
        given=one_record(costs, rule_of(config.span, config.schedule)._asdict(), given._asdict()),
        published=learner.publication,
        averages=learner.optimizer.slots,
        **blank_arrays(*sizes, places, config.schedule.window, config.gradients.batch),
    )
    state.games[:1] = engine.new_environment().game
    state.streams[0] = shared_actions(config.seed)
    return state


def _given(config: RunConfig, profile: CostProfile, learner: Learner, steps_at_once: int) -> Given:
    environment, exchange, optimizer = config.environment, config.gradients, learner.optimizer
    return Given(
        seed=config.seed,
        episodes_in_all=config.episodes,
        env_steps_in_all=config.env_steps or 0,
        max_steps=environment.max_episode_steps,
        steps_at_once=steps_at_once,
        own_streams=environment.seeding == "episode",
        own_actions=environment.actions == "own",
        resets=RESETS[environment.seeding],
        wait_s=environment.wait_s,
        has_master=TOPOLOGIES.get(config.topology).has_master,
        has_mailboxes=exchange.channel == "mailbox",
        waits_for_apply=exchange.pull == "after_apply",
        is_bounded=exchange.queue == "bounded",
        queue_size=_NO_LIMIT if exchange.queue == "unbounded" else exchange.queue_size,
        overload_limit=exchange.overload_limit or _NO_LIMIT,
        hold=exchange.hold,
        batch=exchange.batch,
        takes_mean=exchange.combine == "mean",
        bound=_NO_LIMIT if exchange.bound is None else exchange.bound,
        divides_by_staleness=exchange.rate == "staleness",
        jitters=profile.jitter != "none",
        jitters_exponentially=profile.jitter == "exponential",
        jitter_variance=profile.jitter_variance,
        update_rule=optimizer.rule,
        learning_rate=optimizer.initial_rate,
        anneal=optimizer.anneal,
        clip_norm=optimizer.clip_norm,
        epsilon=optimizer.epsilon,
        decay=optimizer.decay,
        **_exploration(config.learner),
    )


def _exploration(settings: LearnerSettings) -> dict[str, Any]:
    """Return what only value methods have."""
    if not isinstance(settings, ValueSettings):
        return {}
    finals = {f"final_epsilon_{place}": float(value) for place, value in enumerate(settings.final_epsilons)}
    return {"target_every": settings.target_every, "epsilon_steps": settings.epsilon_steps, **finals}
