"""Virtual time of `ga3c`: agents hold no model; predictors answer them in batches, trainers learn in batches."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from a3c_core.engines.agent_batches import Slots
from a3c_core.records.tables import Status
from a3c_core.runtime import Arrays, Saved
from a3c_core.section import MOST_SECONDS
from a3c_core.topologies.ga3c import GA3CConfig
from a3c_core.virtual.agents import AgentStations, first_free
from a3c_core.virtual.ga3c_tuner import Counts, Staff, Walk
from a3c_core.virtual.timeline import MASTER, Event
from a3c_core.virtual.training import Training, restore_experiences, save_experiences

ANSWERED, TRAINED = "answered", "trained"
PREDICTOR = 1 << 20  # the first one's number among the stations: above all agents'; trainers' go down from MASTER


class Answer(NamedTuple):
    """A prediction under way."""

    slots: Slots
    some_end: bool  # whether pieces end with it, or with the step that follows
    since_s: float


class GA3CStations(AgentStations):
    """N agents, predictors and trainers."""

    def __init__(self, *parts: Any):
        super().__init__(*parts)
        self._exchange: GA3CConfig = self.config.exchange
        self._predictors, self._trainers = self._exchange.predictors, self._exchange.trainers
        self._answers: dict[int, Answer] = {}  # by predictor
        self._training: dict[int, Training] = {}  # by trainer
        self._walk = Walk(self.config.seed, self._exchange.adapt_every_s or MOST_SECONDS)
        self._counts = Counts()
        self.handlers |= {ANSWERED: self._answered, TRAINED: self._trained}

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
