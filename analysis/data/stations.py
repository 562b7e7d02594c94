"""Who is at work, who waits, and where staleness comes from: what a run's curve and summary tell of its stations.

Of the time that workers are there, they play and differentiate, or else they wait. What learns is a master, servers,
trainers, or the workers themselves; predictors and learners of their own work beside them in some topologies. All of it
is over the whole run, since that is how long the clock of a curve counts.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from a3c_core.virtual.costs import CostProfile
from analysis.data.metrics import per_bin
from analysis.data.study import Study

USUAL_WORKERS = 40  # at which topologies are compared, where a study has them
ROLES = {"worker_busy": "workers", "predictor_busy": "predictors", "learner_busy": "learners", "server_busy": "master"}
ORIGINS = {  # of staleness: updates by others while ...
    "stale_made": "it was made",
    "stale_queued": "it waited for its turn",
    "stale_pulled": "parameters lay in a mailbox",
}


def numbers_of(
    curve: pd.DataFrame, config: Mapping[str, Any], summary: Mapping[str, Any], profile: CostProfile | None
) -> dict[str, float]:
    """Return the share of their time that a run's stations worked, and the parts of its mean staleness."""
    return {**_busy(curve, config, summary, profile), **_origins(curve, config)}


def _busy(
    curve: pd.DataFrame, config: Mapping[str, Any], summary: Mapping[str, Any], profile: CostProfile | None
) -> dict[str, float]:
    exchange = config.get("exchange", {})
    last = curve.iloc[-1]
    clock_s = float(last["clock_s"]) or np.nan  # by a profile without costs it stands still
    servers = exchange.get("shards") or exchange.get("trainers") or 1
    learners = exchange.get("learners") or last["workers"]
    shares = {
        "worker_busy": _playing_s(curve, config, profile) / _there_s(curve),
        "predictor_busy": _number(summary, "predictor_busy_s") / (clock_s * exchange.get("predictors", 1)),
        "learner_busy": _number(summary, "learner_busy_s") / (clock_s * learners),
        "server_busy": last["busy_s"] / (clock_s * servers) if config.get("topology") != "hogwild" else np.nan,
    }
    return {name: float(min(share, 1.0)) for name, share in shares.items()}


def _playing_s(curve: pd.DataFrame, config: Mapping[str, Any], profile: CostProfile | None) -> float:
    """Return how long all workers played: an agent that is told its actions works only when it takes them."""
    if config.get("topology") == "ga3c" and profile is not None:
        return float(curve["env_steps"].iloc[-1]) * profile.act_s * profile.slowdown
    return float((curve["episode_s"] * per_bin(curve["episodes"].to_numpy(float))).sum())


def _there_s(curve: pd.DataFrame) -> float:
    """Return how long all workers were there: until the last episode arrived; the master may get to it much later."""
    return float((per_bin(curve["arrived_s"].to_numpy(float)) * curve["workers"]).sum()) or np.nan


def _origins(curve: pd.DataFrame, config: Mapping[str, Any]) -> dict[str, float]:
    """Return mean staleness in parts: the rate of updates times how long each part took; what is left is the last."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = per_bin(curve["updates"].to_numpy(float)) / per_bin(curve["clock_s"].to_numpy(float))
    rate = np.nan_to_num(rate, posinf=0.0)
    total = curve["staleness"].to_numpy(float)
    queued = np.minimum(rate * curve["queue_wait_s"].to_numpy(float), total)
    made = total - queued
    if config.get("exchange", {}).get("channel") == "mailbox":  # elsewhere what is pulled is the newest
        made = np.minimum(made, rate * curve["episode_s"].to_numpy(float))
    weights = per_bin(curve["episodes"].to_numpy(float))
    parts = {"stale_made": made, "stale_queued": queued, "stale_pulled": total - queued - made}
    return {name: float(np.average(np.nan_to_num(part), weights=weights)) for name, part in parts.items()}


def _number(summary: Mapping[str, Any], name: str) -> float:
    value = summary.get(name)
    return float(value) if isinstance(value, int | float) else np.nan


def varies_topology(study: Study) -> bool:
    """Return whether a study compares topologies."""
    return "topology" in study.done and study.done["topology"].nunique() > 1


def side_by_side(study: Study) -> Study:
    """Return the part in which settings are compared with the same number of workers, each as a schedule of its own."""
    if study.compares_settings:
        return study.shown
    counts = sorted(study.done.loc[~study.done["dynamic"], "end"].unique())
    chosen = USUAL_WORKERS if USUAL_WORKERS in counts else counts[-1]
    runs = study.runs[~study.runs["dynamic"] & (study.runs["end"] == chosen)]
    tints = {variant: number for number, variant in enumerate(study.variants)}
    runs = runs.assign(schedule=runs["variant"], tint=runs["variant"].map(tints), variant="")
    return replace(study, runs=runs, whole=None)
