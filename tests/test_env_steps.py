"""Runs that env steps end: no episode begins after them, and curves are cut into parts of them."""

import numpy as np
import pytest

from a3c_core.config import RunConfig
from a3c_core.records.completeness import flaw
from a3c_core.records.tables import read_records
from a3c_core.train import Run, train
from analysis.data.compact import measure
from analysis.data.curves import over
from analysis.data.load import load_study
from tests.analysis_studies import make

LIMIT = 20_000


@pytest.mark.parametrize("algorithm", ["a3c", "q", "ppo", "dppo"])
def test_no_episode_begins_after_them(algorithm, tmp_path):
    summary = train(RunConfig(workers="4", env_steps=LIMIT, algorithm=algorithm), tmp_path)
    records = read_records(tmp_path).to_pandas()
    assert summary.outcome == "finished"
    assert summary.env_steps == records["steps"].sum()
    assert LIMIT <= summary.env_steps < LIMIT + 4 * records["steps"].max()
    assert flaw(tmp_path, 100_000, LIMIT) is None
    assert flaw(tmp_path, 100_000, LIMIT * 2) is not None
    assert flaw(tmp_path, 100_000) is not None


def test_the_runs_progress_goes_by_them():
    run = Run(RunConfig(workers="2", env_steps=500, topology="synchronous"), None)
    run.runtime.start()
    shares = [run.runtime.topology.progress(0).share]
    while run.advance(1):
        shares.append(run.runtime.topology.progress(0).share)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert shares == sorted(shares)
    assert run.runtime.log.episodes < 50


@pytest.mark.parametrize("runtime", ["processes", "threads", "ray"])
def test_real_runs_end_with_their_episodes(runtime):
    with pytest.raises(ValueError, match=f"with runtime {runtime} the episodes do"):
        RunConfig(env_steps=LIMIT, runtime=runtime)


def test_bins_are_parts_of_them(tmp_path):
    train(RunConfig(workers="4", env_steps=LIMIT), tmp_path)
    curve = measure(tmp_path, "one", 100_000, LIMIT).curve
    assert len(curve) > 90
    assert np.diff(curve["env_steps"]).max() < LIMIT / 100 + 500
    assert 0.9 * LIMIT < curve["env_steps"].iloc[-1] <= LIMIT
    assert len(measure(tmp_path, "one", 100_000).curve) == 1  # parts of the episodes would be


def test_a_study_of_them_says_so(tmp_path):
    study = load_study(make(tmp_path / "short", {"workers": ["2", "4"], "seed": [0, 1]}, env_steps=4_000))
    assert study.length == "4,000 env steps"
    assert len(study.done) == 4
    band = over(study, study.fixed(4), "score", "episodes")
    assert band.runs == 2
    assert band.x[-1] > 20
