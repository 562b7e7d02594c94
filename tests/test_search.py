"""Searches: the rule that picks the best, and what people bring along: Optuna, and curves for TensorBoard."""

import runpy

import numpy as np
import pytest

from a3c_core.algorithms import ALGORITHMS
from a3c_core.records.tables import read_records
from a3c_core.train.__main__ import main
from analysis.data.load import load_study
from analysis.search import main as say_best
from analysis.search import own_settings, winners
from experiments.grid.file import find_grid, read_grid
from experiments.grid.validation import validated_cells
from tests.analysis_studies import make, plan, run
from tests.sweeps import ROOT

SEARCHES = ("search_a3c", "search_values", "search_ppo", "search_dppo", "search_vtrace")

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


def test_the_best_has_the_highest_mean_over_seeds(tmp_path, capsys):
    rates = [1e-6, 1e-3, 1e-2]
    folder = make(tmp_path / "search", {"learner.learning_rate": rates, "seed": [0, 1]}, episodes=400, workers="2")
    runs = load_study(folder).runs
    means = {rate: runs.loc[runs["learner.learning_rate"] == rate, "mean_score"].mean() for rate in rates}
    (best,) = winners(folder)
    assert best.score == max(means.values())
    assert means[best.settings["learner.learning_rate"]] == best.score
    assert best.tried == 3
    assert say_best([str(folder)]) == 0
    assert f"a3c: {{algorithm: a3c, learner.learning_rate: {best.settings['learner.learning_rate']}" in (
        capsys.readouterr().out
    )


def test_a_search_that_is_not_complete_has_no_best(tmp_path, capsys):
    first, *_ = plan(tmp_path / "search", {"learner.learning_rate": [1e-4, 1e-3], "seed": [0]}, episodes=20)
    run(tmp_path / "search", first)
    assert say_best([str(tmp_path / "search")]) == 2
    assert "1 of 2 runs are missing" in capsys.readouterr().err


def cells_of(name):
    return validated_cells(read_grid(find_grid(name)))


def test_every_algorithm_had_as_many_settings_tried_as_every_other():
    tried: dict[str, set[str]] = {}
    shared, topologies = set(), set()
    for name in SEARCHES:
        for cell in cells_of(name):
            tried.setdefault(cell.config.algorithm, set()).add(str(cell.config.learner))
            shared.add((cell.config.workers, cell.config.env_steps, cell.config.profile, str(cell.config.environment)))
            topologies.add((cell.config.algorithm == "dppo", cell.config.topology, str(cell.config.exchange)))
    assert {algorithm: len(settings) for algorithm, settings in tried.items()} == dict.fromkeys(
        set(ALGORITHMS.names()) - {"dqn"}, 16
    )
    assert len(shared) == 1
    assert {(averages, topology) for averages, topology, _ in topologies} == {(False, "master"), (True, "synchronous")}
    assert len(topologies) == 2  # with the exchange that each has by default


@pytest.mark.parametrize("study", ["algorithms", "table2", "lockstep"])
def test_studies_have_the_settings_that_won(study):
    """Of the searches that were run: their results are in git."""
    folders = [ROOT / "results" / name for name in SEARCHES]
    run = [folder for folder in folders if (folder / "runs.parquet").exists()]
    best = {winner.algorithm: winner.settings for folder in run for winner in winners(folder)}
    for cell in cells_of(study):
        if cell.settings["case"] in best:
            assert own_settings(cell.config.model_dump(mode="json")) == best[cell.settings["case"]]


def test_cases_of_one_change_differ_in_that_alone():
    cases = {cell.settings["case"]: own_settings(cell.config.model_dump(mode="json")) for cell in cells_of("table2")}
    for case, changed in (("q-alike", "learner.final_epsilons"), ("q-fresh", "learner.target_every")):
        both = {**cases["q"], **cases[case]}
        differ = {name for name in both if cases["q"].get(name) != cases[case].get(name)}
        assert differ == {changed}
