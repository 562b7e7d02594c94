"""How many agents, predictors and trainers `ga3c` has, how that is tuned during a run, and what they did."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from a3c_core.streams import stream_words, uniform

_WALK_KEY = 3  # keeps the stream of the walk apart from those of play, of costs and of minibatches


class Staff(NamedTuple):
    """How many there are, or are to be, of everybody."""

    agents: int
    predictors: int
    trainers: int

    def walked(self, seed: int, step: int) -> "Staff":
        """Return one more, one less or as many as now of each, drawn at random, but never none."""
        stream = stream_words(seed, step, 0, _WALK_KEY)[0]
        return Staff(*[max(1, number + int(3 * uniform(stream)) - 1) for number in self])


class Walk:
    """The paper's search for numbers: a step at random, which is taken back if trainings have become fewer."""

    def __init__(self, seed: int, every_s: float):
        self._seed, self._every_s = seed, every_s
        self._due_s = every_s
        self._trainings = 0  # since the last step
        self._last = 0  # with what was kept last
        self._before: Staff | None = None  # what was kept last
        self._steps = 0

    def look(self, now: Staff, clock_s: float) -> Staff:
        """Count a training; return how many there are to be from now on."""
        self._trainings += 1
        if clock_s < self._due_s:
            return now
        has_worsened = self._before is not None and self._trainings < self._last
        kept = self._before if has_worsened and self._before is not None else now
        if not has_worsened:
            self._last = self._trainings
        self._before, self._trainings, self._due_s = kept, 0, clock_s + self._every_s
        self._steps += 1
        return kept.walked(self._seed, self._steps)

    def save(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_seed", "_every_s")}

    def restore(self, numbers: dict[str, Any]) -> None:
        vars(self).update(numbers)
        self._before = None if self._before is None else Staff(*self._before)


@dataclass
class Counts:
    """What happened so far."""

    written_up: int = 0  # episodes
    trainings: int = 0
    predictions: int = 0
    predictor_busy_s: float = 0.0
    recent_predictions: int = 0  # since the last training was done
    recent_states: int = 0  # in them

    def add_prediction(self, states: int) -> None:
        self.predictions += 1
        self.recent_predictions += 1
        self.recent_states += states

    def statistics(self, batch_steps: int, staff: Staff) -> dict[str, float]:
        """Return what is recorded of a training beside the lag, and begin to count anew."""
        states = self.recent_states / self.recent_predictions if self.recent_predictions else math.nan
        self.recent_predictions = self.recent_states = 0
        there = {"predictors": staff.predictors, "trainers": staff.trainers}
        busy = {"predictor_busy_s": self.predictor_busy_s}
        return {"batch_steps": batch_steps, "predict_states": states, **there, **busy}
