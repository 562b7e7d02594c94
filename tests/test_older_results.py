"""Results outlive the program that made them: a new setting or a new column never makes older ones go away."""

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import run_sweep
from a3c_core.config import RunConfig
from a3c_core.saved_settings import beyond_defaults, differences, flatten, of_config, upgraded
from analysis import report
from analysis.data import compact
from analysis.data.load import assemble, gather, load_study, read_plan
from analysis.figures import catalogue
from experiments.grid.cells import expand
from experiments.grid.file import read_grid
from experiments.grid.settings import nest
from experiments.study_folder import StudyFolder
from tests.analysis_studies import make, plan, write_metadata
from tests.sweeps import ROOT, write_grid

QUIET = "--no-tracking"
CONFIG = RunConfig(workers="10->20", episodes=500, exchange={"queue": "dropping"})


def without(config: dict[str, Any], name: str) -> dict[str, Any]:
    """Return settings as they were before there was one of that name."""
    return nest({key: value for key, value in flatten(config) if key != name})


def test_settings_that_older_results_do_not_name_have_their_defaults():
    now = CONFIG.model_dump(mode="json")
    at_defaults = set(of_config(CONFIG)) - set(beyond_defaults(of_config(CONFIG)))
    assert len(at_defaults) > 30
    for name in at_defaults:
        assert differences(without(now, name), now) == {}
    for name in ("workers", "episodes", "exchange.queue"):
        assert list(differences(without(now, name), now)) == [name]
    assert differences({**now, "telepathy": True}, now) == {"telepathy": (True, None)}


def test_a_profile_that_got_other_costs_is_known_by_another_name():
    assert upgraded({"profile": "report"}, 2)["profile"] == upgraded({}, 2)["profile"] == "report-tf2.21"
    assert upgraded({"profile": "uniform"}, 2)["profile"] == "uniform"
    for version in (3, None):  # None: who compares settings goes by what is written
        assert upgraded({"profile": "report"}, version)["profile"] == "report"


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """A study of four runs with its compact tables."""
    folder = make(tmp_path_factory.mktemp("results") / "old", {"workers": ["2", "4"], "seed": [0, 1]}, episodes=100)
    compact.write(folder, gather(folder, read_plan(folder)).tables)
    return folder


@pytest.fixture
def old(once, tmp_path):
    """A copy of it whose compact tables were made before there were several agents per worker, without its cells."""
    folder = tmp_path / "old"
    shutil.copytree(once, folder)
    shutil.rmtree(folder / "cells")
    change_runs(folder, lambda config: without(config, "agents_per_worker"))
    return folder


def change_runs(folder: Path, change) -> None:
    """Change the settings of all runs in a compact table."""
    table = pq.read_table(folder / "runs.parquet")
    texts = [json.dumps(change(json.loads(text)), sort_keys=True) for text in table["config"].to_pylist()]
    place = table.column_names.index("config")
    pq.write_table(table.set_column(place, "config", pa.array(texts)), folder / "runs.parquet")


def test_one_run_again_keeps_the_others_of_an_older_program(old, once):
    cell = "workers=4,seed=1"
    shutil.copytree(once / "cells" / cell, old / "cells" / cell)
    gathered = gather(old, read_plan(old))
    assert (gathered.kept, gathered.beyond, len(gathered.tables.runs)) == (3, 0, 4)
    pd.testing.assert_frame_equal(assemble(read_plan(old), gathered.tables).runs, load_study(once).runs)


def test_the_committed_studies_as_the_programs_grids_are_today(tmp_path):
    """What `run_sweep.py --grid report --only …` writes to study.json in a fresh clone, and what a report reads."""
    for name in ("report", "entropy"):
        folder = tmp_path / name
        folder.mkdir()
        for file in ("study.json", "runs.parquet", "curves.parquet"):
            shutil.copy(ROOT / "results" / name / file, folder)
        before = pd.read_parquet(folder / "runs.parquet")
        study, grid = StudyFolder(tmp_path, name), read_grid(ROOT / f"experiments/grids/{name}.yaml").grid
        assert {study.state(cell) for cell in expand(grid)} == {"new"}
        known = study.with_known_seeds(grid)
        study.write(known, expand(known))
        tables = gather(folder, read_plan(folder)).tables
        assert set(load_study(folder).missing["cell"]).isdisjoint(before["cell"])  # only what the grid has got since
        kept, known = (runs.sort_values("cell", ignore_index=True) for runs in (tables.runs, before))
        pd.testing.assert_frame_equal(kept[list(known)], known)  # seeds that the grid no longer has come last


@pytest.mark.parametrize("table", ["runs", "curves"])
def test_tables_with_fewer_or_more_columns_are_read(old, once, table):
    path = old / f"{table}.parquet"
    whole = pq.read_table(path)
    needed = ("cell", "config", "status", "bin", "episodes", "episodes_sha256")
    expected = load_study(once).runs[["cell", "status"]]
    for name in whole.column_names:
        if name not in needed:
            pq.write_table(whole.drop_columns([name]), path)
            pd.testing.assert_frame_equal(load_study(old).runs[["cell", "status"]], expected)
            compact.write(old, gather(old, read_plan(old)).tables)  # can be written again too
    pq.write_table(whole.append_column("mood", pa.array(["good"] * len(whole))), path)
    pd.testing.assert_frame_equal(load_study(old).runs[["cell", "status"]], expected)


def test_a_page_can_be_made_of_tables_with_fewer_columns(old, monkeypatch, capsys):
    everything = catalogue.catalogue
    monkeypatch.setattr(catalogue, "catalogue", lambda study, more: everything(study, more)[:1])
    for table, names in {"runs": ["oversubscribed", "costs"], "curves": ["entropy", "gradient_norm"]}.items():
        path = old / f"{table}.parquet"
        pq.write_table(pq.read_table(path).drop_columns(names), path)
    assert report.main([str(old)]) == 0
    assert "4 of 4 runs as runs.parquet kept them, not seen anew" in capsys.readouterr().out


def test_a_run_that_went_wrong_does_not_replace_an_older_one(old, once):
    cell = "workers=4,seed=1"
    shutil.copytree(once / "cells" / cell, old / "cells" / cell)
    records = old / "cells" / cell / "episodes.parquet"
    records.write_bytes(records.read_bytes()[:1000])
    for _ in range(2):
        gathered = gather(old, read_plan(old))
        assert (gathered.kept, set(gathered.tables.runs["status"])) == (4, {"finished"})
        write_metadata(old / "cells" / cell, "failed", reason="no luck")


def test_runs_that_the_plan_no_longer_knows_stay_in_the_tables(old):
    before = pd.read_parquet(old / "runs.parquet")
    cells = plan(old, {"workers": ["2", "8"], "seed": [0, 1]}, episodes=100)
    gathered = gather(old, read_plan(old))
    compact.write(old, gathered.tables)
    assert (gathered.kept, gathered.beyond) == (2, 2)
    assert sorted(pd.read_parquet(old / "runs.parquet")["cell"]) == sorted(before["cell"])
    study = load_study(old)
    assert study.runs["cell"].tolist() == [cell["id"] for cell in cells]
    assert len(study.done) == 2
    assert set(study.curves["cell"]) == {"workers=2,seed=0", "workers=2,seed=1"}
    plan(old, {"workers": ["2", "4"], "seed": [0, 1]}, episodes=101)  # other settings, the same names
    assert len(load_study(old).done) == 0
    assert len(gather(old, read_plan(old)).tables.runs) == 4


def test_a_sweep_and_a_report_in_a_clone_without_cells(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    everything = catalogue.catalogue
    monkeypatch.setattr(catalogue, "catalogue", lambda study, more: everything(study, more)[:1])
    write_grid(tmp_path, seeds=2)
    assert run_sweep.main(["--grid", "tiny", QUIET]) == 0
    folder = tmp_path / "results" / "tiny"
    compact.write(folder, gather(folder, read_plan(folder)).tables)
    shutil.rmtree(folder / "cells")
    change_runs(folder, lambda config: without(config, "agents_per_worker"))
    plain = json.loads((folder / "study.json").read_text())
    for cell in plain["cells"]:
        cell["config"] = without(cell["config"], "agents_per_worker")
    (folder / "study.json").write_text(json.dumps(plain))
    capfd.readouterr()
    assert run_sweep.main(["--grid", "tiny", QUIET, "--only", "workers=2,seed=0", "--seeds", "1"]) == 0
    assert report.main([str(folder)]) == 0
    assert "index.html: 4 runs, 2 figures; 3 of 4 runs as runs.parquet kept them" in capfd.readouterr().out
    assert len(pd.read_parquet(folder / "runs.parquet")) == 4


def test_a_sweep_does_not_write_over_committed_runs_of_other_settings(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    folder = make(tmp_path / "results" / "tiny", {"workers": ["2"], "seed": [0]}, episodes=100)
    compact.write(folder, gather(folder, read_plan(folder)).tables)
    shutil.rmtree(folder / "cells")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    write_grid(tmp_path, axes={"workers": [2]})
    assert run_sweep.main(["--grid", "tiny", QUIET]) == 2
    assert "holds 1 cell with other settings, such as workers=2,seed=0 (" in capfd.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert run_sweep.main(["--grid", "tiny", QUIET, "--fresh"]) == 0
    assert {path.name: path.read_bytes() for path in (folder / "aside" / "1").iterdir() if path.is_file()} == before
