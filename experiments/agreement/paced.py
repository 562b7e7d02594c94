"""Paced real processes and virtual time at the same costs, below and beyond saturation: what each comes to."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from a3c.exchange_costs import FROZEN
from a3c_core.config import RunConfig
from a3c_core.records.tables import EpisodeRecord
from a3c_core.train import train
from a3c_core.train.summary import RunSummary
from a3c_core.virtual.capacity import capacity, profile_of

PROFILE = "report"  # its master bears 45 workers that do not wait
_MAILBOXES = {"transport": "queue", "channel": "mailbox"}
EXCHANGES: dict[str, dict[str, Any]] = {
    "report's": {**_MAILBOXES, "queue": "unbounded"},
    "bounded": {**_MAILBOXES, "queue": "bounded"},
    "dropping": {**_MAILBOXES, "queue": "dropping"},
    "latest": {"queue": "unbounded"},
    "waiting": {"queue": "unbounded", "pull": "after_apply"},
}
_WORKERS = {
    "report's": (4, 10, 20, 40, 60, 80),
    "bounded": (40, 80),
    "dropping": (80,),
    "latest": (20, 60),
    "waiting": (10, 40, 80),
}
_QUICK = {"report's": (4, 60)}
_GROWS = 0.05  # of the throughput: a queue that grows by less does not grow


class Outcome(NamedTuple):
    """What a run came to; seconds are the profile's."""

    episodes_per_s: float
    master_utilisation: float
    staleness_mean: float
    queue_growth: float  # gradients a second, while workers send any
    late_share: float = 0.0  # of the workers' work or of the master's, whichever is more


@dataclass(frozen=True)
class PacedSetting:
    """One thing tried."""

    exchange: str  # a key of EXCHANGES
    workers: int

    def __str__(self) -> str:
        return f"{self.exchange} exchange, {self.workers} workers"

    @property
    def look(self) -> tuple[str, str, str]:
        """Its group in a figure's legend, with colour and marker."""
        place = list(EXCHANGES).index(self.exchange)
        return (
            f"{self.exchange} exchange",
            ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9")[place],
            "osD^v"[place],
        )

    def config(self, speed: float, seconds: float) -> RunConfig:
        """Return a real run of about so many real seconds. Nothing is learned: only time is compared."""
        pace = {"profile": PROFILE, "speed": speed}
        config = RunConfig(
            workers=str(self.workers),
            runtime="processes",
            pace=pace,
            exchange=EXCHANGES[self.exchange],
            learner=FROZEN,
        )
        known, crowding = capacity(config), profile_of(config).crowding(self.workers, 1)
        per_s = min(self.workers / known.cycle_s, 1.0 / known.service_s) / crowding
        return config.model_copy(update={"episodes": max(2 * self.workers, int(per_s * speed * seconds))})


@dataclass(frozen=True)
class PacedComparison:
    """What virtual time predicted, and what paced processes did."""

    setting: PacedSetting
    predicted: Outcome
    measured: Outcome

    def values(self, quantity: str) -> tuple[float, float]:
        """Return (predicted, measured) of an outcome's field."""
        return getattr(self.predicted, quantity), getattr(self.measured, quantity)

    def error(self, quantity: str) -> float:
        """Return how far the prediction is off, relative to what was measured.

        The growth of a queue that does not grow is related to the throughput.
        """
        predicted, measured = self.values(quantity)
        scale = measured
        if quantity == "queue_growth" and abs(measured) < _GROWS * self.measured.episodes_per_s:
            scale = self.measured.episodes_per_s
        return (predicted - measured) / scale if scale else 0.0


def settings(quick: bool = False) -> Iterator[PacedSetting]:
    """Yield what is tried, each kind of exchange below and beyond saturation."""
    for exchange, counts in (_QUICK if quick else _WORKERS).items():
        for workers in counts:
            yield PacedSetting(exchange, workers)


def compare(setting: PacedSetting, speed: float, seconds: float) -> PacedComparison:
    """Return one comparison, of a real run of about so many seconds."""
    real = setting.config(speed, seconds)
    virtual = real.model_copy(update={"runtime": "simulate", "profile": PROFILE, "pace": RunConfig().pace})
    return PacedComparison(setting, _outcome(virtual), _outcome(real))


def _outcome(config: RunConfig) -> Outcome:
    records: list[EpisodeRecord] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # lateness has its column
        summary = train(config, on_episode=records.append)
    return Outcome(
        summary.episodes_per_s,
        summary.master_utilisation,
        summary.staleness_mean,
        queue_growth([record.finished_s for record in records], [record.queue_length for record in records]),
        late_share(summary),
    )


def late_share(summary: RunSummary) -> float:
    """Return the share of late work: the workers' or the master's, whichever is more."""
    return max(summary.worker_late_share or 0.0, summary.master_late_share or 0.0)


def queue_growth(arrived_s: list[float], found: list[int]) -> float:
    """Return by how many gradients a second the queue grows that arrivals find: the slope of a straight line."""
    moments = np.asarray(arrived_s) - np.mean(arrived_s)
    spread = float((moments**2).sum())
    return float((moments * np.asarray(found)).sum()) / spread if spread else 0.0
