"""What a run's records say, as pure functions: binned curves, scores, time to a score, load of the master, collapse.

Curves are cut into equal parts of the *planned* episodes, so that bin 37 means the same in every run of a study, also
in one that ended early; or of the planned env steps, where these end a run. What ends beyond the plan is in no bin:
only long episodes are still under way then. The final score is computed from the records, all else from the curves.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.data.score import StudyScore

BINS = 100  # one bin is 1 % of a run
WINDOW = (0.85, 0.95)  # of a run: episodes that start in it make the final score; all of them have finished at its end
AVERAGED_EVERY = 500  # episodes between two values of a moving average
COEFFICIENT = 0.04  # of the published run's moving averages
BACKLOG = 10.0  # gradients waiting per worker: more than this is a master that fell behind

_MEANS = {
    "score": "score",
    "return": "return",
    "steps": "steps",
    "truncated": "truncated",
    "staleness": "staleness",
    "queue": "queue_length",
    "queue_wait_s": "queue_wait_s",
    "entropy": "entropy",
    "gradient_norm": "gradient_norm",
}
COLUMNS = [
    "score",
    "steps",
    "staleness",
    "queue_length",
    "queue_wait_s",
    "entropy",
    "gradient_norm",
    "return",
    "truncated",
]
COLUMNS += [
    "started_s",
    "finished_s",
    "applied_s",
    "master_busy_s",
    "version_applied",
    "workers_alive",
    "status",
    "episode",
]


def binned(
    records: pd.DataFrame, planned_episodes: int, bins: int = BINS, planned_env_steps: int | None = None
) -> pd.DataFrame:
    """Return one row per bin of a run's `records` (COLUMNS, in the order in which the master dealt with them).

    With `planned_env_steps` bins are parts of these; one in which no episode ended is left out. So is an episode that
    ended when all of the plan had been played.
    Means over the bin's episodes: score, return, steps, truncated (share), staleness (updates), queue
    (gradients found waiting), queue_wait_s, episode_s (start to arrival), entropy, gradient_norm, applied (share).
    Values at its end: episodes, env_steps, updates, clock_s, arrived_s (last arrival), busy_s (master), workers (most).
    """
    parts = min(bins, planned_episodes)
    position, planned = np.arange(len(records), dtype=np.int64), planned_episodes
    if planned_env_steps is not None:
        parts, planned = bins, planned_env_steps
        position = records["steps"].to_numpy(np.int64).cumsum() - 1
    number = position * parts // planned
    within = number < parts
    records, number = records[within], number[within]
    groups = records.groupby(number)
    curve = groups[list(_MEANS.values())].mean().rename(columns={old: new for new, old in _MEANS.items()})
    curve["episode_s"] = (records["finished_s"] - records["started_s"]).groupby(number).mean()
    curve["applied"] = (records["status"] == "applied").groupby(number).mean()
    curve["episodes"] = groups.size().cumsum()
    curve["env_steps"] = groups["steps"].sum().cumsum()
    for new, old in {"updates": "version_applied", "clock_s": "applied_s", "busy_s": "master_busy_s"}.items():
        curve[new] = groups[old].last().cummax()
    curve["arrived_s"] = groups["finished_s"].max().cummax()
    curve["workers"] = groups["workers_alive"].max()
    curve.index.name = "bin"
    return curve.reset_index()


UPDATE_COLUMNS = ["staleness", "queue_length", "arrived_s", "applied_s"]


def with_updates(curve: pd.DataFrame, updates: pd.DataFrame) -> pd.DataFrame:
    """Return a curve whose staleness, queue and queue_wait_s are means over all updates, not only episodes' last ones.

    An update (UPDATE_COLUMNS) belongs to the first bin that ends (`clock_s`) no earlier than it was dealt with; what
    came after the last bin belongs to none. A bin that ends when the one before it did keeps its episodes'.
    """
    number = np.searchsorted(curve["clock_s"], updates["applied_s"])
    updates, number = updates[number < len(curve)], number[number < len(curve)]
    groups = updates.assign(queue_wait_s=updates["applied_s"] - updates["arrived_s"]).groupby(number)
    means = groups[["staleness", "queue_length", "queue_wait_s"]].mean().rename(columns={"queue_length": "queue"})
    curve = curve.copy()
    curve.loc[curve.index[means.index], list(means)] = means.to_numpy()
    return curve


def moving_averages(records: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the moving averages that the documents' published run shows, of episodes 0, 500, 1,000, … [K] each.

    An average moves by COEFFICIENT of the way to every episode's value, and starts from 0.
    """
    found = {}
    for name, column in (("reward_average", "return"), ("loss_average", "loss")):
        values = np.nan_to_num(records[column].to_numpy(float)).tolist()
        averages = accumulate(
            values, lambda average, value: COEFFICIENT * value + (1.0 - COEFFICIENT) * average, initial=0.0
        )
        found[name] = np.fromiter(averages, float)[1::AVERAGED_EVERY].astype(np.float32)
    return found


def per_bin(cumulative: np.ndarray) -> np.ndarray:
    """Return what each bin adds to a `cumulative` quantity [B] that starts from 0."""
    return np.diff(cumulative, prepend=0.0)


def utilisation(curve: pd.DataFrame) -> np.ndarray:
    """Return [B] the share of its time that the master worked, in each bin."""
    return _ratio(per_bin(curve["busy_s"].to_numpy(float)), per_bin(curve["clock_s"].to_numpy(float))).clip(0.0, 1.0)


class Arriving(NamedTuple):
    """What came to the master in each bin [B]."""

    gradients: np.ndarray
    service_s: np.ndarray  # the master's time for one of them, then
    span_s: np.ndarray


def arriving(curve: pd.DataFrame) -> Arriving:
    """Return what came to the master.

    There is more than one gradient per episode where workers send one every few steps. The master's speed is that of
    the moment of arrival, not of the turn, which may come much later.
    """
    episodes, updates = (per_bin(curve[name].to_numpy(float)) for name in ("episodes", "updates"))
    gradients = _ratio(updates, episodes * curve["applied"].to_numpy(float))  # per episode
    arrivals = episodes * np.maximum(1.0, np.nan_to_num(gradients, nan=1.0))
    names = ("clock_s", "arrived_s", "busy_s", "updates")
    clock, arrived, busy, done = (np.concatenate([[0.0], curve[name].to_numpy(float)]) for name in names)
    service_s = _ratio(np.diff(np.interp(arrived, clock, busy)), np.diff(np.interp(arrived, clock, done)))
    overall_s = float(_ratio(busy[-1], done[-1]))
    return Arriving(arrivals, np.where(np.isfinite(service_s), service_s, overall_s), np.diff(arrived))


def offered_load(curve: pd.DataFrame) -> np.ndarray:
    """Return [B] the work that arrives per second, in seconds of the master's time: above 1 it cannot keep up."""
    gradients, service_s, span_s = arriving(curve)
    return _ratio(gradients * service_s, span_s)


def load_between(arriving: Arriving, first: float, last: float) -> float:
    """Return the offered load over the part of a run from `first` to `last` (shares of the bins played)."""
    bins = len(arriving.gradients)
    begin = int(first * bins)
    part = slice(begin, max(begin + 1, round(last * bins)))
    gradients, service_s, span_s = (values[part] for values in arriving)
    return float(_ratio((gradients * service_s).sum(), span_s.sum()))


def first_tenth(curve: pd.DataFrame) -> pd.DataFrame:
    """Return the first tenth of the bins played, at least one."""
    return curve.iloc[: max(1, len(curve) // 10)]


def last_tenth(curve: pd.DataFrame) -> pd.DataFrame:
    """Return the last tenth of the bins played, at least one."""
    return curve.iloc[-max(1, len(curve) // 10) :]


def final_score(records: pd.DataFrame, planned_episodes: int, planned_env_steps: int | None = None) -> float:
    """Return the mean score of the episodes that started in WINDOW of a run: what it has learned.

    Episodes are put in the order of their start. WINDOW is a part of the planned episodes, or of the planned env steps
    where these end a run; of a run that ended early, of what it played.

    Args:
        records: score, steps and started_s of all episodes.
        planned_episodes: how many episodes end the run.
        planned_env_steps: how many env steps end the run, if they do.
    """
    ordered = records.sort_values("started_s", kind="stable")
    sizes = np.ones(len(ordered)) if planned_env_steps is None else ordered["steps"].to_numpy(float)
    place = sizes.cumsum() - sizes  # what had been started before each episode
    played = min(float(planned_env_steps or planned_episodes), float(sizes.sum()))
    inside = (place >= WINDOW[0] * played) & (place < WINDOW[1] * played)
    scores = ordered["score"].to_numpy(float)
    return float(scores[inside].mean() if inside.any() else scores[-1:].mean())


def final_score_of_curve(curve: pd.DataFrame) -> float:
    """Return the final score as far as a curve tells it: of the episodes that *ended* in WINDOW.

    It stands in where older tables have no final score and the records are gone.
    """
    bins = np.arange(len(curve))
    first = min(int(WINDOW[0] * len(bins)), len(bins) - 1)
    inside = (bins >= first) & (bins < max(first + 1, round(WINDOW[1] * len(bins))))
    counts = np.where(inside, per_bin(curve["episodes"].to_numpy(float)), 0.0)
    return float(_ratio((counts * curve["score"].to_numpy(float)).sum(), counts.sum()))


def mean_score(curve: pd.DataFrame) -> float:
    """Return the mean over the bins of a run: the area under its learning curve, over what ends the run."""
    return float(curve["score"].mean())


def peak_score(curve: pd.DataFrame) -> float:
    """Return the best mean score per episode of any tenth of the run."""
    window = max(1, len(curve) // 10)
    counts = pd.Series(per_bin(curve["episodes"].to_numpy(float)))
    totals = (counts * curve["score"].to_numpy(float)).rolling(window).sum()
    return float((totals / counts.rolling(window).sum()).max())


def held_share(final: float, curve: pd.DataFrame, learned_above: float) -> float:
    """Return the share of its best tenth that a run still has at its end: 1 is stable, 0 has forgotten everything.

    NaN if even the best tenth lies below `learned_above`, since nothing was learned that could be kept, or below 0,
    where shares mean nothing.
    """
    peak = peak_score(curve)
    return final / peak if peak > 0 and peak >= learned_above else float("nan")


def times_to(curve: pd.DataFrame, marks: Sequence[float]) -> dict[str, float]:
    """Return seconds, episodes and env steps at the end of the first bin whose mean score reaches each mark, or inf."""
    scores = curve["score"].to_numpy()
    firsts = {mark: reached[0] if (reached := np.flatnonzero(scores >= mark)).size else None for mark in marks}
    found: dict[str, float] = {}
    for name, axis in (
        ("time_to_{:g}_s", "clock_s"),
        ("episodes_to_{:g}", "episodes"),
        ("env_steps_to_{:g}", "env_steps"),
    ):
        values = curve[axis].to_numpy()
        found |= {name.format(mark): np.inf if at is None else float(values[at]) for mark, at in firsts.items()}
    return found


def collapsed(final: float, queue_peak: float, workers_max: float, overloaded: bool, learned_above: float) -> bool:
    """Return whether a run learned nothing and its master fell behind, by over BACKLOG gradients for each worker."""
    return final < learned_above and (overloaded or queue_peak > BACKLOG * workers_max)


def run_metrics(curve: pd.DataFrame, score: StudyScore, final: float | None = None) -> dict[str, float]:
    """Return the numbers of one run that figures, tables and verdicts use.

    Args:
        curve: its bins.
        score: that of its game.
        final: its final score, from its records; None where these are gone.
    """
    final = final_score_of_curve(curve) if final is None or np.isnan(final) else final
    start, end, arrived = first_tenth(curve), last_tenth(curve), arriving(curve)
    service_s = float(_ratio(start["busy_s"].iloc[-1], start["updates"].iloc[-1]))
    return {
        "final_score": final,
        "mean_score": mean_score(curve),
        "peak_score": peak_score(curve),
        "held_share": held_share(final, curve, score.learned_above),
        "steps_start": float(start["steps"].mean()),
        "steps_end": float(end["steps"].mean()),
        "steps_per_s": float(_ratio(curve["env_steps"].iloc[-1], curve["clock_s"].iloc[-1])),
        "episodes_per_s": float(_ratio(curve["episodes"].iloc[-1], curve["clock_s"].iloc[-1])),
        "updates_per_s_start": float(_ratio(start["updates"].iloc[-1], start["clock_s"].iloc[-1])),
        "utilisation_start": float(np.minimum(1.0, _ratio(start["busy_s"].iloc[-1], start["clock_s"].iloc[-1]))),
        "load_start": load_between(arrived, 0.0, 0.1),
        "load_end": load_between(arrived, 0.9, 1.0),
        "cycle_s_start": float(start["episode_s"].mean()),
        "service_s_start": service_s,
        **times_to(curve, score.marks),
    }


def _ratio(numerator, denominator):
    """Return numerator / denominator, and NaN where the denominator is 0."""
    numerator, denominator = np.asarray(numerator, float), np.asarray(denominator, float)
    return np.divide(numerator, denominator, out=np.full(denominator.shape, np.nan), where=denominator != 0)
