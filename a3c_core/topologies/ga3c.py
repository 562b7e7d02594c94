"""The `ga3c` topology: agents hold no model; predictors choose their actions in batches, trainers learn in batches.

Babaeizadeh et al. 2017. An agent queues the state of its game for a predictor, plays the action that it is told, and
queues the next; what it has played goes to a trainer. Predictors and trainers share one model, so that the parameters
may change within an episode: each step has the version that chose its action, and a lag, the updates since then. A
trajectory's staleness is the lag of its oldest step; the mean over its steps is recorded beside it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from a3c_core.engines.agents import Slots
from a3c_core.models.parameters import Vector
from a3c_core.results.records import Status
from a3c_core.runtime import Arrays, Saved
from a3c_core.section import MOST_SECONDS
from a3c_core.topologies.agents import AgentTopology, first_free
from a3c_core.topologies.base import Arrow, Description
from a3c_core.topologies.staff import Counts, GA3CConfig, Staff, Walk
from a3c_core.topologies.training import Training, restore_experiences, save_experiences
from a3c_core.virtual.timeline import MASTER, Event

ANSWERED, TRAINED = "answered", "trained"
MOST_STEPS = 4_096  # of a trajectory in shared memory
PREDICTOR = 1 << 20  # the first one's number among the stations: above all agents'; trainers' go down from MASTER


class Answer(NamedTuple):
    """A prediction under way."""

    slots: Slots
    some_end: bool  # whether pieces end with it, or with the step that follows
    since_s: float


class GA3CTopology(AgentTopology):
    """N agents, predictors and trainers."""

    description = Description(
        ("predictors", "N agents", "trainers"),
        (
            Arrow("N agents", "predictors", "states"),
            Arrow("predictors", "N agents", "actions,\nin batches"),
            Arrow("N agents", "trainers", "trajectories"),
            Arrow("trainers", "predictors", "parameters, also within an episode"),
        ),
    )
    Settings = GA3CConfig
    has_predictors = True
    has_limit = False  # workers that are too many make batches larger
    statistics = ("lag_mean", "batch_steps", "predict_states", "predictors", "trainers", "predictor_busy_s")

    def __init__(self, *parts: Any):
        super().__init__(*parts)
        self._exchange: GA3CConfig = self.config.exchange
        self._predictors, self._trainers = self._exchange.predictors, self._exchange.trainers
        self._answers: dict[int, Answer] = {}  # by predictor
        self._training: dict[int, Training] = {}  # by trainer
        self._walk = Walk(self.config.seed, self._exchange.adapt_every_s or MOST_SECONDS)
        self._counts = Counts()
        self.handlers |= {ANSWERED: self._answered, TRAINED: self._trained}

    @classmethod
    def why_not(cls, config: Any) -> tuple[str, str] | None:
        if config.algorithm != "a3c":
            return "algorithm", "trainers of topology ga3c learn as A3C does: algorithm: a3c"
        if config.is_virtual and config.engine != "compiled":
            return "engine", "in virtual time topology ga3c steps its agents in compiled batches: engine: compiled"
        if config.agents_per_worker > 1:
            return "agents_per_worker", "a worker of topology ga3c is one agent: set workers instead"
        if config.exchange.adapt_every_s and (config.span.auto or config.span.start != config.span.end):
            return "exchange.adapt_every_s", "adapts the number of agents, too: let workers be one number"
        return None if config.is_virtual else _unfit_for_processes(config)

    # What a real trainer does with the trajectories that wait: the learner makes batches of them

    counts_players = False

    @classmethod
    def take(cls, exchange: Any, waiting: int, playing: int) -> int:
        return min(waiting, 1)

    @classmethod
    def combine(cls, exchange: Any, gradients: Sequence[Vector]) -> Vector:
        return gradients[0]

    @classmethod
    def is_late(cls, staleness: int) -> bool:
        return False

    @property
    def queue_size(self) -> int:
        return self._exchange.queue_size

    def handle(self, event: Event) -> None:
        self.handlers[event.kind](event.station)
        while self._may_train() and (free := first_free(self._training, self._trainers)) is not None:
            self._take_trajectories(free)
        while self._may_predict() and (free := first_free(self._answers, self._predictors)) is not None:
            self._take_states(free)

    # Predictors

    def _may_predict(self) -> bool:
        """Return whether enough states wait, or nobody is there who could add to them."""
        asking = len(self.asking)
        return asking > 0 and asking >= min(self._exchange.predict_min, self.up)

    def _take_states(self, predictor: int) -> None:
        """Begin to answer agents; what they are told comes from the parameters of this moment."""
        most = self._exchange.predict_max
        slots = np.array(self.asking[:most])
        del self.asking[:most]
        played, ending = self.agents.answer(self.learner.parameters, self.learner.version, slots)
        self.log.totals.env_steps += played
        self._counts.add_prediction(len(slots))
        self._answers[predictor] = Answer(slots, ending > 0, self.timeline.now_s)
        seconds = self.profile.prediction_s(len(slots))
        self.timeline.work(seconds, PREDICTOR + predictor, ANSWERED, self._counts.predictions)

    def _answered(self, station: int) -> None:
        slots, some_end, since_s = self._answers.pop(station - PREDICTOR)
        self._counts.predictor_busy_s += self.timeline.now_s - since_s
        self.tell(slots, some_end)

    def worked(self) -> dict[str, float]:
        return {"predictor_busy_s": self._counts.predictor_busy_s}

    # Trainers

    def _may_train(self) -> bool:
        """Return whether enough steps wait, or no more can come."""
        waiting = len(self.trajectories)
        if not waiting:
            return False
        return self.trajectories.steps >= self._exchange.train_min or waiting >= self.queue_size or not self.up

    def _take_trajectories(self, trainer: int) -> None:
        """Begin an update, whose gradient is that of the parameters of this moment."""
        taken = self.trajectories.take(self._exchange.train_min, self._exchange.train_max or 0)
        for one in taken:
            one.parcel.taken_s = self.timeline.now_s
        training = self._training[trainer] = self.trajectories.learn(self.engine, self.learner.parameters, taken)
        ended = sum(len(one.parcel.episodes) for one in taken)
        seconds = self.profile.training_s(len(taken), training.steps)
        seconds += self.profile.bookkeeping_s(self._counts.written_up, ended)
        self._counts.written_up += ended
        self._counts.trainings += 1
        busy_s = self.timeline.work(seconds, MASTER - trainer, TRAINED, self._counts.trainings)
        self.log.totals.master_busy_s += busy_s
        self.make_room()

    def _trained(self, station: int) -> None:
        training, before = self._training.pop(MASTER - station), self.learner.version
        result = self.learner.receive(training.gradient, self.progress(training.experiences[0].parcel.worker))
        status: Status = "applied" if result.applied else "rejected"
        now = self.timeline.now_s, self.alive, self.learner.version
        statistics = self._counts.statistics(training.steps, Staff(self.alive, self._predictors, self._trainers))
        for parcel, _, mean_version in training.experiences:
            lags = {"lag_mean": before - mean_version, **statistics}
            self.log.enter(parcel, status, *now, before - parcel.version_pulled, result.gradient_norm, statistics=lags)
            if parcel.episodes:
                self.change_agents(self.log.target_workers(self.alive, self.waiting))
        if self._exchange.adapt_every_s and self.up:
            self._adapt()

    def _adapt(self) -> None:
        """Let the walk have its way, which counts this training."""
        now = Staff(self.alive, self._predictors, self._trainers)
        agents, self._predictors, self._trainers = self._walk.look(now, self.timeline.now_s)
        self.change_agents(agents)

    def who(self, station: int) -> tuple[str, int]:
        if station <= MASTER:
            return "trainer", MASTER - station
        return ("agent", station) if station < PREDICTOR else ("predictor", station - PREDICTOR)

    # State

    def save(self) -> Saved:
        numbers, arrays, _ = super().save()
        arrays |= {f"trainer{trainer}_gradient": training.gradient for trainer, training in self._training.items()}
        training = [
            [trainer, save_experiences(one.experiences, f"trainer{trainer}", arrays)]
            for trainer, one in self._training.items()
        ]
        numbers |= {
            "predictors": self._predictors,
            "trainers": self._trainers,
            "answers": [[predictor, one.slots.tolist(), *one[1:]] for predictor, one in self._answers.items()],
            "training": training,
            "walk": self._walk.save(),
            "counts": dict(vars(self._counts)),
        }
        return Saved(numbers, arrays, {})

    def restore(self, numbers: dict[str, Any], arrays: Arrays, folder: Path) -> None:
        super().restore(numbers, arrays, folder)
        self._predictors, self._trainers = numbers["predictors"], numbers["trainers"]
        self._answers = {who: Answer(np.array(slots), *rest) for who, slots, *rest in numbers["answers"]}
        for trainer, saved in numbers["training"]:
            experiences = restore_experiences(saved, f"trainer{trainer}", arrays)
            self._training[trainer] = Training(experiences, np.array(arrays[f"trainer{trainer}_gradient"]))
        self._walk.restore(numbers["walk"])
        self._counts = Counts(**numbers["counts"])


def _unfit_for_processes(config: Any) -> tuple[str, str] | None:
    """Return the first setting that real agents can't go with, and why not."""
    exchange, environment, learner = config.exchange, config.environment, config.learner
    if config.engine == "report":
        return "engine", "engine report looks at one observation at a time, predictors of topology ga3c at many"
    if config.runtime == "ray":
        return "runtime", "agents of topology ga3c share memory with their predictors, and runtime ray has none"
    for name, only in {"trainers": 1, "predict_min": 1, "train_max": None, "adapt_every_s": None}.items():
        if getattr(exchange, name) != only:
            said = "null" if only is None else only
            return f"exchange.{name}", f"the trainer of real agents is their master, which has it at {said} only"
    steps = learner.t_max if learner.update_every == "t_max" else environment.max_episode_steps
    if steps > MOST_STEPS:
        limits = "environment.max_episode_steps, or learner.t_max with update_every: t_max"
        return "environment.max_episode_steps", f"real agents have room for {MOST_STEPS:,} env steps: lower {limits}"
    return None
