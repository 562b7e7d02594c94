"""What a start need not wait for: compiled code is found on disk after `python -m a3c.warm`; imports are few."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from a3c.advise.simulator import System, run, simulate
from a3c.warm import TASKS
from experiments.grid.cells import expand
from experiments.grid.file import find_grid, read_grid
from tests.sweeps import PATIENCE_S, ROOT

PROGRAM = """
import gc, sys, tempfile
from pathlib import Path
from numba.core.dispatcher import Dispatcher
from a3c_core.config import RunConfig
from a3c_core.train import train

with tempfile.TemporaryDirectory() as folder:
    train(RunConfig.model_validate_json(sys.argv[1]), Path(folder))
dispatchers = [made for made in gc.get_objects() if isinstance(made, Dispatcher)]
print(len(dispatchers), [made.__name__ for made in dispatchers if made.stats.cache_misses])
"""


@pytest.fixture(scope="module")
def warmed():
    return python("-m", "a3c.warm")


def python(*words: str) -> str:
    """Return what Python prints."""
    words = (sys.executable, *words)
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout


def test_it_says_what_is_under_way(warmed):
    last = list(TASKS)[-1]
    assert [line for line in warmed.splitlines() if line][-1].startswith(
        f"Compiling, {len(TASKS)} of {len(TASKS)}: {last},"
    )


@pytest.mark.parametrize("runtime", ["simulate", "processes", "threads"])
@pytest.mark.usefixtures("warmed")
def test_after_it_a_run_compiles_nothing(runtime, tmp_path):
    demo = expand(read_grid(find_grid("quick")).grid)[-1].config.model_dump(mode="json")  # workers come and go
    exchange = demo["exchange"] if runtime == "simulate" else {}
    settings = {**demo, "runtime": runtime, "episodes": 200, "exchange": exchange}
    count, missing = python("-c", PROGRAM, json.dumps(settings)).split(maxsplit=1)
    assert int(count) > 20
    assert missing.strip() == "[]"


def test_setup_ends_with_it():
    recipe = Path(ROOT / "Makefile").read_text().partition("$(READY): ")[2].partition("\n\n")[0]
    assert recipe.splitlines()[-2:] == ["\t-@$(RUN) -m a3c.warm", "\t@touch $@"]


def test_tensorflow_comes_without_what_nobody_uses_and_that_can_still_be_imported():
    names = "pandas, sklearn, matplotlib.pyplot"
    program = (
        "import sys; from a3c_core.system.tensorflow import import_tensorflow; import_tensorflow()\n"
        "print({'pandas', 'sklearn', 'matplotlib'} & set(sys.modules))\n"
        f"import {names}; print('{names}')"
    )
    assert python("-c", program).splitlines() == ["set()", names]


def test_advice_is_compiled_once_whatever_the_numbers_types_are():
    simulate(System(workers=3, cycle_s=1.0, latency_s=0.0, service_s=0.1))
    simulate(System(workers=np.int64(3), cycle_s=1, latency_s=0, service_s=np.float64(0.1), cores=2.0), np.ones(4)[::2])
    assert len(run.overloads) == 1
