"""The documents' own published run, and what is asked of it and of ours: when learning begins, and what its loss does.

published_curve.csv has the moving averages (coefficient 0.04) of reward and of loss, every 500 episodes, read off the
vector figure results/a3c_flappy.svg of the public repository github.com/FrankCCCCC/rl_collection (9 January 2021). The
reward is PLE's: pipes passed, less 5 for the death. Between episodes 1,500 and 75,000 the figure's line for it is a
single straight stroke, so that what lies between is not known. The averages begin again from 0 at
three episodes (RESTARTS): the run was continued from checkpoints.
"""

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.data.inference import spike_chance
from analysis.data.metrics import AVERAGED_EVERY
from analysis.data.study import Schedule, Study

DEATH = 5.0  # what a death costs: reward = pipes - 5
BEGUN = 5.0  # pipes: a moving average that passes this is learning
SAVED_EVERY = 5_000  # episodes: the published script stops its master for tables, pictures and a checkpoint
_STROKE = (1_500, 75_000)  # episodes between which the published reward is not known
SETTLED = 40_000  # episodes: later the published loss has no spikes
RESTARTS = (45_000, 100_000, 230_000)  # episodes at which the published moving averages begin again from 0
_CURVE = Path(__file__).with_name("published_curve.csv")


class Averages(NamedTuple):
    """Moving averages of a run, every 500 episodes."""

    episodes: np.ndarray
    reward: np.ndarray
    loss: np.ndarray

    @property
    def begins(self) -> float:
        """The episode at which the average first passes 5 pipes; inf if it never does."""
        passed = np.flatnonzero(self.reward + DEATH >= BEGUN)
        return float(self.episodes[passed[0]]) if passed.size else float("inf")

    @property
    def highest(self) -> float:
        """The most pipes that the average comes to."""
        return float(np.nanmax(self.reward) + DEATH)


@cache
def published() -> Averages:
    """Return the documents' run."""
    episodes, reward, loss = pd.read_csv(_CURVE).to_numpy(float).T
    unknown = (episodes > _STROKE[0]) & (episodes < _STROKE[1])
    return Averages(episodes, np.where(unknown, np.nan, reward), loss)


def averages_of(study: Study, schedule: Schedule | None = None) -> list[Averages]:
    """Return the averages of a study's runs that have them, or of one schedule's, by seed."""
    if "reward_average" not in study.done:
        return []
    runs = study.done if schedule is None else study.done[study.done["schedule"] == schedule.label]
    rows = runs.sort_values("seed")[["reward_average", "loss_average"]].dropna()
    return [_averages(reward, loss) for reward, loss in rows.itertuples(index=False)]


def _averages(reward: np.ndarray, loss: np.ndarray) -> Averages:
    return Averages(AVERAGED_EVERY * np.arange(len(reward)), np.asarray(reward, float), np.asarray(loss, float))


def spikes(runs: list[Averages]) -> tuple[float, float]:
    """Return how many times larger the loss is just after every 5,000th episode than at it, and the chance of that.

    It is compared with the same at places that are shifted; only up to episode 40,000, as long as little is learned.
    """
    early = [run.loss[run.episodes <= SETTLED] for run in runs]
    return spike_chance(early, SAVED_EVERY // AVERAGED_EVERY)
