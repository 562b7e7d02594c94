"""One run from the command line: what it teaches, what it says and leaves, and what it answers to mistakes."""

import signal
import subprocess
import sys

import pytest
from PIL import Image

from a3c.advise.readers.own_runs import read_cell
from a3c_core.config import RunConfig
from a3c_core.records.tables import read_records
from a3c_core.train import train
from a3c_core.train.__main__ import RunProgress, main

COMMAND = [sys.executable, "-m", "a3c_core.train"]


def test_help_teaches_by_example(tmp_path):
    ended = subprocess.run([*COMMAND, "--help"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "python -m a3c_core.train --workers 10 --set learner.learning_rate=1e-3" in ended.stdout


def test_a_run_ends_in_a_sentence_and_a_picture(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["--workers", "4", "--episodes", "300", "--set", "learner.learning_rate=1e-3"]) == 0
    directory = tmp_path / "results/train/workers=4,episodes=300,learner.learning_rate=0.001"
    sentence, picture, watch = capsys.readouterr().out.splitlines()
    assert sentence.startswith("4 workers learned")
    assert "in the last tenth of 300 episodes" in sentence
    assert picture == f"Picture: {(directory / 'score.png').relative_to(tmp_path)}"
    assert Image.open(directory / "score.png").size == (800, 320)
    subprocess.run(watch.partition(": ")[2], shell=True, check=True, cwd=tmp_path, capture_output=True)
    assert (tmp_path / "bird.gif").exists()
    expected = train(RunConfig(workers="4", episodes=300, learner={"learning_rate": 1e-3}), tmp_path / "same")
    assert expected.episodes == 300
    assert read_records(directory)["score"] == read_records(tmp_path / "same")["score"]


@pytest.mark.parametrize("pull", ["at_once", "after_apply"])
def test_a_runs_folder_says_how_it_was_run(pull, tmp_path):
    """So that advise need not guess whether its workers waited, which short updates would not show."""
    assert main(["--workers", "2", "--episodes", "100", "--set", f"exchange.pull={pull}", "--out", str(tmp_path)]) == 0
    assert RunConfig.model_validate_json((tmp_path / "config.json").read_text()).gradients.pull == pull
    assert read_cell(tmp_path).waits is (pull == "after_apply")


def test_settings_are_listed_with_what_was_given(capsys):
    assert main(["--settings", "--workers", "10->20", "--set", "gpus=[0, 1]", "--set", "learner.t_max=null"]) == 0
    lines = [line.partition("  #")[0].strip() for line in capsys.readouterr().out.splitlines()]
    assert {"workers=10->20", "gpus=[0, 1]", "learner.t_max=null", "exchange.queue=bounded"} <= set(lines)


def test_the_parts_chosen_bring_settings_of_their_own(capsys):
    assert (
        main(["--settings", "--set", "exchange.train_min=500", "--set", "topology=ga3c", "--set", "algorithm=a3c"]) == 0
    )
    assert "exchange.train_min=500" in capsys.readouterr().out
    assert main(["--settings", "--set", "algorithm=ppo", "--set", "learner.clip=0.1"]) == 0
    assert "learner.clip=0.1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--set", "exchange.train_min=5", "--set", "topology=ga4c"], "topology: topology must be master,"),
        (["--set", "topology=ga3c", "--set", "exchange.hold=5"], "exchange.hold: unknown setting;"),
        (["--set", "workers"], "workers: write it as key=value"),
        (["--set", "episode=3"], "episode: unknown setting; did you mean episodes?"),
        (["--set", "learning_rate=1"], "did you mean learner.learning_rate?"),
        (["--set", "nonsense=1"], "unknown setting; see --settings"),
        (["--episodes", "many"], "episodes: Input should be a valid integer"),
        (["--episodes", "[" * 5000], "episodes: Input should be a valid integer"),
        (["--workers", "0"], "at least 1 worker"),
        (["--set", "profile=nowhere"], "no cost profile 'nowhere'"),
        (["--set", "environment.observation=raw"], "compiled can't run this"),
        (["--set", "engine=tensorflow", "--set", "environment.id=Nowhere-v0"], "knows no environment 'Nowhere-v0'"),
        (["--episodes", "3", "--out", "a-file"], "a-file"),
        (["--episodes", "3", "--out", "another-run"], "holds a run with other settings"),
    ],
)
def test_a_mistake_is_one_line(arguments, expected, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-file").touch()
    if "another-run" in arguments:
        train(RunConfig(workers="2", episodes=3), tmp_path / "another-run")
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    message = capsys.readouterr().err
    assert stopped.value.code == 2
    assert expected in message
    assert message.startswith("error: ")
    assert message.count("\n") == 1
    assert len(message) < 500


def test_an_interrupted_run_goes_on_with_the_same_command(tmp_path, monkeypatch, capsys):
    command = ["--workers", "2", "--episodes", "500", "--out", str(tmp_path / "run")]

    def interrupt(progress, record):
        if record.episode == 200:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(RunProgress, "__call__", interrupt)
        assert main(command) == 130
    assert capsys.readouterr().err == "Interrupted. The same command goes on from here.\n"
    assert main(command) == 0
    train(RunConfig(workers="2", episodes=500), tmp_path / "whole", run="run")
    files = [(tmp_path / name / "episodes.parquet").read_bytes() for name in ("run", "whole")]
    assert files[0] == files[1]


def test_progress_says_how_far_a_run_is():
    config, said = RunConfig(workers="2", episodes=50), []
    progress = RunProgress(config)
    assert progress.line() == "getting ready"

    def heed(record):
        progress(record)
        said.append(progress.line())

    train(config, on_episode=heed)
    assert said[0].startswith("1 of 50 episodes, score ")
    assert said[-1].startswith("50 of 50 episodes, score ")
    assert "(mean of the last 40), 2 workers" in said[39]
