"""Our commands search for garbage seldom and compute with one thread; what others do with our package is theirs."""

import os
import subprocess
import sys

import pytest

from a3c_core.system.process_tuning import ONE_THREAD
from tests.sweeps import ROOT
from tests.test_interrupts import COMMANDS

# Put in the place of a module that every command imports at its start.
SAYS = "import gc, os, sys\nprint(gc.get_threshold()[0], os.environ.get('OPENBLAS_NUM_THREADS'))\nsys.exit(0)"
THEIRS = "import a3c_core, numpy"
WITH_OPTIONS = ["-u", "-P", "-m", "a3c_core.train", "--settings", "-m"]


@pytest.fixture
def said(tmp_path):
    """Return a function that starts Python and returns what is said when it imports NumPy."""
    (tmp_path / "numpy.py").write_text(SAYS)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/__init__.py").write_text(THEIRS)
    (tmp_path / "theirs/__main__.py").touch()

    def start(*words: str, **variables: str) -> list[str]:
        others = {name: value for name, value in os.environ.items() if name not in ONE_THREAD}
        environment = {**others, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]), **variables}
        command = [sys.executable, *words]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True).stdout.split()

    return start


@pytest.mark.parametrize("words", [*COMMANDS.values(), WITH_OPTIONS], ids=[*COMMANDS, "with options"])
def test_our_commands_tune_their_process(words, said):
    assert said(*words) == ["50000", "1"]


def test_who_asks_for_more_threads_has_them(said):
    assert said("-m", "a3c_core.train", OPENBLAS_NUM_THREADS="2") == ["50000", "2"]


@pytest.mark.parametrize("words", [["-m", "theirs"], ["-m", "theirs", "a3c_core.train"], ["-c", THEIRS]], ids=str)
def test_programs_of_others_are_left_alone(words, said):
    assert said(*words) == ["700", "None"]
