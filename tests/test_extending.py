"""Parts of one's own: the very examples of docs/extending.md, named from outside, run wherever ours run."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from a3c_core.build import parts_of
from a3c_core.config import RunConfig
from a3c_core.records.tables import read_records
from a3c_core.train import train
from experiments.grid.errors import GridError
from experiments.grid.file import read_grid
from experiments.grid.validation import validated_cells
from run_sweep import main as run_sweep

DOCS = Path(__file__).parents[1] / "docs"
FILES = sorted((DOCS / "extending").glob("*.py"))
EXAMPLES = {
    "algorithm": {"algorithm": "monte_carlo_q:MonteCarloQ", "environment": {"id": "CartPole-v1"}},
    "game": {"environment": {"id": "corridor:Corridor-v0"}, "learner": {"learning_rate": 0.01, "standardise": False}},
    "model": {"model": "two_layers:build", "environment": {"id": "CartPole-v1"}},
    "topology": {"topology": "batching:Batching", "engine": "compiled"},
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A user's directory with the examples in it."""
    for file in FILES:
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def config(example, **settings):
    return RunConfig.model_validate({"workers": 2, "engine": "tensorflow", **EXAMPLES[example], **settings})


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_page_shows_the_examples_as_they_are(file):
    text = file.read_text()
    assert len(text.splitlines()) <= 60
    assert text in (DOCS / "extending.md").read_text()


@pytest.mark.parametrize("example", EXAMPLES)
def test_in_virtual_time_and_resumed_to_the_same_bytes(example, here):
    settings = config(example, episodes=12, checkpoint_s=1e-9)  # each episode ends in a checkpoint, which takes longest

    def stop(record):
        if record.episode == 6:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        train(settings, here / "cut", on_episode=stop)
    assert train(settings, here / "cut").episodes == 12
    train(settings, here / "whole")
    cut, whole = ((here / name / "episodes.parquet").read_bytes() for name in ("cut", "whole"))
    assert cut == whole


@pytest.mark.parametrize("example", EXAMPLES)
def test_with_real_processes(example, here):
    workers = 2 if example == "topology" else 1  # each worker that needs TensorFlow imports it
    summary = train(config(example, workers=workers, episodes=30, runtime="processes"), here / "run")
    assert (summary.outcome, summary.episodes, summary.crashes) == ("finished", 30, 0)


def test_through_a_sweep(here):
    cases = "\n".join(
        f"  {name}: {{{', '.join(f'{key}: {value}' for key, value in _flat(settings))}}}"
        for name, settings in EXAMPLES.items()
    )
    text = (
        f"name: own\nquestion: Do they run?\nbase: {{workers: 2, episodes: 20, engine: tensorflow}}\ncases:\n{cases}\n"
    )
    (here / "own.yaml").write_text(text)
    assert run_sweep(["--grid", "own.yaml", "--no-tracking"]) == 0
    for name in EXAMPLES:
        assert read_records(here / "results" / "own" / "cells" / f"case={name},seed=0").num_rows == 20


def _flat(settings, prefix=""):
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, str(value).lower() if isinstance(value, bool) else value


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES)
def test_they_learn_to_read_the_sign(example):
    learner = {"learning_rate": 3e-3} if example == "algorithm" else {"learning_rate": 3e-3, "standardise": False}
    corridor = EXAMPLES["game"]["environment"]
    settings = config(example, episodes=600, engine="tensorflow", environment=corridor, learner=learner)
    assert train(settings).score_mean > 0.75  # chance: 0.5


def test_a_batching_master_makes_fewer_updates_of_as_many_gradients(here):
    """Forty workers flood this master: one that takes up to eight gradients at once makes fewer, larger updates."""
    flood = {"workers": 40, "engine": "compiled", "profile": "uniform", "episodes": 2000, "environment": {}}
    one, several = (train(config("topology", **flood, topology=name)) for name in ("master", "batching:Batching"))
    assert one.updates == one.gradients_applied == several.gradients_applied == 2000
    assert several.updates < 0.5 * one.updates
    assert several.clock_s < one.clock_s


def test_what_parts_say_of_themselves_is_used(here):
    game = parts_of(config("game")).game
    assert (game.score.unit, game.score.learned_above, game.score.whole) == ("exits", 0.6, True)
    assert game.spaces[:3] == ((2,), "float32", 2)
    model = parts_of(config("model")).model
    assert np.array_equal(model.initial_parameters(3), model.initial_parameters(3))
    assert not np.array_equal(model.initial_parameters(3), model.initial_parameters(4))
    assert parts_of(config("algorithm")).model.heads == (("action_values", 2),)


@pytest.mark.parametrize(
    ("base", "reason"),
    [
        ("{algorithm: monte_carlo_q:MonteCarlo}", "no attribute 'MonteCarlo'; did you mean MonteCarloQ?"),
        ("{algorithm: monte_karlo:MonteCarloQ}", "module 'monte_karlo' can't be imported"),
        ("{algorithm: reinforce}", "algorithm must be a3c, ppo, "),
        (
            "{algorithm: monte_carlo_q:MonteCarloQ, learner: {entropy_coefficient: 0.1}}",
            "algorithm monte_carlo_q:MonteCarloQ has no such setting; it has gamma, epsilon, optimizer",
        ),
        ("{algorithm: monte_carlo_q:MonteCarloQ, learner: {epsilon: 2}}", "must be at most 1, not 2"),
        ("{algorithm: monte_carlo_q:MonteCarloQ}", "compiled can't run this: it computes the algorithms "),
        ("{model: two_layers:build, network: {units: 3}}", "model two_layers:build has no such setting; it has none"),
        ("{model: two_layers:build}", "compiled can't run this: it runs the model 'dense'"),
        ("{environment: {id: corridor:Corridor-v7}, engine: tensorflow}", "did you mean Corridor-v0?"),
        ("{environment: {id: corridor:Corridor-v0, observation: raw}, engine: tensorflow}", "is a setting of Flappy"),
    ],
)
def test_mistakes_are_told_before_anything_runs(base, reason, here):
    (here / "grid.yaml").write_text(f"name: g\nquestion: Why?\nbase: {base}\n")
    with pytest.raises(GridError, match=r"grid\.yaml: ") as caught:
        validated_cells(read_grid(here / "grid.yaml"))
    assert reason in str(caught.value)
