"""Ctrl-C before a command can do anything: one word and exit code 130, whatever it was importing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from experiments import processes
from experiments.sweep.one_cell import start_cell
from tests.sweeps import ROOT

# A module that a command imports at its start, put in the place of the real one: it sends the signal, and waits for it.
IMPORTED = "import os, signal, time\nos.kill(os.getpid(), signal.{name})\ntime.sleep({pause_s})\n{rest}"
COMMANDS = {
    "run_sweep.py": [str(ROOT / "run_sweep.py"), "--list"],
    "a3c": ["-m", "a3c", "train", "--settings"],
    "a3c_core.train": ["-m", "a3c_core.train", "--settings"],
    "a3c.play": ["-m", "a3c.play", "--help"],
    "experiments.validate": ["-m", "experiments.validate", "--help"],
    "analysis.notebooks": ["-m", "analysis.notebooks", "--help"],
}


def interrupting(folder: Path, module: str, **how) -> dict[str, str]:
    """Return an environment in which the import of `module` sends the importing process a signal."""
    (folder / f"{module}.py").write_text(IMPORTED.format(**{"name": "SIGINT", "pause_s": 600, "rest": "", **how}))
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}


@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_at_an_import_is_one_word(command, tmp_path):
    environment = interrupting(tmp_path, "numpy")
    words = [sys.executable, *COMMANDS[command]]
    ended = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "interrupted\n")


def test_other_errors_are_still_shown(tmp_path):
    environment = interrupting(tmp_path, "gymnasium", name="SIGCONT", pause_s=0, rest="1 / 0")
    words = [sys.executable, "-m", "a3c_core.train"]
    ended = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "ZeroDivisionError" in ended.stderr


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_cell_that_is_told_to_stop_at_an_import_says_so_and_leaves_no_traceback(name, tmp_path, monkeypatch):
    """The module's real content follows, so that the imports come to their end and the cell can answer."""
    real = "import sys\nsys.path.pop(0)\ndel sys.modules['yaml']\nimport yaml"
    environment = interrupting(tmp_path, "yaml", name=name, pause_s=0, rest=real)
    monkeypatch.setattr(processes, "ROOT", tmp_path)
    monkeypatch.setenv("PYTHONPATH", environment["PYTHONPATH"])
    log = tmp_path / "log.txt"
    process = start_cell([str(tmp_path), "a-cell"], log, [])
    said = list(processes.messages(process))
    with process:
        assert (process.wait(), said) == (130, [{"end": "interrupted"}])
    assert log.read_text() == ""
