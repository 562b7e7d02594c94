"""Loading: what cells hold or their compact tables kept; missing, failed, foreign or damaged data are called so."""

import json
import shutil

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from a3c_core.records.tables import read_records
from analysis.data import compact
from analysis.data.load import assemble, collect, load_study, read_plan
from analysis.data.study import StudyError
from tests.analysis_studies import COMMIT, make, make_tiny, plan, run, write_metadata
from tests.sweeps import forget_digests


@pytest.fixture(scope="module")
def tiny_once(tmp_path_factory):
    return make_tiny(tmp_path_factory.mktemp("results"))


@pytest.fixture
def tiny(tiny_once, tmp_path):
    """A copy of the tiny study to spoil."""
    shutil.copytree(tiny_once, tmp_path / "tiny")
    return tmp_path / "tiny"


def status_of(folder, cell):
    row = load_study(folder).runs.set_index("cell").loc[cell]
    return row["status"], row["reason"]


def test_a_whole_study(tiny_once):
    study = load_study(tiny_once)
    assert set(study.runs["status"]) == {"finished"}
    assert [schedule.label for schedule in study.schedules()] == ["4", "10", "20", "6→12", "10→32"]
    assert set(study.runs["commit"]) == {COMMIT}
    assert study.variants == [""]
    row = study.runs.set_index("cell").loc["workers=20,seed=1"]
    records = read_records(tiny_once / "cells" / "workers=20,seed=1").to_pandas()
    assert row["final_score"] == records.sort_values("started_s", kind="stable")["score"][255:285].mean()
    assert row["n_star"] == pytest.approx(row["n0"] + 1)
    assert row["load_start"] > 1.0 > study.runs.set_index("cell").loc["workers=4,seed=1"]["load_start"]


def test_workers_of_dynamic_schedules_grow(tiny_once):
    study = load_study(tiny_once)
    grown = next(study.each_curve(study.schedules(dynamic=True)[0]))["workers"]
    assert grown.iloc[0] == 6
    assert grown.max() > 6


def test_without_its_cells_a_study_is_the_same(tiny):
    before = load_study(tiny)
    compact.write(tiny, collect(tiny, read_plan(tiny)))
    shutil.rmtree(tiny / "cells")
    after = load_study(tiny)
    pd.testing.assert_frame_equal(after.runs, before.runs)
    pd.testing.assert_frame_equal(after.curves, before.curves)


def test_one_cell_run_again_does_not_make_the_study_forget_the_others(tiny):
    compact.write(tiny, collect(tiny, read_plan(tiny)))
    before = load_study(tiny)
    for cell in (tiny / "cells").iterdir():
        if cell.name != "workers=4,seed=0":
            shutil.rmtree(cell)
    pd.testing.assert_frame_equal(load_study(tiny).runs, before.runs)


def test_results_of_other_settings_are_not_used(tiny):
    """The compact tables of a longer study with the same cell ids say nothing about this one."""
    compact.write(tiny, collect(tiny, read_plan(tiny)))
    shutil.rmtree(tiny / "cells")
    content = json.loads((tiny / "study.json").read_text())
    for cell in content["cells"]:
        cell["config"]["episodes"] = 301
    (tiny / "study.json").write_text(json.dumps(content))
    assert set(load_study(tiny).runs["status"]) == {"missing"}


def test_cells_that_have_not_ended_well(tiny):
    cells = tiny / "cells"
    shutil.rmtree(cells / "workers=4,seed=0")
    write_metadata(cells / "workers=4,seed=1", "failed", reason="ValueError: no")
    running = cells / "workers=10,seed=0"
    records = pq.read_table(running / "episodes.parquet").slice(0, 123)
    for name in ("episodes.parquet", "summary.json"):
        (running / name).unlink()
    (running / "episodes.parts").mkdir()
    pq.write_table(records, running / "episodes.parts" / "000000.parquet")
    write_metadata(running, "running")
    study = load_study(tiny)
    rows = study.runs.set_index("cell")
    assert rows.loc["workers=4,seed=0", "status"] == "missing"
    assert rows.loc["workers=4,seed=1", ["status", "reason"]].tolist() == ["failed", "ValueError: no"]
    assert rows.loc["workers=10,seed=0", ["status", "played"]].tolist() == ["running", 123]
    assert len(study.done) == 7
    assert len(study.missing) == 3
    assert study.fixed(4) is None


def test_a_foreign_parquet_file_is_not_taken_for_episodes(tiny):
    path = tiny / "cells" / "workers=4,seed=0" / "episodes.parquet"
    forget_digests(path.parent)
    pq.write_table(pa.table({"score": [1] * 300, "name": ["a"] * 300}), path)
    status, reason = status_of(tiny, "workers=4,seed=0")
    assert status == "unreadable"
    assert "not one of ours" in reason


def test_damaged_records(tiny):
    path = tiny / "cells" / "workers=4,seed=0" / "episodes.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "damaged" in status_of(tiny, "workers=4,seed=0")[1]
    path.write_bytes(whole)
    forget_digests(path.parent)
    records = pq.read_table(path)
    pq.write_table(records.take([*range(10, 300), *range(10)]), path)
    assert "in order" in status_of(tiny, "workers=4,seed=0")[1]
    path.unlink()
    assert "missing" in status_of(tiny, "workers=4,seed=0")[1]


def test_gaps_in_records(tiny):
    path = tiny / "cells" / "workers=4,seed=0" / "episodes.parquet"
    table = pq.read_table(path).to_pandas()
    table["score"] = table["score"].astype(float)
    table.loc[5, "score"] = None
    forget_digests(path.parent)
    pq.write_table(pa.Table.from_pandas(table), path)
    assert "gaps" in status_of(tiny, "workers=4,seed=0")[1]


def test_a_directory_with_other_settings_is_not_the_cell(tiny):
    path = tiny / "cells" / "workers=4,seed=0" / "config.json"
    path.write_text(path.read_text().replace('"episodes": 300', '"episodes": 999'))
    assert status_of(tiny, "workers=4,seed=0")[0] == "different"


def test_an_overloaded_run_counts_as_collapsed(tmp_path):
    exchange = {"channel": "mailbox", "pull": "at_once", "queue": "unbounded", "overload_limit": 60}
    folder = make(tmp_path / "overload", {"workers": ["40"], "seed": [0]}, episodes=2000, exchange=exchange)
    row = load_study(folder).runs.iloc[0]
    assert row["status"] == "overloaded"
    assert row["played"] < 2000
    assert row["collapsed"]
    assert pd.isna(row["clock_s"])


def test_settings_become_variants(tmp_path):
    axes = {"update_s": [0.002, 0.02], "workers": ["2", "2->3"], "schedule.rule": ["report", "slides"], "seed": [0]}
    folder = tmp_path / "variants"
    cells = plan(folder, axes, episodes=20)
    run(folder, cells[0])
    study = load_study(folder)
    assert study.variants == ["update 0.002 s", "update 0.02 s"]
    assert [s.label for s in study.main.schedules(done=False)] == ["2", "2→3 report", "2→3 slides"]
    assert len(study.runs) == 6  # fixed workers have no rule, so that half of their cells are repetitions


def test_what_is_no_study(tmp_path):
    with pytest.raises(StudyError, match="no folder"):
        load_study(tmp_path / "nowhere")
    with pytest.raises(StudyError, match=r"no study\.json"):
        load_study(tmp_path)
    for content in ("[1, 2", '{"name": "x"}', '{"name": "x", "question": "?", "axes": {}, "cells": [{"id": 3}]}'):
        (tmp_path / "study.json").write_text(content)
        with pytest.raises(StudyError, match="not a study's plan"):
            load_study(tmp_path)
    (tmp_path / "study.json").write_text('{"name": "x", "question": "?", "axes": {}, "cells": []}')
    with pytest.raises(StudyError, match="plans no cells"):
        load_study(tmp_path)


def test_foreign_compact_tables_are_refused(tiny):
    compact.write(tiny, collect(tiny, read_plan(tiny)))
    pq.write_table(pa.table({"x": [1]}), tiny / "runs.parquet")
    with pytest.raises(StudyError, match="not a compact study table"):
        load_study(tiny)
    (tiny / "runs.parquet").write_text("no parquet")
    with pytest.raises(StudyError, match="can't be read"):
        load_study(tiny)


def test_a_plan_without_any_runs(tmp_path):
    plan(tmp_path / "planned", {"workers": ["2"], "seed": [0, 1]}, episodes=20)
    study = load_study(tmp_path / "planned")
    assert len(study.done) == 0
    assert study.schedules() == []
    assert assemble(read_plan(tmp_path / "planned"), compact.empty()).planned_episodes == 20
