"""Compiled code frees what it allocates, and counts nothing that it is merely lent."""

import gc

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

from a3c.advise.simulator import System, simulate
from a3c_core.config import RunConfig
from a3c_core.engines.actor_critic_kernels import differentiate, play
from a3c_core.games import flappy, frames
from a3c_core.optimizers import global_norm
from a3c_core.system.jit import direct, exact, fast, inner
from a3c_core.train import train

PIECES = {"t_max": 5, "update_every": "t_max", "standardise": False}
RUNS = {
    "deaths": {},
    "time limits": {"environment": {"max_episode_steps": 20}},
    "pieces": {"learner": PIECES},
    "value methods": {"algorithm": "n_step_q"},
    "trajectories": {"algorithm": "vtrace", "learner": {"batch_steps": 64}},
    "replay": {"algorithm": "dqn", "topology": "gorila"},
    "predictors": {"topology": "ga3c", "learner": PIECES},
}


def still_allocated() -> int:
    """Return how many pieces of memory compiled code has asked for and not freed."""
    stats = rtsys.get_allocation_stats()
    return stats.mi_alloc - stats.mi_free


def assert_all_freed(before: int) -> None:
    """No more may be allocated than before, once cycles are looked for, in which an array may hang a while."""
    if still_allocated() > before:
        gc.collect()
    assert still_allocated() <= before


@pytest.fixture
def counted():
    """Count what compiled code allocates."""
    were_counted = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    yield
    if not were_counted:
        _nrt_python.memsys_disable_stats()


@pytest.mark.parametrize("settings", RUNS.values(), ids=RUNS)
def test_a_run_frees_what_its_compiled_code_allocates(settings, counted):
    config = RunConfig.model_validate({"workers": 2, "episodes": 30, "profile": "uniform", **settings})
    train(config)
    before = still_allocated()
    train(config)
    assert_all_freed(before)


def test_advice_frees_what_it_allocates(counted):
    system = System(workers=3, cycle_s=1.0, service_s=0.1, latency_s=0.1)
    simulate(system, events=100)
    before = still_allocated()
    simulate(system, events=100)
    assert_all_freed(before)


def test_frames_free_what_they_allocate(counted):
    game, stack = flappy.new_game(), np.zeros((frames.SIDE, frames.SIDE, 4), np.uint8)
    before = still_allocated()
    frames.fill_stack(game[0], stack)
    frames.push_frame(game[0], stack)
    assert_all_freed(before)


def test_an_array_that_nobody_frees_is_seen(counted):
    @exact(allocates=True)
    def made(size):
        return np.empty(size)

    before = still_allocated()
    kept = made(3)
    assert still_allocated() == before + 1
    del kept
    assert_all_freed(before)


def test_called_directly_it_is_the_same_function():
    parameters = np.arange(5, dtype=np.float32)
    norm = direct(global_norm, np.zeros(1, np.float32))
    assert norm(parameters) == global_norm(parameters) == pytest.approx(np.linalg.norm(parameters))
    with pytest.raises(TypeError, match="a different type"):
        norm(parameters.astype(np.float64))


def test_what_is_lent_is_not_counted():
    """Nearly half of the time of a short episode in virtual time went to counting."""

    @inner
    def first(array):
        return array[:1]

    with pytest.raises(Exception, match="array passed into the function"):  # nobody would free one of its own
        exact(lambda array: first(array).size)(np.zeros(3))
    assert fast(lambda array: array[:1].size)(np.zeros(3)) == 1
    assert not _flags_of(play)
    assert _flags_of(differentiate)


def _flags_of(function) -> bool:
    """Return whether a compiled function counts who holds its arrays."""
    return bool(function.targetoptions["_nrt"])
