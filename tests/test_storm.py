"""The storm: a few rounds of it with nothing found, and that it would find what it looks for."""

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from a3c_core.config import RunConfig
from a3c_core.train import train
from tests.storm import checks, processes
from tests.storm.attempts import Command, Ending
from tests.storm.damages import HARMS, inflict, undo
from tests.storm.plans import KINDS, SIGNALS, TARGETS, Attempt, Strike, draw
from tests.storm.rounds import CALM, Round
from tests.storm.tally import Tally, table
from tests.sweeps import ROOT, everything_in, sweep, wait_for, write_grid

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found in Linux's /proc")
SEED, ROUNDS = 15618, 3  # a short storm with everything in it
SETTINGS = {"runtime": "processes", "workers": "2", "episodes": 1_000_000, "checkpoint_s": 0.2}


@pytest.fixture
def temporary():
    """A temporary directory of our own, with a path short enough for the sockets that are made in it."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.slow
def test_some_rounds_of_storm_find_nothing(temporary):
    with started("--seed", str(SEED), "--rounds", str(ROUNDS), temporary=temporary) as storm:
        output, _ = storm.communicate()
    assert storm.returncode == 0, output
    assert "findings: 0" in output
    assert list(temporary.iterdir()) == []


@contextmanager
def started(*arguments: str, temporary: Path):
    """Start a storm; interrupt it if the test ends before."""
    environment = {**os.environ, "TMPDIR": str(temporary)}
    words = [sys.executable, "-m", "tests.storm", *arguments]
    with subprocess.Popen(words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as storm:
        try:
            yield storm
        finally:
            storm.terminate()


def test_those_rounds_are_of_every_kind():
    plans = [draw(SEED, number) for number in range(ROUNDS)]
    assert {plan.kind for plan in plans} == set(KINDS)
    assert {plan.settings["exchange"].get("transport", "hogwild") for plan in plans} == {"shared", "queue", "hogwild"}
    assert any(plan.is_tracked for plan in plans)
    strikes = [strike for plan in plans for attempt in plan.attempts for strike in attempt.strikes]
    assert {strike.target for strike in strikes} == {*chain(*TARGETS.values()), "MLflow tracker"}
    assert {strike.signal for strike in strikes} == set(SIGNALS)


def test_the_same_seed_draws_the_same_rounds():
    assert draw(3, 5) == draw(3, 5)
    assert draw(3, 5) != draw(4, 5)
    assert draw(3, 5) != draw(3, 6)


def test_all_that_can_happen_is_drawn_and_valid():
    plans = [draw(0, number) for number in range(300)]
    attempts = [attempt for plan in plans for attempt in plan.attempts]
    strikes = [strike for attempt in attempts for strike in attempt.strikes]
    assert {strike.target for strike in strikes} == {*chain(*TARGETS.values()), "MLflow tracker"}
    assert {strike.signal for strike in strikes} == set(SIGNALS)
    assert {attempt.damages[0] for attempt in attempts if attempt.damages} == set(HARMS)
    for plan in plans:
        for workers in plan.axes.get("workers", [plan.settings.get("workers")]):
            RunConfig.model_validate({**plan.settings, "workers": workers})


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with the results of a finished sweep of two cells."""
    folder = tmp_path_factory.mktemp("finished")
    write_grid(folder)
    assert sweep(folder, "--grid", "tiny", "--no-tracking").returncode == 0
    return folder / "results"


def test_nothing_is_found_where_nothing_is_wrong(finished):
    assert list(checks.study_is_whole(finished / "tiny", cells=2, episodes=300)) == []


@pytest.mark.parametrize("damage", ["records missing", "records truncated", "summary emptied", "metadata emptied"])
def test_damages_are_found_and_can_be_undone(damage, finished, tmp_path):
    whole = everything_in(finished)
    victim = inflict(finished, damage, choice=0.9, backup=tmp_path / "backup")
    findings = list(checks.study_is_whole(finished / "tiny", cells=2, episodes=300))
    undo(victim, tmp_path / "backup")
    assert len(findings) == 1
    assert "workers=4,seed=0" in findings[0]
    assert everything_in(finished) == whole
    assert list(checks.study_is_whole(finished / "tiny", cells=2, episodes=300)) == []


def test_a_damaged_plan_is_mended_before_anything_else_is_damaged(finished, tmp_path):
    """A sweep that is killed before it reads its plan refuses nothing; the next one must find the plan's backup."""
    shutil.copytree(finished, tmp_path / "results")
    stormy = Round(draw(0, 0), tmp_path)
    for damage in ("study damaged", "metadata emptied"):
        stormy._damage(Attempt(damages=(damage,)))
    stormy._judge(CALM, Ending(2, "error: no plan", set()))
    stormy._damage(Attempt(damages=("summary emptied",)))
    assert stormy.tally.damages == {"study damaged": 1, "summary emptied": 1}
    assert stormy.tally.findings == []
    assert (tmp_path / "results/tiny/study.json").read_bytes() == (finished / "tiny/study.json").read_bytes()


def test_records_that_are_missing_doubled_or_unaccounted_for_are_found(tmp_path):
    train(RunConfig(workers="2", episodes=50, profile="uniform"), tmp_path)
    records, summary = pq.read_table(tmp_path / "episodes.parquet"), json.loads((tmp_path / "summary.json").read_text())
    assert list(checks.run_is_whole(tmp_path, 50)) == []
    pq.write_table(records.take([*range(49), 48]), tmp_path / "episodes.parquet")
    (tmp_path / "summary.json").write_text(json.dumps({**summary, "gradients_sent": 51}))
    findings = " ".join(checks.run_is_whole(tmp_path, 51))
    assert "50 records instead of 51" in findings
    assert "1 duplicates" in findings
    assert "51 gradients were sent, but applied 50" in findings


def test_a_master_whose_descriptors_grow_is_found(finished):
    summary = json.loads(next(finished.glob("**/summary.json")).read_text())

    def said(first, last, after):
        return json.dumps({"descriptors": {"first": first, "last": last, "after": after}, "summary": summary})

    assert list(checks.master_is_steady("\n".join([said(9, 9, 5), said(20, 20, 5)]), 300)) == []
    assert "grow" in next(checks.master_is_steady("\n".join([said(9, 9, 5), said(20, 21, 5)]), 300))
    assert "grow" in next(checks.master_is_steady("\n".join([said(9, 9, 5), said(9, 9, 6)]), 300))


def test_a_traceback_is_found_wherever_it_stands():
    text = 'before\nTraceback (most recent call last):\n  File "/a/b.py", line 3, in f\n    g()\nOSError: no\nafter\n'
    assert checks.tracebacks(text) == ["OSError: no at b.py:3 f"]
    assert checks.tracebacks("no Traceback here") == []


def test_ctrl_c_before_anybody_listens_is_nobodys_fault():
    place = '  File "<frozen site>", line 3, in main\n'
    text = f"Traceback (most recent call last):\n{place}KeyboardInterrupt\n"
    assert checks.tracebacks(text) == []
    assert len(checks.tracebacks(text.replace("<frozen site>", "/a/cell.py"))) == 1
    assert len(checks.tracebacks(text.replace("KeyboardInterrupt", "ImportError"))) == 1


def test_what_is_left_behind_is_found(tmp_path):
    for path in ("tmp/pymp-x", "results/run/.summary.json.123.tmp", "results/run/checkpoints/.unfinished-y"):
        (tmp_path / path).mkdir(parents=True)
    found = checks.leftovers(tmp_path / "tmp", tmp_path / "results")
    assert found == ["pymp-x", ".summary.json.123.tmp", ".unfinished-y"]


def test_memory_counts_as_left_behind_when_nobody_has_it_any_more():
    before = checks.shared_memory()
    semaphore = multiprocessing.get_context("spawn").Semaphore()
    ours = semaphore._semlock.name.replace("/", "sem.")
    descriptor, path = tempfile.mkstemp(dir="/dev/shm")
    left = Path(path).name
    try:
        assert {ours, left} <= checks.shared_memory() - before
        assert not {ours, left} & set(checks.orphaned_memory(before))
        os.close(descriptor)
        assert left in checks.orphaned_memory(before)
    finally:
        Path(path).unlink()


def test_signals_hit_whom_they_are_meant_for(tmp_path):
    """One run, with every role that it has found and struck; a stopped worker goes on again, and the master ends it."""
    (tmp_path / "tmp").mkdir()
    tally, mark = Tally(), f"test-{os.getpid()}"
    words = [sys.executable, "-m", "tests.storm.run", json.dumps(SETTINGS), "results/run"]
    targets = {
        "worker": signal.SIGSTOP,
        "fork server": signal.SIGSTOP,
        "resource tracker": signal.SIGCONT,
        "master": signal.SIGINT,
    }
    strikes = [Strike("checkpoint", 0.0, target, number, 0.01, 0.5) for target, number in targets.items()]
    ending = Command(words, tmp_path, mark, tmp_path / "output.txt", tally.signals).follow(strikes, lambda: None)
    assert ending.code == 130, ending.output
    assert tally.signals == {(target, number.name): 1 for target, number in targets.items()}
    assert processes.wait_until_gone(mark, 60.0) == []
    assert any("fork server" in line for line in table(tally))


def test_an_orphan_is_seen_and_ended():
    mark = f"orphan-{os.getpid()}"
    orphan = subprocess.Popen(["sleep", "600"], env={**os.environ, processes.MARK: mark}, start_new_session=True)
    try:
        wait_for(lambda: processes.marked(mark) == [orphan.pid])
        assert not processes.send(os.getpid(), mark, signal.SIGKILL)  # not one of the round's
        processes.kill_all(mark)
        assert orphan.wait() == -signal.SIGKILL
        assert processes.marked(mark) == []
    finally:
        orphan.kill()
        orphan.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_storm_leaves_no_process_behind(number, temporary):
    round_number = next(number for number in range(99) if draw(0, number).kind == "run")
    with started("--seed", "0", "--round", str(round_number), temporary=temporary) as storm:
        mark = f"{storm.pid}-0-{round_number}"
        wait_for(lambda: "worker" in processes.by_role(mark))
        storm.send_signal(number)
        output, _ = storm.communicate()
    assert processes.wait_until_gone(mark, 60.0) == []
    if number != signal.SIGKILL:  # which leaves no time to clear up files, or to say anything
        assert storm.returncode == 130
        assert "findings" in output
        assert list(temporary.iterdir()) == []
