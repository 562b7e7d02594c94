"""Committed cells, run again: the same bytes, here by their first hundredth; and the command that does it whole."""

import hashlib
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from a3c_core.config import RunConfig
from a3c_core.records.tables import read_records
from a3c_core.saved_settings import upgraded
from a3c_core.train import Run, train
from analysis.data.metrics import binned
from experiments import replicate
from experiments.replicate import RESULTS, Known, chosen, known_cells, main

STUDIES = [path.parent for path in sorted(RESULTS.glob("*/runs.parquet")) if known_cells(path.parent)]


@pytest.mark.parametrize("folder", STUDIES, ids=lambda folder: folder.name)
def test_a_committed_cell_begins_as_it_did(folder, tmp_path):
    cells = known_cells(folder)
    known = cells[len(cells) // 2]
    config = RunConfig.model_validate(upgraded(json.loads(known.config)))
    run = Run(config, tmp_path, run=known.cell)
    run.runtime.start(lambda: False)
    theirs = pq.read_table(folder / "curves.parquet", filters=[("cell", "=", known.cell)]).to_pylist()[0]
    while run.runtime.log.episodes < theirs["episodes"]:
        assert run.advance(1)
    run.checkpoint()
    records = read_records(tmp_path).slice(0, theirs["episodes"]).to_pandas()
    ours = binned(records, config.episodes, planned_env_steps=config.env_steps).iloc[0]
    summaries = pq.read_table(folder / "runs.parquet", filters=[("cell", "=", known.cell)])["summary"].to_pylist()
    summary = json.loads(summaries[0])
    of_all_updates = (
        {"staleness", "queue", "queue_wait_s"} if summary.get("update_rows", 0) > summary["episodes"] else set()
    )
    for name in theirs.keys() - {"cell"} - of_all_updates:
        np.testing.assert_equal(np.float32(ours[name]), np.float32(theirs[name]), name)


@pytest.fixture(autouse=True)
def update_digests(tmp_path, monkeypatch):
    """A file of digests of updates that does not exist yet."""
    path = tmp_path / "updates_sha256.csv"
    monkeypatch.setattr(replicate, "UPDATE_DIGESTS", path)
    return path


def study_of(folder, episodes=200, **changed):
    """Write a study of one small cell as git would keep it."""
    config = RunConfig(workers="3", episodes=episodes, profile="uniform")
    summary = train(config, folder / "run", run="workers=3,seed=0")
    digest = hashlib.sha256((folder / "run" / "episodes.parquet").read_bytes()).hexdigest()
    row = {
        "cell": "workers=3,seed=0",
        "config": config.model_dump_json(),
        "summary": json.dumps(summary._asdict()),
        "episodes_sha256": digest,
        **changed,
    }
    pq.write_table(pa.Table.from_pylist([row]), folder / "runs.parquet")


def test_the_same_bytes_are_said_to_be_the_same(tmp_path, capsys):
    study_of(tmp_path)
    assert main([str(tmp_path)]) == 0
    assert "1 of 1 cells gave the same bytes again" in capsys.readouterr().out


def test_other_bytes_are_named(tmp_path, capsys):
    study_of(tmp_path, episodes_sha256="0" * 64)
    assert main([str(tmp_path), "--only", "workers=3,seed=0"]) == 1
    said = capsys.readouterr().out
    assert "DIFFERENT" in said
    assert "workers=3,seed=0" in said


def test_updates_are_compared_once_they_are_recorded(tmp_path, update_digests, capsys):
    study_of(tmp_path)
    assert main([str(tmp_path), "--record"]) == 0
    assert "same bytes (episodes alone)" in capsys.readouterr().out
    digest = hashlib.sha256((tmp_path / "run" / "updates.parquet").read_bytes()).hexdigest()
    assert update_digests.read_text().splitlines()[1] == f'{tmp_path.name},"workers=3,seed=0",{digest}'
    assert main([str(tmp_path)]) == 0
    update_digests.write_text(update_digests.read_text().replace(digest, "0" * 64))
    capsys.readouterr()
    assert main([str(tmp_path)]) == 1
    assert "DIFFERENT updates" in capsys.readouterr().out


def test_one_run_is_killed_and_resumed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(replicate, "_LONG_ENOUGH", 0)
    study_of(tmp_path, episodes=20_000)
    assert main([str(tmp_path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "workers=3,seed=0, killed and resumed" in said


def known(study, cell, env_steps, learned=False, **config):
    return Known(study, cell, json.dumps(config), env_steps, learned, "")


def test_the_cheapest_that_learned_and_every_topology_and_algorithm_are_among_the_cells():
    one = [known("one", "cheap", 1), known("one", "dear", 9), known("one", "learned", 10, learned=True)]
    two = [known("two", "cheap", 2, learned=True), known("two", "hogwild", 5, topology="hogwild")]
    two += [known("two", "hogwild with q", 8, topology="hogwild", algorithm="q"), known("two", "q", 9, algorithm="q")]
    names = [(cell.study, cell.cell) for cell in chosen([one, two], 1)]
    assert names[:3] == [("one", "cheap"), ("one", "learned"), ("two", "cheap")]
    assert names[3:] == [("two", "hogwild"), ("two", "hogwild with q")]


@pytest.mark.parametrize("settings", [{"engine": "tensorflow"}, {"runtime": "processes"}])
def test_cells_whose_bytes_are_one_machines_own_are_left_out(settings, tmp_path):
    study_of(tmp_path)
    assert len(known_cells(tmp_path)) == 1
    study_of(tmp_path, config=RunConfig.model_validate(settings).model_dump_json())
    assert known_cells(tmp_path) == []


@pytest.mark.parametrize("words", [["nowhere"], ["--cells", "0"], ["--only", "workers=77"]])
def test_mistakes_are_one_line(words, capsys):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
