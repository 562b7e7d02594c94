"""The Gantt strip of a run: what is drawn is what happened, on both clocks, and mistakes are told in a sentence."""

import itertools
import json

import numpy as np
import pytest

from a3c_core.config import RunConfig
from a3c_core.train import train
from analysis.data.spans import settings_of, spans_until
from analysis.figures.gantt import rows_of
from analysis.timeline import main

TOPOLOGIES = {
    "master": {},
    "synchronous": {"topology": "synchronous", "exchange": {"backups": 1}},
    "sharded": {"topology": "sharded", "exchange": {"shards": 2}},
    "hogwild": {"topology": "hogwild"},
    "ga3c": {"topology": "ga3c"},
    "gorila": {"topology": "gorila", "algorithm": "dqn", "learner": {"learn_from": 100}},
}
PLAYERS = {"ga3c": "agent", "gorila": "actor"}
OTHERS = {
    "master": {"master"},
    "synchronous": {"master"},
    "sharded": {"server"},
    "hogwild": set(),
    "ga3c": {"predictor", "trainer"},
    "gorila": {"learner", "server"},
}


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_nobody_does_two_things_at_once(name, tmp_path):
    train(RunConfig.model_validate({"workers": "4", "episodes": 40, **TOPOLOGIES[name]}), tmp_path)
    spans = spans_until(tmp_path, settings_of(tmp_path), 2.0)
    everybody = rows_of(spans)
    players = PLAYERS.get(name, "worker")
    assert {role for role, _ in everybody} == {players} | OTHERS[name]
    assert sum(role == players for role, _ in everybody) == 4
    for row in everybody:
        times = sorted((span.start_s, span.end_s) for span in spans if (span.role, span.number) == row)
        assert all(before[1] <= after[0] + 1e-12 for before, after in itertools.pairwise(times))


def test_work_lasts_as_long_as_it_costs(tmp_path):
    train(RunConfig(workers="1", episodes=20, profile="uniform"), tmp_path)
    spans = spans_until(tmp_path, settings_of(tmp_path), 5.0)
    updates = [span.end_s - span.start_s for span in spans if span.role == "master"]
    np.testing.assert_allclose(updates[:-1], 0.1)


def test_a_real_run_is_drawn_from_its_records(tmp_path, capsys):
    train(RunConfig(workers="2", episodes=200, runtime="threads"), tmp_path)
    assert main([str(tmp_path), "--seconds", "0.01"]) == 0
    assert "2 workers are at work" in (said := capsys.readouterr().out)
    assert "of real time" in said
    assert (tmp_path / "timeline.png").read_bytes().startswith(b"\x89PNG")


def test_a_sentence_says_who_is_busy(tmp_path, capsys):
    train(RunConfig(workers="5", episodes=60, topology="ga3c"), tmp_path)
    picture = tmp_path / "strip.png"
    assert main([str(tmp_path), "--at", "0.5", "--seconds", "0.2", "--out", str(picture)]) == 0
    said = capsys.readouterr().out
    assert "Topology ga3c, 200 ms of virtual time" in said
    assert "5 agents are at work" in said
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_mistakes_are_told_in_a_sentence(tmp_path, capsys):
    assert main([str(tmp_path / "nowhere")]) == 2
    assert "no directory" in capsys.readouterr().err
    run = tmp_path / "run"
    train(RunConfig(workers="2", episodes=10), run)
    assert main([str(run), "--at", "5000"]) == 2
    assert "the run's last event is at" in capsys.readouterr().err
    foreign = {**RunConfig().model_dump(mode="json"), "topology": "somebody.elses:Topology"}
    (run / "config.json").write_text(json.dumps(foreign))
    assert main([str(run)]) == 2
    assert "somebody.elses" in capsys.readouterr().err
