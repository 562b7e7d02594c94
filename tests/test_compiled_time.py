"""Compiled virtual time: the same bytes as its readable twin, over random settings, and however it is interrupted."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import yaml

from a3c_core import train as train_module
from a3c_core.config import RunConfig
from a3c_core.train import Run, train
from a3c_core.virtual import costs
from a3c_core.virtual.compiled.runtime import CompiledSimulation
from a3c_core.virtual.compiled.state import with_room_for_twice
from a3c_core.virtual.compiled.support import why_not_compiled_time
from a3c_core.virtual.simulation import Simulation
from tests.published_code import PUBLISHED
from tests.random_settings import random_config, random_profile, random_value_config

REPORT = {"channel": "mailbox", "pull": "at_once", "queue": "unbounded"}
AUTO = {"auto_min": 2, "auto_max": 30, "spacing": 10, "window": 5}
DIRECTED = {
    "an overloaded master": {"workers": "70", "episodes": 1500, "exchange": REPORT},
    "gradients that are refused": {"workers": "6", "learner": {"optimizer": "sgd", "learning_rate": 1e6}},
    "workers that come and go": {"workers": "auto", "episodes": 1500, "schedule": AUTO, "exchange": REPORT},
    "overloaded at its end": {"workers": "auto", "schedule": AUTO, "exchange": {**REPORT, "overload_limit": 15}},
    "pieces of episodes": {
        "exchange": {"pull": "after_apply"},
        "learner": {"t_max": 7, "update_every": "t_max", "standardise": False},
    },
    "the published code": {"workers": "10", "episodes": 1500, **PUBLISHED},
    "the published code, workers come and go": {"workers": "auto", "episodes": 900, "schedule": AUTO, **PUBLISHED},
}


@pytest.fixture
def twin(monkeypatch):
    """Return what runs a configuration in the readable simulation."""

    def run(config, directory, **options):
        with monkeypatch.context() as patch:
            patch.setattr(train_module, "why_not_compiled_time", lambda config: "its twin is asked for")
            assert isinstance(Run(config, None).runtime, Simulation)
            train(config, directory, **options)
        return outcome(directory)

    return run


def compiled(config, directory, **options):
    assert isinstance(Run(config, None).runtime, CompiledSimulation)
    train(config, directory, **options)
    return outcome(directory)


def outcome(directory):
    """Return all that a run left behind but its real time: records, summary, parameters and moving averages."""
    summary = json.loads((directory / "summary.json").read_bytes())
    del summary["wall_s"]
    learner = np.load(max((directory / "checkpoints").iterdir()) / "learner.npz")
    records, updates = ((directory / name).read_bytes() for name in ("episodes.parquet", "updates.parquet"))
    return records, summary, learner["parameters"].tobytes(), learner["slots"].tobytes(), updates


def settings(seed, folder, random=random_config):
    """Return random settings with random costs."""
    profile = folder / "profile.yaml"
    profile.write_text(yaml.safe_dump(random_profile(np.random.default_rng([seed, 1]))))
    return random(np.random.default_rng([seed, 0]), str(profile))


@pytest.mark.parametrize("seed", range(40))
def test_random_settings_give_the_same_bytes(seed, tmp_path, twin):
    config = settings(seed, tmp_path)
    assert compiled(config, tmp_path / "compiled") == twin(config, tmp_path / "twin")


@pytest.mark.parametrize("seed", range(300, 330))
def test_value_methods_and_shared_parameters_give_the_same_bytes(seed, tmp_path, twin):
    config = settings(seed, tmp_path, random_value_config)
    assert compiled(config, tmp_path / "compiled") == twin(config, tmp_path / "twin")


@pytest.mark.parametrize("name", DIRECTED)
def test_chosen_settings_give_the_same_bytes(name, tmp_path, twin):
    config = RunConfig.model_validate({"workers": "5", "episodes": 300, **DIRECTED[name]})
    assert compiled(config, tmp_path / "compiled") == twin(config, tmp_path / "twin")


@pytest.mark.parametrize("seed", [*range(100, 110), *range(400, 406)])
def test_interrupted_anywhere_it_ends_in_the_same_bytes(seed, tmp_path, twin):
    random = random_config if seed < 400 else random_value_config
    config, rng = settings(seed, tmp_path, random), np.random.default_rng(seed)
    for events in rng.integers(0, 300, size=3).tolist():
        run = Run(config, tmp_path / "cut")
        run.runtime.start(lambda: False)
        run.advance(events)
        run.checkpoint()
        run.advance(int(rng.integers(0, 50)))  # lost: it comes after the checkpoint
    assert compiled(config, tmp_path / "cut") == twin(config, tmp_path / "twin")


@pytest.mark.parametrize("limit", [None, 1200])
def test_a_queue_that_does_not_fit_into_memory_gives_the_same_bytes(limit, tmp_path, twin, monkeypatch):
    """Also where the run is interrupted while most of the queue is in a file; a limit ends it there."""
    monkeypatch.setattr("a3c_core.virtual.compiled.state.QUEUE_BYTES", 0)  # as few blocks in memory as can be
    changed = {"profile": "report-tf2.21", "exchange": {**REPORT, "overload_limit": limit}}
    config = RunConfig.model_validate({"workers": "40", "episodes": 4000, **changed})
    most = 0
    for events in (900, 1500, 1800, 2500):
        run = Run(config, tmp_path / "cut")
        run.runtime.start(lambda: False)
        run.advance(events)
        run.checkpoint()
        most = max(most, len(run.runtime._file))
        run.advance(100)
    assert most >= (2 if limit else 5)
    assert compiled(config, tmp_path / "cut") == twin(config, tmp_path / "twin")


@pytest.mark.parametrize("seed", range(200, 206))
def test_room_for_more_workers_changes_nothing(seed, tmp_path, twin):
    config, rng = settings(seed, tmp_path), np.random.default_rng(seed)
    run = Run(config, tmp_path / "grown")
    run.runtime.start(lambda: False)
    for events in rng.integers(0, 200, size=2).tolist():
        run.advance(events)
        run.runtime._state = with_room_for_twice(run.runtime._state)
    run.advance(50)
    run.checkpoint()
    assert compiled(config, tmp_path / "grown") == twin(config, tmp_path / "twin")


def test_the_least_difference_is_noticed(tmp_path, twin):
    config = RunConfig(workers="5", episodes=300, slowdown=1.0)
    ours = compiled(config, tmp_path / "ours")
    slower = twin(config.model_copy(update={"slowdown": math.nextafter(1.0, 2.0)}), tmp_path / "slower")
    assert ours[0] != slower[0]
    assert ours[2] != twin(config.model_copy(update={"seed": 1}), tmp_path / "other")[2]


def test_every_record_is_told_of_in_order(tmp_path, twin):
    config, told = RunConfig(workers="7", episodes=5000), {}
    for name, run in {"compiled": compiled, "twin": twin}.items():
        told[name] = []
        run(config, tmp_path / name, on_episode=told[name].append, run="a run")
    assert list(map(repr, told["compiled"])) == list(map(repr, told["twin"]))
    assert [record.episode for record in told["compiled"]] == list(range(5000))


def test_every_profile_is_served_by_the_same_compiled_code():
    """A field more, and a minute's compiling would begin anew."""
    shipped = [path.stem for path in Path(costs.__file__).parent.glob("profiles/*.yaml")]
    runs = [Run(RunConfig(profile=name), None) for name in shipped]
    assert len({run.runtime._state.given.dtype for run in runs}) == 1 < len(runs)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"engine": "tensorflow"}, "engine tensorflow"),
        ({"engine": "report"}, "engine report"),
        ({"topology": "synchronous"}, "topology synchronous"),
        ({"topology": "hogwild", "jitter": "lognormal"}, "jitter"),
        ({"algorithm": "ppo"}, "algorithm ppo"),
        ({"agents_per_worker": 2}, "agents"),
        ({"seed": 1 << 32}, "32 bits"),
    ],
)
def test_what_is_not_compiled_says_why(change, reason):
    assert why_not_compiled_time(RunConfig()) is None
    assert reason in why_not_compiled_time(RunConfig.model_validate(change))


@pytest.mark.parametrize("change", [{"topology": "synchronous"}, {"agents_per_worker": 2}, {"seed": 1 << 40}])
def test_what_is_not_compiled_runs_in_the_twin(change):
    config = RunConfig.model_validate({"workers": "3", "episodes": 30, **change})
    assert isinstance(Run(config, None).runtime, Simulation)
    assert train(config).episodes == 30
