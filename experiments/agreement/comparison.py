"""The same settings really and virtually: what virtual time predicts with this machine's costs, and what happens."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from a3c_core.benchmark import courses
from a3c_core.benchmark.feeder import EXCHANGES
from a3c_core.calibrate import calibrate, write_profile
from a3c_core.config import RunConfig
from a3c_core.games.base import EnvironmentConfig
from a3c_core.models.dense import DenseModel
from a3c_core.models.parameters import Vector
from a3c_core.results.summary import RunSummary
from a3c_core.tools.exchange_costs import FROZEN
from a3c_core.train import Run

THROUGHPUT = "episodes_per_s"
WAIT_S = 1e-4  # per env step: some milliseconds an episode, to which a sleep's own delay of some 60 µs adds little
GAMES = {  # name: how many times as many episodes as of the waiting game, which takes longest
    "short": 20,  # an untrained bird's, about 60 steps
    "long": 4,  # a trained bird's, over 1,000 steps
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
    """What virtual time predicted, and what the real runs gave, the fastest of them first; their median counts."""

    setting: Setting
    predicted: RunSummary
    measured: list[RunSummary]

    def values(self, quantity: str) -> tuple[float, float]:
        """Return (predicted, measured) of a summary's field."""
        return getattr(self.predicted, quantity), getattr(self.measured[len(self.measured) // 2], quantity)

    def error(self, quantity: str = THROUGHPUT) -> float:
        """Return how far the prediction is off, relative to what was measured."""
        predicted, measured = self.values(quantity)
        return predicted / measured - 1.0 if measured else 0.0

    @property
    def spread(self) -> float:
        """How much slower the slowest real run was than the fastest."""
        return 1.0 - self.measured[-1].episodes_per_s / self.measured[0].episodes_per_s


class Bench:
    """Calibrates this machine for a transport when it is first needed, and compares settings on it."""

    def __init__(self, directory: Path, episodes: int, seconds: float, runs: int):
        """`episodes`: see `Setting.config`; `seconds`: for each part of a calibration; `runs`: real ones, of each."""
        self._directory, self._episodes, self._seconds, self._runs = directory, episodes, seconds, runs
        untrained, trained = DenseModel().initial_parameters(0), courses.trained(courses.TRAINING_EPISODES)
        self._parameters = {"short": untrained, "long": trained, "waiting": untrained}

    def compare(self, setting: Setting) -> Comparison:
        """Return one comparison; costs are usual ones, and so is the run that counts."""
        parameters = self._parameters[setting.game]
        real = setting.config(self._episodes)
        profile = {"runtime": "simulate", "profile": str(self._profile(setting.transport))}
        predicted = _summary(Run(real.model_copy(update=profile), None), parameters)
        measured = [_summary(Run(real, None), parameters) for _ in range(self._runs)]
        return Comparison(setting, predicted, sorted(measured, key=lambda summary: -summary.episodes_per_s))

    def _profile(self, transport: str) -> Path:
        path = self._directory / f"{transport}.yaml"
        if not path.exists():
            write_profile(calibrate("compiled", transport, self._seconds), path)
        return path


def _summary(run: Run | Run, parameters: Vector) -> RunSummary:
    run.learner.parameters[:] = parameters
    return run.finish()
