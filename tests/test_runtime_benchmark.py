"""The benchmarks of whole runs: every row is there, with what it is compared to."""

import json

import pytest

from a3c.benchmark import courses, frames, limit, runtime, start, virtual
from a3c.benchmark.__main__ import main


def measured(tmp_path, benchmark):
    """Return ({row's name: row}, {fact's name: value}) of a benchmark's JSON file."""
    path = tmp_path / "bench.json"
    main([benchmark, "--seconds", "0.05", "--json", str(path)])
    content = json.loads(path.read_text())
    return {row["name"]: row for row in content["rows"]}, {fact["name"]: fact["value"] for fact in content["facts"]}


def test_runtimes_and_transports_are_compared(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(runtime, "LONG_TRAINING", 20)
    monkeypatch.setattr(runtime, "ENGINES", ("compiled",))
    monkeypatch.setattr(runtime, "ray_is_installed", lambda: False)
    rows, facts = measured(tmp_path, "runtime")
    for length in ("short", "long"):
        for transport in ("shared", "queue", "hogwild"):
            assert rows[f"{length}, processes, {transport}, 2"]["per_second"] > 0
        assert rows[f"{length}, simulate, 2"]["per_second"] > 0
    assert rows["short, ray, 2"]["per_second"] is None
    assert "make setup-ray" in rows["short, ray, 2"]["note"]
    two, one = rows["long, processes, shared, 2"], rows["long, processes, shared, 1"]
    assert facts["2 workers against 1, long episodes"] == two["per_second"] / one["per_second"] == two["ratio"]
    assert facts["memory (PSS) of one of 40 workers"] < 120
    assert facts["master's core time a gradient, woken for each, shared"] > 0
    assert "40 workers against 2" in capsys.readouterr().out


def test_frames_are_measured_by_agents_and_by_workers(tmp_path, monkeypatch):
    monkeypatch.setattr(frames, "AGENTS", (1, 4))
    monkeypatch.setattr(frames, "WORKERS", (1,))
    monkeypatch.setattr(frames, "_REAL_S", 0.05)
    rows, facts = measured(tmp_path, "frames")
    assert list(rows) == [f"{what}, {agents} agents" for what in ("act", "learn", "1 processes") for agents in (1, 4)]
    assert rows["act, 4 agents"]["ratio"] == facts["acting for 4 agents at once against one, on one core"]
    assert "h per million steps" in rows["learn, 1 agents"]["note"]


def test_virtual_time_is_measured_by_workers_and_by_topology(tmp_path, monkeypatch):
    monkeypatch.setattr(virtual, "LONG_TRAINING", 20)
    rows, facts = measured(tmp_path, "virtual")
    assert len(rows) == 1 + len(virtual.CROWDS) + len(virtual.OTHERS)
    assert all(row["per_second"] > 0 for row in rows.values())
    few, hogwild = rows["short, 10 workers"], rows["short, 10 workers, hogwild"]
    assert hogwild["ratio"] == hogwild["per_second"] / few["per_second"]
    most = rows["short, 10,000 workers"]
    assert facts["cost of an episode, 10,000 workers against 10"] == pytest.approx(1 / most["ratio"])


def test_a_step_is_measured_beside_what_a_core_can_do(tmp_path, monkeypatch):
    monkeypatch.setattr(limit, "long_course", courses.short_course)
    rows, facts = measured(tmp_path, "limit")
    assert facts["arithmetic of a step, played and differentiated"] == 6912
    assert rows["arithmetic at the core's peak"]["per_second"] * 6912 == pytest.approx(1e9 * facts["the core's peak"])
    share = 100 * rows["play and gradient"]["ratio"]
    assert 0 < facts["share of the peak, long episodes"] == pytest.approx(share)
    assert sum(name.startswith("a short episode") for name in facts) == 4


def test_starting_is_measured_in_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(start, "_LOOKS", 1)
    monkeypatch.setattr(start, "_RUN", "import sys; assert len(sys.argv) == 3")
    rows, facts = measured(tmp_path, "start")
    assert list(rows) == ["Python alone", "import a3c_core", "import of a run", "a run of 1 episode"]
    assert facts["peak memory of a run of 50,000 episodes"] > 1
