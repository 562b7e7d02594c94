"""One number of workers that a master bears: known before the runs, and the same wherever a study speaks of it."""

from dataclasses import replace

import pandas as pd
import pytest

from a3c_core.config import RunConfig
from a3c_core.virtual.capacity import capacity
from a3c_core.virtual.costs import load_profile
from analysis import report
from analysis.data.capacity import limit_of, numbers_of
from analysis.data.load import load_study, read_plan
from tests.analysis_studies import made_up, make_tiny
from tests.capacity_words import check


@pytest.fixture(scope="module")
def built(tmp_path_factory, plain_pictures):
    folder = make_tiny(tmp_path_factory.mktemp("results"))
    assert report.main([str(folder)]) == 0
    return folder


def test_a_studys_pages_have_one_value(built):
    assert check(built, load_study(built)) >= 5
    table = pd.read_csv(built / "tables" / "capacity.csv")
    assert table["workers"].item() == pytest.approx(limit_of(load_study(built)).workers, rel=1e-4)


def test_another_value_would_be_found(built):
    text = (built / "README.md").read_text(encoding="utf-8")
    (built / "README.md").write_text(f"{text}\nHere N0 = C / S = 99.9.", encoding="utf-8")
    with pytest.raises(AssertionError):
        check(built, load_study(built))
    (built / "README.md").write_text(text, encoding="utf-8")


def test_it_is_the_median_over_seeds_with_its_range(built):
    study = load_study(built)
    by_seed = [capacity(RunConfig.model_validate(cell["config"])).n0 for cell in read_plan(built).cells[:2]]
    limit = limit_of(study)
    assert (limit.name, limit.low, limit.high) == ("N0", pytest.approx(min(by_seed)), pytest.approx(max(by_seed)))
    assert limit.workers == pytest.approx(sum(by_seed) / 2)
    assert limit.words == f"N0 = C / S = {limit.workers:.1f} ({limit.low:.1f} to {limit.high:.1f} by seed)"


@pytest.mark.parametrize("seed", [0, 3])
def test_results_of_older_programs_get_it_from_their_settings_and_their_costs(seed):
    """Their summaries do not tell, and their costs may have another name by now."""
    config = RunConfig(workers="20", profile="report", seed=seed)
    then = capacity(config.model_copy(update={"profile": "report-tf2.21"}))
    numbers = numbers_of(config.model_dump(mode="json"), {"updates": 1}, load_profile("report-tf2.21"))
    assert (numbers["n0"], numbers["limit_name"]) == (pytest.approx(then.n0), "N0")
    assert numbers["n0"] != pytest.approx(capacity(config).n0, rel=0.5)


def test_what_runs_came_to_does_not_change_it(built):
    study = load_study(built)
    longer = replace(study, curves=study.curves.assign(steps=9_999.0), runs=study.runs.assign(cycle_s_start=99.0))
    assert limit_of(longer) == limit_of(study)


def test_where_it_is_not_known_nothing_is_said():
    assert limit_of(made_up({"10": {}})) is None
    free = {"limit_name": "N0", "limit_workers": float("inf"), "n0": float("inf"), "n_star": float("inf")}
    assert limit_of(made_up({"10": {**free, "untrained_cycle_s": 0.0, "untrained_service_s": 0.0}})) is None
