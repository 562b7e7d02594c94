"""Metrics: binning against a slow twin, exact special cases, and agreement with the run's own summary."""

import math

import numpy as np
import pandas as pd
import pytest

from a3c_core.config import RunConfig
from a3c_core.records.tables import read_records
from a3c_core.train import train
from analysis.data import metrics
from analysis.data.score import score_of
from tests.analysis_studies import SLOW_MASTER


def made_up_records(episodes: int) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    records = pd.DataFrame({name: generator.integers(0, 100, episodes).astype(float) for name in metrics.COLUMNS})
    for name in ("started_s", "finished_s", "applied_s", "master_busy_s", "version_applied"):
        records[name] = np.sort(generator.uniform(0, 1000, episodes))
    records["finished_s"] += 1.0
    records["status"] = np.where(generator.random(episodes) < 0.8, "applied", "dropped")
    return records


def slow_bins(records: pd.DataFrame, planned: int, bins: int) -> list[dict[str, float]]:
    """The obvious way: go through the episodes one by one."""
    parts = min(bins, planned)
    rows: list[dict[str, float]] = []
    for part in range(parts):
        inside = [i for i in range(len(records)) if i * parts // planned == part]
        if not inside:
            continue
        chosen, so_far = records.iloc[inside], records.iloc[: inside[-1] + 1]
        rows.append(
            {
                "bin": part,
                "score": sum(chosen["score"]) / len(chosen),
                "episode_s": sum(chosen["finished_s"] - chosen["started_s"]) / len(chosen),
                "applied": sum(chosen["status"] == "applied") / len(chosen),
                "episodes": len(so_far),
                "env_steps": sum(so_far["steps"]),
                "clock_s": so_far["applied_s"].iloc[-1],
                "busy_s": so_far["master_busy_s"].iloc[-1],
                "arrived_s": max(so_far["finished_s"]),
            }
        )
    return rows


@pytest.mark.parametrize(
    ("played", "planned", "bins"), [(1000, 1000, 100), (997, 997, 100), (430, 1000, 100), (7, 7, 100), (1020, 1000, 10)]
)
def test_bins_are_those_of_the_slow_twin(played, planned, bins):
    records = made_up_records(played)
    twin = pd.DataFrame(slow_bins(records, planned, bins))
    pd.testing.assert_frame_equal(metrics.binned(records, planned, bins)[twin.columns], twin, check_dtype=False)


def curve(scores: list[float], **columns: list[float]) -> pd.DataFrame:
    steps = np.arange(1.0, len(scores) + 1)
    base = {"score": scores, "episodes": 10 * steps, "env_steps": 100 * steps, "updates": 10 * steps, "clock_s": steps}
    base |= {"arrived_s": steps, "busy_s": 0.5 * steps, "steps": [10.0] * len(scores), "applied": [1.0] * len(scores)}
    return pd.DataFrame({**base, "episode_s": [0.1] * len(scores), **columns})


def test_scores_of_a_run():
    rising = curve([float(value) for value in range(20)])
    assert metrics.final_score_of_curve(rising) == 17.5
    assert metrics.mean_score(rising) == 9.5
    assert metrics.held_share(18.5, rising, learned_above=1.0) == 1.0
    fallen = curve([0.0] * 5 + [40.0] * 5 + [10.0] * 10)
    assert metrics.peak_score(fallen) == 40.0
    assert metrics.held_share(10.0, fallen, learned_above=1.0) == 0.25
    assert math.isnan(metrics.held_share(0.1, curve([0.1] * 20), learned_above=1.0))


def test_time_to_a_score_is_censored():
    rising = curve([0.0, 1.0, 2.0, 30.0])
    found = metrics.times_to(rising, [2.0, 31.0])
    assert found["time_to_2_s"] == 3.0
    assert found["episodes_to_2"] == 30.0
    assert found["time_to_31_s"] == found["env_steps_to_31"] == math.inf


def test_load_and_utilisation():
    """Ten gradients a second that take 0.05 s each are half of what the master can do; at 0.2 s each, twice."""
    assert metrics.offered_load(curve([0.0] * 4)) == pytest.approx([0.5] * 4)
    assert metrics.utilisation(curve([0.0] * 4)) == pytest.approx([0.5] * 4)
    late = np.arange(1.0, 5.0) * 2.0  # the master needs twice the time in which they arrive
    overloaded = curve([0.0] * 4, clock_s=list(late), busy_s=list(late))
    assert metrics.offered_load(overloaded) == pytest.approx([2.0] * 4)
    assert metrics.load_between(metrics.arriving(overloaded), 0.0, 0.5) == pytest.approx(2.0)
    assert metrics.utilisation(overloaded) == pytest.approx([1.0] * 4)


def test_load_counts_gradients_not_episodes():
    five_each = curve([0.0] * 4, updates=[50.0, 100.0, 150.0, 200.0])
    assert metrics.offered_load(five_each) == pytest.approx([0.5] * 4)
    half_dropped = curve([0.0] * 4, updates=[5.0, 10.0, 15.0, 20.0], applied=[0.5] * 4)
    assert metrics.offered_load(half_dropped) == pytest.approx([1.0] * 4)


def test_collapse_needs_no_learning_and_a_master_that_fell_behind():
    assert metrics.collapsed(final=0.2, queue_peak=500, workers_max=40, overloaded=False, learned_above=1.0)
    assert metrics.collapsed(final=0.2, queue_peak=5, workers_max=40, overloaded=True, learned_above=1.0)
    assert not metrics.collapsed(final=0.2, queue_peak=8, workers_max=40, overloaded=False, learned_above=1.0)
    assert not metrics.collapsed(final=30.0, queue_peak=500, workers_max=40, overloaded=False, learned_above=1.0)


@pytest.mark.parametrize("workers", ["4", "30"])
def test_a_real_run_agrees_with_its_own_summary(tmp_path, workers):
    config = RunConfig.model_validate({"workers": workers, "episodes": 600, **SLOW_MASTER})
    summary = train(config, tmp_path)
    records = read_records(tmp_path).to_pandas()
    bins = metrics.binned(records, 600)
    numbers = metrics.run_metrics(bins, score_of("a3c_core/FlappyBird-v0"), metrics.final_score(records, 600))
    assert numbers["final_score"] == pytest.approx(records.sort_values("started_s")["score"][510:570].mean())
    assert numbers["mean_score"] == pytest.approx(summary.score_mean)
    assert bins["env_steps"].iloc[-1] == summary.env_steps
    assert bins["clock_s"].iloc[-1] == pytest.approx(summary.clock_s)
    assert bins["busy_s"].iloc[-1] / bins["clock_s"].iloc[-1] == pytest.approx(summary.master_utilisation, rel=1e-3)
    overloaded = int(workers) > summary.n0
    assert (numbers["load_start"] > 1.0) == overloaded
