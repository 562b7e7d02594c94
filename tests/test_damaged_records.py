"""Files that are not as they were written: flipped bits and swapped files are noticed wherever records are read."""

import json
import shutil

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import run_sweep
from a3c_core.config import RunConfig
from a3c_core.records import checkpoints
from a3c_core.records.completeness import flaw, setback
from a3c_core.records.layout import ResultsError, read_digests, read_summary
from a3c_core.records.tables import EPISODE_TABLE, read_records, sound_rows
from a3c_core.train import Run, train
from analysis.data.load import load_study
from tests.storm import bits
from tests.storm.damages import flip_bit
from tests.sweeps import forget_digests, metadata, results, write_grid

CONFIG = RunConfig(workers="4", episodes=400, profile="uniform")
FLIPS = 40
CELLS = ("workers=2,seed=0", "workers=4,seed=0")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run, to copy."""
    directory = tmp_path_factory.mktemp("finished") / "run"
    train(CONFIG, directory)
    return directory


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A folder with a finished sweep of two cells, to copy."""
    folder = tmp_path_factory.mktemp("swept")
    write_grid(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run_sweep.main(["--grid", "tiny", "--no-tracking", "--no-page"]) == 0
    return folder


@pytest.fixture
def study(swept, tmp_path, monkeypatch):
    """A copy of it to spoil, where we are."""
    shutil.copytree(swept, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy/results/tiny"


@pytest.mark.parametrize("make", [bits.finished, bits.interrupted])
def test_no_flipped_bit_goes_unnoticed(make, tmp_path):
    path, is_noticed = make(tmp_path / "run", CONFIG)
    assert not is_noticed()
    assert bits.unnoticed(path, is_noticed, FLIPS) == []
    assert not is_noticed()  # each was mended


@settings(max_examples=100, deadline=None, derandomize=True)
@given(place=st.floats(0, 1, exclude_max=True))
def test_a_flipped_bit_in_a_summary_leaves_none(finished, place):
    path = finished / "summary.json"
    whole = path.read_bytes()
    try:
        flip_bit(path, place)
        assert read_summary(finished) is None or json.loads(path.read_bytes()) == json.loads(whole)
        assert flaw(finished, 400) is not None or json.loads(path.read_bytes()) == json.loads(whole)
    finally:
        path.write_bytes(whole)
    assert flaw(finished, 400) is None


@pytest.mark.parametrize("name", ["episodes.parquet", "updates.parquet", "summary.json"])
def test_swapped_files_of_two_cells_are_noticed(study, name, capfd):
    ours, theirs = (study / "cells" / cell for cell in CELLS)
    before = results(ours)
    for kept in ("summary.json", "episodes.parquet", "updates.parquet") if name == "summary.json" else (name,):
        shutil.copy2(theirs / kept, ours / kept)  # a summary with all that it tells of is whole, but of another run
    assert load_study(study).runs["status"].tolist() == ["unreadable", "finished"]
    assert run_sweep.main(["--grid", "tiny", "--no-tracking", "--no-page"]) == 0
    said = capfd.readouterr().out
    reason = "is of a run with other settings" if name == "summary.json" else f"its {name} is damaged"
    assert "1 cell finished once, but not whole" in said
    assert reason in said
    assert results(ours) == before


def test_damaged_records_are_not_read_and_a_run_does_not_build_on_them(finished, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    flip_bit(run / "episodes.parquet", 0.3)
    with pytest.raises(ResultsError, match="is damaged: it is not what the run's summary tells of"):
        read_records(run)
    with pytest.warns(UserWarning, match="it starts over"):
        train(CONFIG, run)
    assert results(run) == results(finished)


def test_a_resumed_run_builds_on_no_damaged_part(finished, tmp_path):
    path, _ = bits.interrupted(tmp_path / "run", CONFIG)
    flip_bit(path, 0.5)
    with pytest.warns(UserWarning, match="readable and unchanged: it starts over"):
        train(CONFIG, tmp_path / "run")
    assert (tmp_path / "run/episodes.parquet").read_bytes() == (finished / "episodes.parquet").read_bytes()


def test_a_part_of_another_run_is_not_taken_for_ones_own(tmp_path):
    ours, _ = bits.interrupted(tmp_path / "ours", CONFIG)
    theirs, _ = bits.interrupted(tmp_path / "theirs", CONFIG.model_copy(update={"seed": 1}))
    assert setback(tmp_path / "ours") is None
    shutil.copy2(theirs, ours)
    assert setback(tmp_path / "ours") is not None


def test_records_are_merged_again_while_no_summary_vouches_for_the_file(finished, tmp_path):
    """A kill between the file and its summary leaves the parts, which the checkpoint vouches for."""
    run = Run(CONFIG, tmp_path)
    run._summarise = lambda *_: run._writer.finish()
    run.finish()
    assert (tmp_path / "episodes.parts").is_dir()
    flip_bit(tmp_path / "episodes.parquet", 0.5)
    assert setback(tmp_path) is None
    train(CONFIG, tmp_path)
    assert not (tmp_path / "episodes.parts").exists()
    assert (tmp_path / "episodes.parquet").read_bytes() == (finished / "episodes.parquet").read_bytes()


def test_results_without_digests_are_read_as_before(finished, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    forget_digests(run)
    assert read_digests(run) == {}
    assert flaw(run, 400) is None
    assert len(read_records(run)) == 400
    (path,) = run.glob("checkpoints/*/manifest.json")
    manifest = json.loads(path.read_bytes())
    info = {name: value for name, value in manifest["info"].items() if name != checkpoints.PART_DIGESTS}
    older = {**manifest, "info": info}
    older["manifest_sha256"] = checkpoints._digest(older)
    path.write_text(json.dumps(older))
    assert checkpoints.vouched_parts(path.parent) == []
    assert sound_rows(run, EPISODE_TABLE) == 400
    train(CONFIG, run)
    assert results(run)["records"] == results(finished)["records"]


@pytest.mark.parametrize("has_digests", [True, False])
def test_a_damaged_column_name_starts_one_cell_over_and_the_others_run(study, has_digests, capfd):
    """Of results without digests too, where reading itself is what notices it."""
    ours, theirs = (study / "cells" / cell for cell in CELLS)
    before = results(ours)
    if not has_digests:
        forget_digests(ours)
    table = pq.read_table(ours / "episodes.parquet")
    names = ["epizode" if name == "episode" else name for name in table.column_names]
    pq.write_table(table.rename_columns(names), ours / "episodes.parquet")
    shutil.rmtree(theirs)
    assert load_study(study).runs["status"].tolist() == ["unreadable", "missing"]
    (ours / "metadata.json").write_text(json.dumps({**metadata(ours), "status": "running"}))
    assert run_sweep.main(["--grid", "tiny", "--no-tracking", "--no-page"]) == 0
    said = capfd.readouterr()
    assert "0 of the 300 records before its newest checkpoint" in said.out
    assert "it starts over" in said.out
    assert "Traceback" not in said.out + said.err
    assert results(ours) == before
    assert metadata(theirs)["status"] == "finished"
