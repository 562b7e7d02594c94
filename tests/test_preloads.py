"""What fork servers load ahead of their workers: TensorFlow once for all, and no thread that a fork would lose."""

import subprocess
import sys
from multiprocessing import forkserver
from pathlib import Path

import pytest

from a3c_core.real.local_pool import COMPILED, ONEDNN, TENSORFLOW, preload_of
from tests.sweeps import PATIENCE_S
from tests.test_processes import IN_PIECES, assert_each_once, collect, config_of

FRAMES = {"model": "conv", "environment": {"observation": "frames"}, "learner": IN_PIECES}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, COMPILED),
        ({"engine": "tensorflow"}, TENSORFLOW),
        ({"engine": "report"}, TENSORFLOW),
        ({"engine": "tensorflow", **FRAMES}, ONEDNN),
        ({"engine": "tensorflow", "gpus": (0,)}, COMPILED),
    ],
)
def test_it_is_what_the_workers_need(settings, expected):
    assert preload_of(config_of(**settings)) == expected


@pytest.mark.parametrize("preload", [TENSORFLOW, ONEDNN])
def test_tensorflow_is_loaded_without_threads(preload):
    program = (
        "import importlib, os, sys; import a3c_core.real.worker\n"
        "threads = len(os.listdir('/proc/self/task'))\n"
        f"importlib.import_module('{preload}')\n"
        "print('tensorflow' in sys.modules, len(os.listdir('/proc/self/task')) - threads)"
    )
    words = [sys.executable, "-c", program]
    printed = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
    assert printed.split() == ["True", "0"]


def test_engines_that_follow_each_other_in_one_process_have_servers_of_their_own():
    for engine in ("compiled", "tensorflow", "compiled"):
        summary, records = collect(config_of(workers="2", episodes=6, engine=engine))
        assert_each_once(summary, records, 6)
        assert summary.crashes == 0
        maps = Path(f"/proc/{forkserver._forkserver._forkserver_pid}/maps").read_text()
        assert ("libtensorflow" in maps) == (engine == "tensorflow")
