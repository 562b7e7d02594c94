"""From a log to costs: what a run in virtual time cost is found again, and what is remarkable is said."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from a3c.advise import timing
from a3c.advise.__main__ import main
from a3c.advise.fit_rollouts import fit
from a3c.advise.measurements import LogError
from a3c.advise.readers import read
from a3c.advise.readers.timer import COLUMNS, read_file
from a3c.exchange_costs import FROZEN
from a3c_core.config import RunConfig
from a3c_core.train import train
from a3c_core.virtual.capacity import capacity
from experiments.tracking.mirror import Tracker
from experiments.tracking.store import connect
from tests.mlflow_server import new_database
from tests.test_tracking import make_study, runs_of

EXCHANGES = {
    "at once": {"pull": "at_once", "queue": "unbounded"},
    "waiting": {"pull": "after_apply"},
    "bounded": {"pull": "at_once", "queue": "bounded"},
}


def settings(workers, exchange, profile="uniform", **others):
    return RunConfig(workers=str(workers), episodes=8_000, learner=FROZEN, profile=profile, exchange=exchange, **others)


def from_log(name: str):
    """Return the costs of a log of single rollouts, found as the command finds it."""
    return fit(read(name).events, name)


def run(config, folder: Path):
    train(config, folder)
    return from_log(str(folder))


def serial_log(updates=6_000, work_s=lambda number: 0.5, stall=lambda number: 0.0, pause_s=0.0):
    """Return rows of one worker that waits: [n, 5], in the order of the columns."""
    now_s, rows = 100.0, []
    for number in range(updates):
        end_s = now_s + work_s(number)
        applied_s = end_s + 0.03 + stall(number)
        rows.append((0, now_s, end_s, end_s, applied_s))
        now_s = applied_s + pause_s
    return rows


def write(path: Path, rows, header=True) -> Path:
    lines = [",".join(COLUMNS)] if header else []
    path.write_text("\n".join([*lines, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def fitted(rows, folder: Path):
    return fit(read_file(write(folder / "times.csv", rows)), "by a test")


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("workers", [2, 8])
def test_the_log_of_a_run_in_virtual_time_has_its_costs(exchange, workers, tmp_path):
    config = settings(workers, EXCHANGES[exchange])
    costs, known = run(config, tmp_path), capacity(config)
    assert costs.system.workers == workers
    assert costs.system.waits == (exchange == "waiting")
    assert costs.system.cycle_s == pytest.approx(known.cycle_s, rel=0.02)
    assert costs.system.service_s == pytest.approx(known.service_s, rel=0.02)
    assert int(costs.system.n0) == int(known.n0)


def test_a_profile_that_was_written_is_the_log_it_came_from(tmp_path):
    config = settings(4, EXCHANGES["waiting"], "report")
    run(config, tmp_path / "run")
    main(["--log", str(tmp_path / "run"), "--profile", str(tmp_path / "mine.yaml"), "--json", str(tmp_path / "a.json")])
    again = run(settings(4, EXCHANGES["waiting"], str(tmp_path / "mine.yaml")), tmp_path / "again")
    assert again.system.n0 == pytest.approx(json.loads((tmp_path / "a.json").read_text())["n0"], rel=0.02)


@pytest.mark.parametrize("exchange", ["waiting", "bounded"])
def test_four_workers_predict_many(exchange, tmp_path):
    costs = run(settings(4, EXCHANGES[exchange]), tmp_path / "4")
    for workers in (8, 16, 32):
        records = train(settings(workers, EXCHANGES[exchange]), tmp_path / str(workers))
        predicted = costs.simulate(costs.system._replace(workers=workers, queue=8 if exchange == "bounded" else 0))
        assert predicted.throughput == pytest.approx(records.episodes / records.clock_s, rel=0.05)
        assert predicted.staleness == pytest.approx(records.staleness_mean, rel=0.05)


def test_stops_of_the_master_are_found_and_said(tmp_path):
    rows = serial_log(stall=lambda number: 2.1 if number % 500 == 499 else 0.0)
    costs = fitted(rows, tmp_path)
    assert "the master stops for 2.1 s every 500 updates" in costs.notes
    assert (costs.system.stall_s, costs.system.stall_every) == (pytest.approx(2.1, rel=0.01), 500)
    assert costs.system.service_s == pytest.approx(0.03, rel=0.01)
    between = [(worker, start, end, applied - 0.03, applied) for worker, start, end, _, applied in rows]
    assert fitted(between, tmp_path).system.stall_every == 500


def test_the_bookkeeping_of_the_reports_master_is_seen_in_its_log(tmp_path):
    config = settings(8, EXCHANGES["at once"], "report").model_copy(update={"episodes": 26_000})
    costs = run(config, tmp_path)
    assert any("the master stops for" in note and "every 5,000 updates" in note for note in costs.notes)
    assert costs.system.service_s + 1.4 / 5_000 == pytest.approx(
        capacity(config).service_s, rel=0.01
    )  # as it stops first
    assert costs.system.n0 == pytest.approx(capacity(config).n0, rel=0.03)


def test_stops_that_come_at_random_stay_in_the_distribution(tmp_path):
    random = np.random.default_rng(0).random(6_000) < 0.002
    costs = fitted(serial_log(stall=lambda number: 2.1 * random[number]), tmp_path)
    assert costs.system.stall_every == 0
    assert costs.system.service_s == pytest.approx(0.03 + 2.1 * random.mean(), rel=0.02)
    assert any("heavy tail" in note and "updates" in note for note in costs.notes)


def test_heavy_tails_latency_and_batches(tmp_path):
    random = np.random.default_rng(0)
    tail = fitted(serial_log(work_s=lambda number: random.pareto(1.5) + 0.1, pause_s=0.2), tmp_path)
    assert any("heavy tail" in note and "episodes" in note for note in tail.notes)
    assert tail.system.latency_s == pytest.approx(0.2, rel=0.01)
    assert tail.cycle_factors.max() > 10
    batch = [(worker, 2.0 * k, 2.0 * k + 1, 2.0 * k + 1, 2.0 * k + 2) for k in range(50) for worker in range(4)]
    assert (fitted(batch, tmp_path).system.batch, fitted(batch, tmp_path).system.n0) == (4, pytest.approx(4))


def test_growing_episodes_advise_a_growing_schedule(tmp_path, capsys):
    log = write(tmp_path / "t.csv", serial_log(work_s=lambda number: 0.5 + number / 1_000))
    main(["--log", str(log)])
    shown = " ".join(capsys.readouterr().out.split())
    assert "workers: 21->" in shown  # 0.8 of the first tenth's 0.8 s / 30 ms
    assert "rule: slides" in shown
    assert "times as fast as the best fixed number, 26" in shown


def test_a_heading_any_order_no_heading_and_parquet_are_the_same_log(tmp_path):
    rows = serial_log(200)
    plain = fitted(rows, tmp_path).system
    assert fit(read_file(write(tmp_path / "bare.csv", rows, header=False)), "").system == plain
    turned = [",".join(reversed(COLUMNS)), *(",".join(map(str, reversed(row))) for row in rows)]
    (tmp_path / "turned.csv").write_text("\n".join(turned))
    assert fit(read_file(tmp_path / "turned.csv"), "").system == plain
    pq.write_table(pa.table(dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))), tmp_path / "t.parquet")
    assert fit(read_file(tmp_path / "t.parquet"), "").system == plain


def test_unordered_and_unfinished_logs_are_taken_and_it_is_said(tmp_path):
    rows = serial_log(200)
    rows[50], rows[60] = rows[60], rows[50]
    log = write(tmp_path / "t.csv", rows)
    log.write_text(log.read_text() + "0,999,1000,,\n0,10")
    notes = read_file(log).notes
    assert [part in note for part, note in zip(("line 203 is cut off", "1 of 201", "line 53"), notes, strict=True)] == [
        True
    ] * 3


def test_timing_is_safe_with_many_processes(tmp_path):
    path = tmp_path / "times.csv"
    code = f"""
import runpy
timed = runpy.run_path({timing.__file__!r})["timed"]
for _ in range(500):
    with timed({str(path)!r}, "work", *range(20)):
        pass
"""
    processes = [subprocess.Popen([sys.executable, "-S", "-c", code]) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    lines = path.read_text().splitlines()
    assert len(lines) == 4 * 500 * 20
    assert {line.count(",") for line in lines} == {4}


def test_timing_can_be_copied_and_its_log_is_read(tmp_path, monkeypatch):
    clock = iter(np.arange(1_000) * 0.5 + 1.7e9)
    copied = runpy.run_path(str(Path(timing.__file__)))
    monkeypatch.setattr("time.time", lambda: float(next(clock)))
    path = str(tmp_path / "times.csv")
    for _ in range(50):
        for worker in ("left", "right"):
            with copied["timed"](path, "work", worker):
                pass
        with copied["timed"](path, "update", "left", "right"):
            pass
    log = read_file(Path(path))
    assert set(log.worker) == {0, 1}
    assert fit(log, "").system.batch == 2
    assert np.allclose(log.update_end - log.update_start, 0.5)


def test_a_real_run_can_be_read_too(tmp_path):
    config = RunConfig(workers="2", episodes=300, runtime="processes", learner=FROZEN)
    costs = run(config, tmp_path)
    assert costs.parcels == 300
    assert costs.system.workers == 2
    assert 0 < costs.system.n0 < float("inf")  # how much depends on what else the machine does


@pytest.mark.slow
def test_a_run_in_mlflow_is_the_cell_it_mirrors(tmp_path, monkeypatch):
    for picture in ("_draw_curve", "_film"):  # which take seconds
        monkeypatch.setattr(f"experiments.tracking.artifacts.{picture}", lambda cell, path: None)
    study = make_study(tmp_path, "logged", base={"episodes": 600, "profile": "uniform"}, axes={"workers": [4]})
    uri = f"sqlite:///{new_database(tmp_path)}"
    client = connect(uri)
    tracker = Tracker(client, uri, study.path)
    tracker.sync()
    tracker.end_sweeps()
    name = "workers=4,seed=0"
    tracked = runs_of(client, "logged")[name]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    assert from_log(f"runs:/{tracked.info.run_id}").system == from_log(str(study.cell(name))).system


def test_two_learners_are_refused(tmp_path):
    rows = serial_log(50)
    other = [(1, start, end, at, applied) for _, start, end, at, applied in rows]
    shifted = [(w, s, e + 0.01, u + 0.01, a + 0.01) for w, s, e, u, a in other]
    with pytest.raises(LogError, match="log one learner only"):
        fitted(rows + shifted, tmp_path)
