"""What people bring along: the example of a search with Optuna, and curves for TensorBoard."""

import runpy

import numpy as np
import pytest

from a3c_core.results.records import read_records
from a3c_core.train.__main__ import main
from tests.sweeps import ROOT

EXAMPLE = runpy.run_path(str(ROOT / "docs/optuna/search.py"))


class Trial:
    """Proposes as an Optuna trial does."""

    def __init__(self, seed):
        self._random, self.proposed = np.random.default_rng(seed), {}

    def suggest_int(self, name, low, high):
        self.proposed[name] = int(self._random.integers(low, high + 1))
        return self.proposed[name]

    def suggest_float(self, name, low, high, *, log=False):
        assert log
        self.proposed[name] = float(np.exp(self._random.uniform(np.log(low), np.log(high))))
        return self.proposed[name]


def test_the_objective_of_the_search_is_a_number_and_equal_proposals_give_equal_ones():
    def value(seed):
        return EXAMPLE["objective"](Trial(seed), episodes=200, seeds=(0, 1))

    values = [value(seed) for seed in range(4)]
    assert np.isfinite(values).all()
    assert value(0) == values[0]
    trial = Trial(0)
    config = EXAMPLE["settings_of"](trial, episodes=200, seed=1)
    assert (int(config.workers), config.seed) == (trial.proposed["workers"], 1)
    assert dict(config.learner)["learning_rate"] == pytest.approx(trial.proposed["learning_rate"])


def test_tensorboard_has_every_episode(tmp_path):
    arguments = ["--workers", "2", "--episodes", "60", "--out", str(tmp_path / "run")]
    assert main([*arguments, "--tensorboard", str(tmp_path / "curves")]) == 0
    import tensorflow as tf

    (path,) = (tmp_path / "curves").iterdir()
    found = [
        (event.step, float(tf.make_ndarray(value.tensor)))
        for event in tf.compat.v1.train.summary_iterator(str(path))
        for value in event.summary.value
        if value.tag == "episode/score"
    ]
    assert found == list(enumerate(read_records(tmp_path / "run")["score"].to_pylist()))
