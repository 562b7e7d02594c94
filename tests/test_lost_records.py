"""Missing records are noticed: a run goes back to the newest checkpoint that its records support, or starts over."""

import json
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

import run_sweep
from a3c_core.config import ExchangeConfig, RunConfig
from a3c_core.records.completeness import flaw, setback
from a3c_core.records.tables import RecordsLost, read_records, sound_records
from a3c_core.train import Run, train
from experiments.grid.cells import expand
from experiments.grid.file import read_grid
from experiments.study_folder import StudyFolder
from experiments.sweep.one_cell import Ending
from experiments.sweep.runner import _confirmed
from tests.sweeps import forget_digests, metadata, results, sweep, write_grid

CONFIG = RunConfig(workers="6", episodes=600, exchange=ExchangeConfig(channel="mailbox", queue="unbounded"))
QUIET = "--no-tracking"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nothing happened to."""
    directory = tmp_path_factory.mktemp("whole")
    train(CONFIG, directory)
    return directory


@pytest.fixture
def interrupted(tmp_path):
    """The same run, interrupted twice: two checkpoints, and two parts of records."""
    for events in (500, 900):
        run = Run(CONFIG, tmp_path)
        run.runtime.start(lambda: False)
        run.advance(events)
        run.checkpoint()
    assert len(list((tmp_path / "checkpoints").iterdir())) == 2
    return tmp_path


def parts(directory: Path) -> list[Path]:
    return sorted((directory / "episodes.parts").iterdir())


def truncate(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


@pytest.mark.parametrize("spoil", [Path.unlink, truncate])
@pytest.mark.parametrize(("part", "copes"), [(-1, "goes back to record"), (0, "starts over")])
def test_a_lost_part_sends_a_run_back_to_the_same_bytes(interrupted, whole, spoil, part, copes):
    spoil(parts(interrupted)[part])
    with pytest.warns(UserWarning, match=copes):
        summary = train(CONFIG, interrupted)
    assert summary.episodes == 600
    assert (interrupted / "episodes.parquet").read_bytes() == (whole / "episodes.parquet").read_bytes()


def test_records_with_a_gap_support_only_what_comes_before_it(interrupted):
    first, last = parts(interrupted)
    before = len(sound_records(interrupted))
    assert setback(interrupted) is None
    last.rename(last.with_name("000007.parquet"))
    assert len(sound_records(interrupted)) == before  # only the names of parts changed
    first.unlink()
    assert len(sound_records(interrupted)) == 0
    assert len(setback(interrupted).checkpoints) == 2


def test_the_whole_file_serves_an_older_checkpoint_too(whole, tmp_path):
    """The last checkpoint of a finished run is damaged: it goes on from the one before, with the records until then."""
    shutil.copytree(whole, tmp_path / "copy")
    run = Run(CONFIG, tmp_path / "older")
    run.runtime.start(lambda: False)
    run.advance(500)
    run.checkpoint()
    (early,) = (tmp_path / "older" / "checkpoints").iterdir()
    (last,) = (tmp_path / "copy" / "checkpoints").iterdir()
    shutil.copytree(early, last.with_name(early.name))
    truncate(last / "learner.npz")
    with pytest.warns(UserWarning, match="damaged"):
        train(CONFIG, tmp_path / "copy")
    assert results(tmp_path / "copy") == results(whole)


@pytest.mark.parametrize(("episodes", "removed"), [(4500, ""), (8300, "episodes.parts/000000.parquet")])
def test_a_run_whose_records_are_removed_does_not_claim_to_be_finished(tmp_path, episodes, removed):
    config = RunConfig(workers="4", episodes=episodes, profile="uniform")
    directory = tmp_path / "run"

    def remove(record):
        if record.episode == episodes - 50:
            doomed = directory / removed
            doomed.unlink() if removed else shutil.rmtree(doomed)

    with pytest.raises(RecordsLost, match="records are left"):
        train(config, directory, on_episode=remove)
    with pytest.warns(UserWarning, match="starts over") if removed else nullcontext():
        train(config, directory)
    assert len(read_records(directory)) == episodes
    assert flaw(directory, episodes) is None


@pytest.fixture
def finished(tmp_path, monkeypatch):
    """A finished sweep of one cell."""
    monkeypatch.chdir(tmp_path)
    write_grid(tmp_path, axes={"workers": [2]})
    assert run_sweep.main(["--grid", "tiny", QUIET]) == 0
    return tmp_path / "results/tiny/cells/workers=2,seed=0"


@pytest.mark.parametrize(
    ("spoil", "said"), [(Path.unlink, "episodes.parquet is missing"), (truncate, "episodes.parquet can't be read")]
)
def test_a_finished_cell_without_sound_records_runs_again(finished, spoil, said, capfd):
    before, identity = results(finished), metadata(finished)["uid"]
    spoil(finished / "episodes.parquet")
    assert run_sweep.main(["--grid", "tiny", QUIET]) == 0
    output = capfd.readouterr().out
    assert f"1 cell finished once, but not whole, such as workers=2,seed=0 (its {said}" in output
    assert (
        "0 of the 300 records before its newest checkpoint are there, readable and unchanged: it starts over" in output
    )
    assert results(finished) == before
    assert metadata(finished)["uid"] != identity  # MLflow has all of the other one
    assert run_sweep.main(["--grid", "tiny", QUIET]) == 0
    assert "1 cell already finished: skipped" in capfd.readouterr().out


def test_a_cell_without_its_summary_gets_it_back_from_its_last_checkpoint(finished, capfd):
    before, identity = results(finished), metadata(finished)["uid"]
    (finished / "summary.json").write_text("{}")
    assert run_sweep.main(["--grid", "tiny", QUIET]) == 0
    assert "its summary.json is missing or not a run's summary" in capfd.readouterr().out
    assert results(finished) == before
    assert metadata(finished)["uid"] == identity


def test_fewer_records_than_the_summary_or_the_plan_says(finished):
    forget_digests(finished)
    summary = json.loads((finished / "summary.json").read_text())
    assert flaw(finished, 300) is None
    assert flaw(finished, 400) == "its summary.json tells of 300 of 400 episodes"
    (finished / "summary.json").write_text(json.dumps({**summary, "episodes": 301}))
    assert flaw(finished, 300) == "its episodes.parquet holds 300 of 301 episodes"


def test_what_a_removed_folder_left_behind_is_not_taken_for_a_whole_run(finished, tmp_path):
    """The cell went on after its folder was removed: a late part and a checkpoint that rests on all of them."""
    before = results(finished)
    for name in ("episodes.parquet", "summary.json", "config.json", "metadata.json"):
        (finished / name).unlink()
    ended = sweep(tmp_path, "--grid", "tiny", QUIET)
    assert ended.returncode == 0
    assert "it starts over" in ended.stdout
    assert results(finished) == before


def test_a_sweep_does_not_call_done_what_is_gone(finished, tmp_path):
    study = StudyFolder(tmp_path / "results", "tiny")
    (cell,) = expand(read_grid(tmp_path / "tiny.yaml").grid)
    assert _confirmed(study, Ending(cell, "finished")).status == "finished"
    shutil.rmtree(finished)
    gone = _confirmed(study, Ending(cell, "finished"))
    assert (gone.status, "the same command runs it again" in gone.reason) == ("failed", True)


def test_a_run_whose_only_checkpoint_is_damaged_starts_over(tmp_path, whole):
    run = Run(CONFIG, tmp_path)
    run.runtime.start(lambda: False)
    run.advance(500)
    run.checkpoint()
    (only,) = (tmp_path / "checkpoints").iterdir()
    truncate(only / "learner.npz")
    with pytest.warns(UserWarning, match=r"learner\.npz is damaged.*it starts over"):
        train(CONFIG, tmp_path)
    assert (tmp_path / "episodes.parquet").read_bytes() == (whole / "episodes.parquet").read_bytes()
