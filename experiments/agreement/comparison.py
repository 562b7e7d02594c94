"""The same settings really and virtually: what virtual time predicts with this machine's costs, and what happens."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from a3c.benchmark import courses
from a3c.benchmark.feeder import EXCHANGES
from a3c.calibrate import calibrate, write_profile
from a3c.exchange_costs import FROZEN
from a3c_core.config import RunConfig
from a3c_core.games.base import EnvironmentConfig
from a3c_core.models.dense import DenseModel
from a3c_core.models.parameters import Vector
from a3c_core.train import Run
from a3c_core.train.summary import RunSummary

THROUGHPUT = "episodes_per_s"
WAIT_S = 1e-4  # per env step: some milliseconds an episode, to which a sleep's own delay of some 60 µs adds little
GAMES = {  # name: how many times as many episodes as of the waiting game: runs of seconds, in which no start counts
    "short": 100,  # an untrained bird's, about 60 steps
    "long": 20,  # a trained bird's, over 1,000 steps
    "waiting": 1,  # an untrained bird's, in a game that makes everyone wait
}
_COLOURS = {"shared": "#0072b2", "queue": "#d55e00"}
_MARKERS = {"short": "o", "long": "D", "waiting": "s"}


@dataclass(frozen=True)
class Setting:
    """One thing tried."""

    game: str
    transport: str
    workers: int

    def __str__(self) -> str:
        return f"{self.game} game, {self.transport}, {self.workers} worker{'s' * (self.workers > 1)}"

    @property
    def look(self) -> tuple[str, str, str]:
        """Its group in a figure's legend, with colour and marker."""
        return f"{self.game} game, {self.transport}", _COLOURS[self.transport], _MARKERS[self.game]

    def config(self, episodes: int) -> RunConfig:
        """Return the settings of a real run; `episodes` per worker, of faster games more."""
        return RunConfig(
            workers=str(self.workers),
            episodes=episodes * self.workers * GAMES[self.game],
            runtime="processes",
            environment=EnvironmentConfig(wait_s=WAIT_S if self.game == "waiting" else 0.0),
            **EXCHANGES[self.transport],
            learner=FROZEN,  # so that both play the same episodes, and only time can differ
        )


def settings(quick: bool = False) -> Iterator[Setting]:
    """Yield what is tried: as many workers as two cores bear, and many whose game waits."""
    for transport in ("shared", "queue"):
        for game in ("short", "long"):
            for workers in (1, 2):
                yield Setting(game, transport, workers)
        for workers in (4,) if quick else (4, 10, 20, 40):
            yield Setting("waiting", transport, workers)


@dataclass(frozen=True)
class Comparison:
    """What virtual time predicted, and what the real run gave, in each of several rounds.

    A machine that is shared with strangers is faster in one minute than in the next, so that only what was measured in
    the same round is compared, and the median of the rounds counts.
    """

    setting: Setting
    predicted: list[RunSummary]
    measured: list[RunSummary]

    def values(self, quantity: str) -> tuple[float, float]:
        """Return (predicted, measured) of a summary's field."""
        return self._usual(self.predicted, quantity), self._usual(self.measured, quantity)

    def error(self, quantity: str = THROUGHPUT) -> float:
        """Return how far the prediction is off, relative to what was measured."""
        rounds = zip(self.predicted, self.measured, strict=True)
        return median(
            _error(getattr(predicted, quantity), getattr(measured, quantity)) for predicted, measured in rounds
        )

    @property
    def spread(self) -> float:
        """How much slower the slowest real run was than the fastest."""
        throughput = [summary.episodes_per_s for summary in self.measured]
        return 1.0 - min(throughput) / max(throughput)

    @staticmethod
    def _usual(summaries: list[RunSummary], quantity: str) -> float:
        return median(getattr(summary, quantity) for summary in summaries)


def _error(predicted: float, measured: float) -> float:
    return predicted / measured - 1.0 if measured else 0.0


class Bench:
    """Compares settings in rounds, each with a calibration of its own for every transport."""

    def __init__(self, directory: Path, episodes: int, seconds: float):
        """`episodes`: see `Setting.config`; `seconds`: for each part of a calibration."""
        self._directory, self._episodes, self._seconds = directory, episodes, seconds
        untrained, trained = DenseModel().initial_parameters(0), courses.trained(courses.TRAINING_EPISODES)
        self._parameters = {"short": untrained, "long": trained, "waiting": untrained}

    def calibrate(self) -> None:
        """Measure anew what things cost now."""
        for transport in _COLOURS:
            write_profile(calibrate("compiled", transport, self._seconds), self._profile(transport))

    def compare(self, setting: Setting) -> tuple[RunSummary, RunSummary]:
        """Return (predicted, measured) of one setting."""
        parameters = self._parameters[setting.game]
        real = setting.config(self._episodes)
        profile = {"runtime": "simulate", "profile": str(self._profile(setting.transport))}
        predicted = _summary(Run(real.model_copy(update=profile), None), parameters)
        return predicted, _summary(Run(real, None), parameters)

    def _profile(self, transport: str) -> Path:
        return self._directory / f"{transport}.yaml"


def _summary(run: Run, parameters: Vector) -> RunSummary:
    run.learner.parameters[:] = parameters
    return run.finish()
