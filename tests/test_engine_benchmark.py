"""The engines' benchmark: every row is there, and all engines are measured on the same games."""

import json

import numpy as np

from a3c.benchmark import courses
from a3c.benchmark.__main__ import main
from a3c.benchmark.courses import long_course, short_course
from tests.learner_cases import trained_parameters


def test_rows_of_every_engine_and_part(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(courses, "TRAINING_EPISODES", 20)
    path = tmp_path / "bench.json"
    main(["engine", "--seconds", "0.01", "--json", str(path)])
    rows = {row["name"]: row for row in json.loads(path.read_text())["rows"]}
    parts = [f"{length} {part}" for length in ("short", "long") for part in ("play", "gradient", "both", "all")]
    engines = [f"{part}, {name}" for part in parts for name in ("compiled", "tensorflow", "report")]
    lengths, methods = ("short", "long"), ("q", "sarsa", "n_step_q")
    values = [f"{length} both, compiled {method}" for length in lengths for method in methods]
    learners = [f"{name} learner, {engine}" for name in ("ppo", "vtrace") for engine in ("compiled", "tensorflow")]
    assert list(rows) == [*engines, *values, "update, flat vector", "update, Keras", *learners]
    assert all(row["per_second"] > 0 for row in rows.values())
    for part in parts:
        fast, slow = rows[f"{part}, compiled"], rows[f"{part}, report"]
        assert slow["ratio"] == 1
        assert np.isclose(fast["ratio"], fast["per_second"] / slow["per_second"])
        assert "x tensorflow" in fast["note"]
    a3c, q = (rows[f"long both, compiled{name}"]["per_second"] for name in ("", " q"))
    assert np.isclose(rows["long both, compiled q"]["ratio"], q / a3c)
    assert rows["update, Keras"]["ratio"] == 1
    assert "short both, compiled" in capsys.readouterr().out


def test_long_course_is_long_and_short_is_short(monkeypatch):
    monkeypatch.setattr(courses, "trained", lambda episodes: trained_parameters())
    short, long = short_course(), long_course()
    means = [np.mean([trajectory.env_steps for trajectory in course.trajectories]) for course in (short, long)]
    assert 40 < means[0] < 80
    assert means[1] > 4_500
    assert all(trajectory.env_steps <= 30 for trajectory in long.cut_to(30).trajectories)
