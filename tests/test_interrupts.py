"""Ctrl-C before a command can do anything: one word and exit code 130, whatever it was importing."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from experiments import processes
from experiments.sweep.one_cell import start_cell
from tests.storm.processes import MARK, command_of, marked, wait_until_gone
from tests.sweeps import ROOT, wait_for

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


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_signal_at_an_import_is_one_word(command, name, tmp_path):
    environment = interrupting(tmp_path, "numpy", name=name)
    words = [sys.executable, *COMMANDS[command]]
    ended = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "interrupted\n")


SWALLOWING = """
import os, signal, weakref
class Thing: pass
def callback(_):
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000): pass
thing = Thing()
reference = weakref.ref(thing, callback)
del thing
{rest}
"""


def test_a_callback_at_an_import_does_not_swallow_ctrl_c(tmp_path):
    real = "import sys\nsys.path.pop(0)\ndel sys.modules['yaml']\nimport yaml"
    environment = interrupting(tmp_path, "yaml")
    (tmp_path / "yaml.py").write_text(SWALLOWING.format(rest=real))
    words = [sys.executable, "-m", "a3c_core.train", "--settings"]
    ended = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "interrupted\n")


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found in Linux's /proc")
@pytest.mark.parametrize("servers", [1, 2])
def test_ctrl_c_while_workers_start_is_one_sentence(servers, tmp_path):
    """To the whole group, as a terminal sends it: while the fork server imports, and when it has made a worker."""
    mark = f"interrupts-{os.getpid()}-{servers}"
    words = [sys.executable, "-m", "a3c_core.train", "--set", "runtime=processes", "--workers", "4", "--out", "run"]
    environment = {**os.environ, MARK: mark, "PYTHONPATH": str(ROOT)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen(words, cwd=tmp_path, env=environment, **pipes) as process:
        wait_for(lambda: importing_servers(mark) >= servers)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate()
    assert (process.returncode, errors) == (130, "Interrupted. The same command goes on from here.\n")
    assert wait_until_gone(mark, 60.0) == []


def importing_servers(mark: str) -> int:
    """Return how many marked processes have a fork server's command line, as workers have, and have loaded NumPy."""
    servers = [process for process in marked(mark) if "multiprocessing.forkserver" in command_of(process)]
    with suppress(OSError):  # one of them ends while we look
        return sum("_multiarray_umath" in Path(f"/proc/{process}/maps").read_text() for process in servers)
    return 0


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
