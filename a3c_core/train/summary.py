"""The summary of a run: a few numbers from its records and totals."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from numpy.typing import NDArray

from a3c_core.config import RunConfig
from a3c_core.episode_log import Totals
from a3c_core.real.oversubscription import is_oversubscribed
from a3c_core.virtual.capacity import capacity

Outcome = Literal["finished", "overloaded", "interrupted"]


class RunSummary(NamedTuple):
    """What one run came to. Seconds are those of the run's clock, but for `wall_s`."""

    outcome: Outcome
    episodes: int
    env_steps: int
    updates: int
    clock_s: float
    wall_s: float  # real seconds, of this process
    score_mean: float
    score_last_tenth: float
    episodes_per_s: float
    env_steps_per_s: float
    workers_max: int
    master_utilisation: float
    queue_peak: int
    queue_wait_mean_s: float
    staleness_mean: float
    staleness_p50: float
    staleness_p95: float
    staleness_max: int
    gradients_sent: int
    gradients_applied: int  # a master may make one update of several
    gradients_dropped: int
    gradients_rejected: int
    gradients_lost: int  # with their worker
    crashes: int
    oversubscribed: bool  # more workers and master than this machine has cores: real times are then distorted
    worker_play_s: float  # real seconds, summed over workers; 0 in virtual time
    worker_gradient_s: float
    worker_pull_s: float
    worker_wait_s: float
    worker_apply_s: float  # updates by workers themselves, without a master
    update_rows: int = 0  # in updates.parquet
    results_version: int = 0  # of the program that ran it; older summaries do not tell
    untrained_steps: float | None = None  # an untrained agent's mean episode: see virtual/capacity.py, as for all below
    untrained_cycle_s: float | None = None  # C
    untrained_service_s: float | None = None  # S
    n0: float | None = None  # C / S
    n_star: float | None = None  # (C + S) / S
    limit_workers: float | None = None  # the one of the two that applies to the run's exchange
    limit_name: Literal["N0", "N*"] | None = None  # all of this is None where costs are this machine's
    worker_late_share: float | None = None  # paced runs: of pieces of work, those that took longer than their pace
    worker_late_s: float | None = None  # by how many of the profile's seconds, on average of the late ones
    master_late_share: float | None = None  # the same of the master's updates
    master_late_s: float | None = None
    predictor_busy_s: float | None = None  # virtual time, ga3c: added up over predictors
    learner_busy_s: float | None = None  # virtual time, gorila: added up over learners
    worker_act_s: float | None = None  # of worker_play_s, asking for actions; None where the engine does not know it


def summarise(
    outcome: Outcome,
    column: Callable[[str], NDArray[Any]],
    totals: Totals,
    version: int,
    clock_s: float,
    wall_s: float,
    config: RunConfig,
    time_split: dict[str, float],
) -> RunSummary:
    """Return the summary of a run's totals and records, of which `column` returns one by its name.

    `time_split` is where the workers' real time went, and how well a paced run kept its pace.
    """
    episodes, score_mean, score_last_tenth = _scores(column("score"))
    elapsed_s = clock_s or float("inf")
    return RunSummary(
        outcome=outcome,
        episodes=episodes,
        env_steps=totals.env_steps,
        updates=version,
        clock_s=clock_s,
        wall_s=wall_s,
        score_mean=score_mean,
        score_last_tenth=score_last_tenth,
        episodes_per_s=episodes / elapsed_s,
        env_steps_per_s=totals.env_steps / elapsed_s,
        workers_max=int(column("workers_alive").max(initial=0)),
        master_utilisation=totals.master_busy_s / elapsed_s,
        queue_peak=totals.queue_peak,
        queue_wait_mean_s=_mean(column("queue_wait_s")),
        staleness_mean=totals.staleness.mean(),
        staleness_p50=totals.staleness.percentile(50),
        staleness_p95=totals.staleness.percentile(95),
        staleness_max=totals.staleness.largest,
        gradients_sent=totals.sent,
        gradients_applied=totals.applied,
        gradients_dropped=totals.dropped,
        gradients_rejected=totals.rejected,
        gradients_lost=totals.lost,
        crashes=totals.crashes,
        oversubscribed=is_oversubscribed(config),
        worker_play_s=time_split.get("play_s", 0.0),
        worker_gradient_s=time_split.get("gradient_s", 0.0),
        worker_pull_s=time_split.get("pull_s", 0.0),
        worker_wait_s=time_split.get("wait_s", 0.0),
        worker_apply_s=time_split.get("apply_s", 0.0),
        **capacity_numbers(config),
        worker_late_share=time_split.get("worker_late_share"),
        worker_late_s=time_split.get("worker_late_s"),
        master_late_share=time_split.get("master_late_share"),
        master_late_s=time_split.get("master_late_s"),
        predictor_busy_s=time_split.get("predictor_busy_s"),
        learner_busy_s=time_split.get("learner_busy_s"),
        worker_act_s=time_split.get("act_s") or None,
    )


def capacity_numbers(config: RunConfig) -> dict[str, Any]:
    """Return how many workers the master was to bear, known before the run; nothing where costs are this machine's."""
    if not config.is_virtual and not config.is_paced:
        return {}
    known = capacity(config)
    return {
        "untrained_steps": known.env_steps,
        "untrained_cycle_s": known.cycle_s,
        "untrained_service_s": known.service_s,
        "n0": known.n0,
        "n_star": known.n_star,
        "limit_workers": known.limit,
        "limit_name": known.limit_name,
    }


def _scores(scores: NDArray[Any]) -> tuple[int, float, float]:
    """Return (how many there are, their mean, that of the last tenth). The columns of a long run are large."""
    tenth = max(1, len(scores) // 10)
    return len(scores), _mean(scores), _mean(scores[-tenth:])


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else 0.0
