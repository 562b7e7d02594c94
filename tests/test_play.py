"""The command that shows a checkpoint playing: its scores, its animation, and what it says to mistakes."""

import importlib.util
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image, ImageSequence

from a3c.play.__main__ import main
from a3c.play.policies import environment_of, greedy_policy
from a3c.play.scores import mean_interval
from a3c_core.config import RunConfig
from a3c_core.models.dense import DenseModel
from a3c_core.optimizers import Optimizer
from a3c_core.records import checkpoints
from tests.learner_cases import trained_parameters


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run's directory with one checkpoint."""
    directory = tmp_path_factory.mktemp("run")
    optimizer = Optimizer(DenseModel().spec.size)
    optimizer.updates = 12_345
    config = RunConfig().model_dump(mode="json")
    folder = directory / "checkpoints"
    checkpoints.save(folder, "dense", DenseModel(), trained_parameters(), optimizer, {"config": config})
    return directory


def played(capsys, *arguments):
    """Return [(episode, score, steps, ending)] of what the command printed."""
    main([str(argument) for argument in arguments])
    rows = re.findall(r"^│ +(\d+) │ +(\d+) │ +([\d,]+) │ +-?\d+ │ (\S+)", capsys.readouterr().out, re.MULTILINE)
    return [(int(episode), int(score), int(steps.replace(",", "")), ending) for episode, score, steps, ending in rows]


def test_scores_are_those_of_the_compiled_engine(run, capsys):
    from a3c_core.build import make_engine

    engine = make_engine(RunConfig(environment={"max_episode_steps": 500}))
    world, expected = engine.new_environment(), []
    for episode in range(4):
        world.begin_episode(5, 0, episode)
        rollout = engine.rollout(trained_parameters(), world)
        expected.append((episode, rollout.score, rollout.env_steps, "death" if rollout.terminated else "time"))
    assert played(capsys, "--checkpoint", run, "--episodes", 4, "--seed", 5, "--max-steps", 500) == expected


def test_table_sums_up(run, capsys):
    main(["--checkpoint", str(run), "--episodes", "3", "--max-steps", "300"])
    text = capsys.readouterr().out
    scores = [int(score) for score in re.findall(r"^│ +\d+ │ +(\d+) │", text, re.MULTILINE)]
    assert "dense after 12,345 updates" in text
    for name, value in (("mean", np.mean(scores)), ("median", np.median(scores))):
        assert re.search(rf"{name} │ +{value:.1f} ", text)
    assert re.search(rf"max │ +{max(scores)} ", text)
    low, high = mean_interval(scores)
    assert re.search(rf"95% sure │ +{low:.1f} to {high:.1f} ", text)


def test_the_interval_of_the_mean_is_students():
    low, high = mean_interval([1.0, 2.0, 3.0, 4.0])
    assert (low + high) / 2 == pytest.approx(2.5)
    assert high - low == pytest.approx(2 * 3.1824 * np.sqrt(5 / 3 / 4), rel=1e-4)
    assert mean_interval([1.0]) is None


def test_chance_plays_worse_and_needs_no_network(run, capsys):
    arguments = "--checkpoint", run, "--episodes", 5, "--max-steps", 400
    learned, chance = played(capsys, *arguments), played(capsys, *arguments, "--random")
    assert np.mean([score for _, score, *_ in learned]) > 3
    assert np.mean([score for _, score, *_ in chance]) < 1
    assert played(capsys, *arguments, "--random") == chance


def test_a_film_is_written_or_what_it_needs_is_said(run, tmp_path, capsys):
    path = tmp_path / "bird.mp4"
    arguments = ["--checkpoint", str(run), "--episodes", "1", "--max-steps", "20", "--mp4", str(path)]
    if importlib.util.find_spec("cv2") is None:
        with pytest.raises(SystemExit):
            main(arguments)
        assert "make setup-atari" in capsys.readouterr().err
    else:
        main(arguments)
        assert path.read_bytes()[4:8] == b"ftyp"


def test_same_seed_same_games_and_greed_changes_them(run, capsys):
    arguments = "--checkpoint", run, "--episodes", 6, "--max-steps", 2_000
    first = played(capsys, *arguments)
    assert played(capsys, *arguments) == first
    assert played(capsys, *arguments, "--seed", 1) != first
    greedy = played(capsys, *arguments, "--greedy")
    assert greedy != first
    assert played(capsys, *arguments, "--greedy") == greedy


def test_a_copy_plays_the_same_games_without_what_training_needs(run, tmp_path, capsys):
    games = ("--episodes", 3, "--max-steps", 300)
    original = played(capsys, "--checkpoint", run, *games, "--copy", tmp_path / "best")
    assert played(capsys, "--checkpoint", tmp_path / "best", *games) == original
    (copy,) = (tmp_path / "best").iterdir()
    assert sorted(path.name for path in copy.iterdir()) == ["manifest.json", "model.keras"]
    loaded = checkpoints.load(copy)
    assert (loaded.updates, loaded.slots.size) == (12_345, 0)


def test_greedy_policy_has_no_doubts():
    policy = greedy_policy(lambda observation: (np.float32([0.2, 0.5, 0.3]), np.float32([7.0])))
    assert policy(SimpleNamespace(observation=np.zeros(8, np.float32))) == 1


def test_environment_is_that_of_the_run(run):
    checkpoint = checkpoints.load(run)
    assert environment_of(checkpoint) == RunConfig().environment
    assert environment_of(checkpoint, 77).max_episode_steps == 77


def test_gif_shows_a_bird_that_flies(run, tmp_path, capsys):
    path = tmp_path / "new" / "bird.gif"
    arguments = "--checkpoint", run, "--episodes", 3, "--max-steps", 400, "--gif", path, "--gif-steps", 60
    assert len(played(capsys, *arguments)) == 3
    with Image.open(path) as gif:
        frames = [np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(gif)]
        assert gif.info["loop"] == 0
    assert len(frames) == 31
    assert len({frame.tobytes() for frame in frames}) == 31
    assert frames[0].shape == (256, 144, 3)
    assert path.stat().st_size < 300_000
    heights = [_bird_height(frame) for frame in frames]
    assert max(heights) - min(heights) > 5


def _bird_height(frame):
    """Return the row of the bird's yellow, which nothing else in its column has."""
    red, green, blue = frame[:200, 20:37].astype(int).transpose(2, 0, 1)
    return np.nonzero((red > 200) & (green > 170) & (blue < 120))[0].mean()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--checkpoint", "nowhere"], "no directory nowhere"),
        (["--checkpoint", "."], "holds no checkpoint"),
        ([], "--checkpoint"),
        (["--checkpoint", "RUN", "--episodes", "0"], "--episodes: at least 1"),
        (["--checkpoint", "RUN", "--seed", "-1"], "--seed: a whole number"),
        (["--checkpoint", "RUN", "--max-steps", "many"], "--max-steps: a whole number"),
        (["--checkpoint", "RUN", "--episodes", "1", "--max-steps", "9", "--gif", "."], "Is a directory"),
        (["--checkpoint", "RUN", "--fast"], "--fast"),
    ],
)
def test_mistakes_end_with_code_2_and_one_line(arguments, message, run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        main([argument.replace("RUN", str(run)) for argument in arguments])
    error = capsys.readouterr().err
    assert caught.value.code == 2
    assert message in error
    assert error.count("\n") == 1


def test_damaged_checkpoint_is_said_so_in_one_line(tmp_path, run):
    copy = tmp_path / "checkpoints" / "000000000001"
    copy.mkdir(parents=True)
    (copy / "manifest.json").write_text("{")
    command = [sys.executable, "-m", "a3c.play", "--checkpoint", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "manifest.json is damaged" in done.stderr
    assert done.stderr.count("\n") == 1


def test_help_teaches_by_example(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "python -m a3c.play --checkpoint results/run --gif bird.gif" in capsys.readouterr().out
