"""What lies on disk never chooses the code that runs: only a grid or the command line names modules to import."""

import json
import sys

import pytest

from a3c.play import __main__ as play
from a3c_core.config import RunConfig
from experiments.grid.file import read_grid
from experiments.grid.validation import validated_cells
from experiments.sweep import cell
from tests.bad_inputs import forged, sound_checkpoint

ID = "own_game:Own-v0"
MODULE = """
import gymnasium

from a3c_core.games.flappy_env import FlappyBirdEnv

gymnasium.register(id="Own-v0", entry_point=FlappyBirdEnv, max_episode_steps=20)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module of the user's in the current folder, from where Python imports."""
    (tmp_path / "own_game.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("own_game", None)


def imported() -> bool:
    return "own_game" in sys.modules


def checkpoint_of_own_game(folder):
    """Write a checkpoint that says that it was trained on the module's game."""
    files = sound_checkpoint(folder / "sound")
    manifest = forged(json.loads(files["manifest.json"]), "info.config.environment.id", ID)
    (folder / "run").mkdir()
    for name, content in {**files, "manifest.json": manifest.encode()}.items():
        (folder / "run" / name).write_bytes(content)


def test_a_checkpoint_imports_nothing_unless_its_game_is_named_on_the_command_line(module, capsys):
    checkpoint_of_own_game(module)
    arguments = ["--checkpoint", "run", "--episodes", "1"]
    with pytest.raises(SystemExit) as caught:
        play.main(arguments)
    assert caught.value.code == 2
    assert "the module 'own_game', which would be imported" in capsys.readouterr().err
    assert not imported()
    play.main([*arguments, "--trust", ID])
    assert imported()
    assert "after 0 updates" in capsys.readouterr().out


def test_a_cells_file_imports_nothing_unless_the_grid_named_its_game(module, monkeypatch):
    config = RunConfig.model_validate({"engine": "tensorflow", "environment": {"id": ID}})
    (module / "config.json").write_text(config.model_dump_json())
    said, trained = [], []
    monkeypatch.setattr(cell, "train", lambda config, *others, **more: trained.append(config) or pytest.fail("enough"))
    for trusted in ([], ["other_game:Own-v0"], ["own_game"], ["own_game:Other-v0"]):
        assert cell.run_cell(module, "x", said.append, trusted) == 1
        assert "which would be imported" in said[-1]["reason"]
    assert not trained
    with pytest.raises(pytest.fail.Exception):
        cell.run_cell(module, "x", said.append, [ID])
    assert trained == [config]


def test_a_grid_may_name_a_module(module):
    base = f"base: {{engine: tensorflow, runtime: processes, environment: {{id: '{ID}'}}}}"
    (module / "g.yaml").write_text(f"name: g\nquestion: Why?\n{base}\n")
    (only,) = validated_cells(read_grid(module / "g.yaml"))
    assert only.config.environment.id == ID


@pytest.mark.parametrize("part", ["algorithm", "model", "topology", "engine"])
def test_parts_in_a_cells_file_import_nothing_either(part, module):
    (module / "config.json").write_text(json.dumps({part: "own_game:anything"}))
    said = []
    assert cell.run_cell(module, "x", said.append) == 1
    assert "which would be imported" in said[-1]["reason"]
    assert not imported()
