"""Snapshots of a run: at even parts of it, without a change of its records, and side by side in an animation."""

import pytest
from PIL import Image

from a3c.play import __main__ as play
from a3c_core.config import RunConfig
from a3c_core.records import checkpoints
from a3c_core.train import Run, train
from experiments.tracking import artifacts

EPISODES, WANTED = 400, 4


def config(**settings) -> RunConfig:
    return RunConfig(workers="2", episodes=EPISODES, profile="uniform", **settings)


def kept(run) -> list[int]:
    """Return after how many episodes each snapshot was taken, the first first."""
    return [checkpoints.records_of(path) for path in checkpoints.found(run / "snapshots")[::-1]]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    train(config(snapshots=WANTED), folder)
    return folder


def test_they_lie_at_even_parts_of_the_run(run):
    places = kept(run)
    assert len(places) == WANTED + 1
    assert (places[0], places[-1]) == (0, EPISODES)
    parts = [part * EPISODES // WANTED for part in range(WANTED + 1)]
    assert all(part <= place < part + EPISODES // WANTED for part, place in zip(parts, places, strict=True))
    first, last = checkpoints.found(run / "snapshots")[-1], checkpoints.found(run / "snapshots")[0]
    assert (checkpoints.load(first).parameters != checkpoints.load(last).parameters).any()
    assert (checkpoints.load(last).parameters == checkpoints.load(run).parameters).all()


def test_records_are_the_same_bytes_with_and_without(run, tmp_path):
    train(config(), tmp_path)
    assert not (tmp_path / "snapshots").exists()
    for name in ("episodes.parquet", "updates.parquet"):
        assert (tmp_path / name).read_bytes() == (run / name).read_bytes()


def test_a_run_that_goes_on_forgets_those_of_the_time_it_lost(run, tmp_path):
    begun = Run(config(snapshots=WANTED), tmp_path)
    begun.runtime.start(lambda: False)
    begun.checkpoint()  # at its very beginning
    begun._keep_snapshot()
    while not kept(tmp_path)[-1]:
        begun.advance(20)
        begun._keep_snapshot()  # beyond the checkpoint: then it is killed
    train(config(snapshots=WANTED), tmp_path)
    assert len(kept(tmp_path)) == WANTED + 1
    assert kept(tmp_path)[0] == 0


def test_they_play_side_by_side(run, tmp_path, capsys):
    play.main(["--learning", str(run), "--gif", str(tmp_path / "x.gif"), "--gif-steps", "30"])
    assert "x.gif: " in capsys.readouterr().out
    with Image.open(tmp_path / "x.gif") as animation:
        assert animation.n_frames >= 15
        assert animation.width > 3 * animation.height / 2  # five games in a row


def test_mlflow_gets_the_animation_of_a_run_that_has_some(run, tmp_path):
    artifacts.collect(run, tmp_path)
    assert (tmp_path / "learning.gif").exists()


def test_a_run_without_any_is_one_line(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        play.main(["--learning", str(tmp_path)])
    assert ended.value.code == 2
    assert "snapshots=4" in capsys.readouterr().err
