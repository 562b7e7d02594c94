"""Real runs at the costs of a profile: what they share with virtual time, and that they keep what they had."""

import json
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from a3c_core.config import RunConfig
from a3c_core.real import oversubscription, pace
from a3c_core.real import worker as worker_module
from a3c_core.real.shared_memory import Layout, SharedBlock
from a3c_core.real.transport import Stopped
from a3c_core.records.tables import UPDATE_TABLE, EpisodeRecord, read_records
from a3c_core.topologies import parcel_queue
from a3c_core.train import Run, train
from a3c_core.train.__main__ import closing
from a3c_core.train.__main__ import main as command
from a3c_core.virtual.capacity import capacity
from a3c_core.worker import Work
from analysis.data.capacity import limit_of
from analysis.data.load import load_study
from analysis.figures import style
from analysis.figures.drawing import draw
from analysis.figures.main import main_figure
from experiments.grid.file import find_grid, read_grid
from experiments.grid.validation import validated_cells
from experiments.sweep.estimate import cell_seconds
from experiments.sweep.request import Request, announcement, understand
from tests.sweeps import PATIENCE_S
from tests.test_processes import assert_each_once, collect, start_elsewhere, wait_until_gone

REPORTS_EXCHANGE = {"transport": "queue", "channel": "mailbox", "queue": "unbounded"}


def profile_in(directory, **costs):
    """Return the path of a profile in which an episode takes 1 s, however long it is, if nothing else is said."""
    path = directory / "profile.yaml"
    path.write_text(json.dumps({"step_s": 0.0, "update_s": 0.1, "reset_s": 1.0, **costs}))
    return str(path)


def paced(profile, speed=20.0, **settings):
    settings = {"runtime": "processes", "exchange": REPORTS_EXCHANGE, **settings}
    return RunConfig(pace={"profile": profile, "speed": speed}, **settings)


def quietly(config, directory=None):
    """Return (summary, records); on a busy machine a run may say that it was late."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return collect(config, directory)


class Clock:
    """A clock that sleeps 3 ms too long, each time."""

    def __init__(self):
        self.now_s = 1000.0

    def monotonic(self):
        return self.now_s

    def sleep(self, seconds):
        self.now_s += seconds + 0.003


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(pace, "time", made)
    return made


def worker_pace(config, heed_stop=lambda: None):
    block = SharedBlock(Layout(config.span.end, 3, 1, 0, 0))
    return pace.WorkerPace(config, 0, block.arrays, heed_stop), block.arrays


def play(paced_worker, clock, works_s=0.01, count=1):
    began_s = clock.now_s
    clock.now_s += works_s
    paced_worker.await_end(Work(np.zeros(3, np.float32), 50, 1, ()), 0, began_s, count)


def test_a_workers_sleeps_do_not_add_up(tmp_path, clock):
    worker, arrays = worker_pace(paced(profile_in(tmp_path), speed=10.0))
    for _ in range(100):
        play(worker, clock)
    assert clock.now_s == pytest.approx(1000.0 + 100 * 0.1 + 0.003)
    assert arrays.slots["paced"][0] == 100
    assert arrays.slots["late"][0] == 0


def test_work_that_takes_longer_than_its_pace_is_late(tmp_path, clock):
    worker, arrays = worker_pace(paced(profile_in(tmp_path), speed=10.0))
    play(worker, clock, works_s=0.15)
    play(worker, clock)  # makes up for it
    assert clock.now_s == pytest.approx(1000.2 + 0.003)
    assert arrays.slots["late"][0] == 1
    assert arrays.slots["late_s"][0] == pytest.approx(0.5)  # the profile's
    play(worker, clock, works_s=60.0)
    play(worker, clock)  # not for a minute
    assert clock.now_s == pytest.approx(1060.203 + 0.1 + 0.003)


def test_who_waited_for_the_master_begins_then(tmp_path, clock):
    worker, arrays = worker_pace(paced(profile_in(tmp_path, resume_s=0.5), speed=10.0))
    play(worker, clock)
    clock.now_s = 1000.7
    arrays.slots["wait_s"] += 0.6
    play(worker, clock)
    assert clock.now_s == pytest.approx(1000.7 + 0.15, abs=0.01)


def test_a_paced_worker_shares_the_profiles_cores(tmp_path, clock):
    config = paced(profile_in(tmp_path, cores=2), speed=10.0, workers="7")
    worker, arrays = worker_pace(config)
    arrays.slots["on_core"][1:] = 1
    arrays.slots["waiting"][5:] = 1  # for the master
    arrays.inbox["serving"] = 1
    play(worker, clock)
    assert clock.now_s == pytest.approx(1000.3, abs=0.01)  # 5 workers and the master on 2 cores


def test_a_sleeping_worker_heeds_a_stop(tmp_path, clock):
    def stop():
        if clock.now_s > 1001.0:
            raise Stopped

    worker, _ = worker_pace(paced(profile_in(tmp_path), speed=0.001), stop)
    with pytest.raises(Stopped):
        play(worker, clock)
    assert clock.now_s < 1002.0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"runtime": "simulate", "exchange": {}}, "virtual time takes what its profile says anyway"),
        ({"runtime": "ray", "exchange": {}}, "pace is for processes and threads"),
        ({"topology": "hogwild", "exchange": {}}, "hogwild has none"),
        ({"schedule": {"clock": "wall"}}, "the profile's seconds"),
    ],
)
def test_what_can_not_be_paced_is_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        paced("report", **settings)


def test_a_speed_needs_a_profile():
    with pytest.raises(ValueError, match="needs a profile"):
        RunConfig(runtime="processes", pace={"speed": 10.0})


def test_a_paced_run_is_known_by_its_costs_not_by_this_machines_cores():
    config = paced("report-tf2.21", workers="4000")
    assert not oversubscription.is_oversubscribed(config)
    virtual = RunConfig(profile="report-tf2.21", exchange={"channel": "mailbox", "queue": "unbounded"})
    assert capacity(config) == capacity(virtual)


def test_the_queue_grows_beyond_saturation_and_not_below(tmp_path):
    """8 real processes on a master that bears 10, then on one that bears 2: all of it in the profile's seconds."""
    found = {}
    for bears, update_s in {10: 0.1, 2: 0.5}.items():
        config = paced(profile_in(tmp_path, update_s=update_s), speed=10.0, workers="8", episodes=120)
        workers = "8" if bears == 2 else "2"
        summary, records = quietly(config.model_copy(update={"workers": workers}))
        assert_each_once(summary, records, 120)
        assert summary.n0 == pytest.approx(bears)
        assert summary.worker_late_share is not None
        arrived = sorted(records, key=lambda record: record.finished_s)
        found[bears] = [np.median([r.queue_length for r in part]) for part in (arrived[:40], arrived[80:])]
    assert found[10][1] <= 2
    assert found[2][0] > 4
    assert found[2][1] > 2 * found[2][0]


@pytest.mark.parametrize("runtime", ["processes", "threads"])
def test_a_paced_worker_that_waits_plays_the_game_of_virtual_time_and_never_sooner(runtime, tmp_path):
    """Real work can only take longer than its pace, and costs the master just what it costs in virtual time."""
    costs = profile_in(tmp_path, stall_every=10, stall_s=0.7, record_s=0.01, jitter="lognormal")
    common = {"workers": "1", "episodes": 30}
    waiting = {"pull": "after_apply"}
    virtual: list[EpisodeRecord] = []
    train(RunConfig(profile=costs, exchange=waiting, **common), on_episode=virtual.append)
    config = paced(costs, speed=100.0, runtime=runtime, exchange=waiting, **common)
    _, real = quietly(config)
    played = [[(r.score, r.steps, r.version_pulled, r.staleness) for r in records] for records in (real, virtual)]
    assert played[0] == played[1]
    assert [r.master_busy_s for r in real] == pytest.approx([r.master_busy_s for r in virtual])
    assert all(r.applied_s >= v.applied_s - 1e-6 for r, v in zip(real, virtual, strict=True))
    assert all(r.wall_s == pytest.approx(r.applied_s / 100.0) for r in real)


@pytest.mark.parametrize("pull", ["at_once", "after_apply"])
def test_a_paced_learner_of_trajectories_takes_what_it_takes_in_virtual_time(pull, tmp_path):
    """A parcel that only joins a batch is cheap, one that completes it costs all of its epochs; so does a rest."""
    costs = profile_in(tmp_path, gradient_step_s=0.001, learn_call_s=0.02, receive_s=0.01, record_s=0.01)
    common = {"workers": "1", "episodes": 20, "algorithm": "ppo", "learner": {"learning_rate": 1e-30}}
    virtual: list[EpisodeRecord] = []
    train(RunConfig(profile=costs, exchange={"pull": pull}, **common), on_episode=virtual.append)
    config = paced(costs, speed=100.0, runtime="threads", exchange={"pull": pull}, **common)
    summary, real = quietly(config)
    assert_each_once(summary, real, 20)
    assert [r.steps for r in real] == [r.steps for r in virtual]
    assert [r.master_busy_s for r in real] == pytest.approx([r.master_busy_s for r in virtual])


def test_dynamic_rules_act_on_the_profiles_seconds(tmp_path):
    """An episode takes 30 s by the profile, and 30 ms here."""
    config = paced(profile_in(tmp_path, reset_s=30.0), 1000.0, workers="2->5", episodes=200)
    config = config.model_copy(update={"schedule": config.schedule.model_copy(update={"window": 10, "spacing": 20})})
    summary, records = quietly(config)
    assert_each_once(summary, records, 200)
    assert summary.workers_max > 2


def test_a_run_that_is_too_fast_for_this_machine_says_so(tmp_path):
    config = paced(profile_in(tmp_path, reset_s=0.1), speed=1e6, workers="2", episodes=200)
    with pytest.warns(UserWarning, match=r"the pace was not kept: .*a pace.speed below 1e\+06"):
        summary, _ = collect(config)
    assert summary.worker_late_share > 0.05
    assert summary.worker_late_s > 0
    late = f"Of the workers' work {summary.worker_late_share:.1%} was late, and of the master's "
    assert late in closing(config, summary)
    unpaced = train(RunConfig(workers="2", episodes=50, runtime="threads"))
    assert "was late" not in closing(RunConfig(workers="2"), unpaced)
    assert unpaced.worker_late_share is unpaced.master_late_share is None


def test_a_pace_by_an_unknown_profile_is_refused_in_one_line(capsys):
    arguments = ["--set", "runtime=processes", "--set", "pace.profile=nowhere"]
    with pytest.raises(SystemExit) as ending:
        sys.exit(command(arguments))
    assert ending.value.code == 2
    assert "no cost profile 'nowhere'" in capsys.readouterr().err


def test_the_shipped_grid_has_a_twin_in_virtual_time_for_every_paced_cell():
    cells = validated_cells(read_grid(find_grid("paced")))
    real, virtual = ([c for c in cells if c.config.is_paced == is_paced] for is_paced in (True, False))
    assert [capacity(c.config) for c in real] == [capacity(c.config) for c in virtual]
    assert all(cell_seconds(c.config) > 15 for c in real)  # by the costs, not by the speed of this machine


def test_a_paced_worker_has_worked_once_for_nothing_before_its_first_episode(tmp_path, monkeypatch):
    """What is loaded at the first call would make the first episode late."""
    begun = []

    class Watched(worker_module.Worker):
        def work(self, *arguments, **named):
            begun.append(self.next_episode)
            return super().work(*arguments, **named)

    monkeypatch.setattr(worker_module, "Worker", Watched)
    common = {"runtime": "threads", "exchange": {}, "workers": "1", "episodes": 3}
    _, records = quietly(paced(profile_in(tmp_path), speed=100.0, **common))
    assert begun == [0, 0, 1, 2]
    assert [record.worker_episode for record in records] == [0, 1, 2]
    begun.clear()
    collect(RunConfig(**{**common, "environment": {"wait_s": 1e-9}}))  # too small to feel, but no compiled cycle
    assert begun == [0, 1, 2]


def test_a_sweep_of_more_processes_than_cores_says_what_that_means_and_which_grids_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(oversubscription, "cores", lambda: 2)
    request = Request("workers.yaml", results=tmp_path)
    said = " ".join(announcement(understand(request), request))
    assert "workers wait for a core instead of for the master" in said
    assert "`report` (virtual time) and `paced` (real processes)" in said
    request = Request("paced", results=tmp_path)
    assert "warning" not in " ".join(announcement(understand(request), request))


def test_no_limit_is_drawn_where_costs_are_this_machines():
    """Real runs that are not paced have no N*: nothing says from where on they collapse."""
    study = load_study(Path(__file__).parents[1] / "results" / "workers")
    assert limit_of(study) is None
    with style.paper():
        drawn = draw(study.shown, main_figure(study).panels)
    words = [text.get_text() for ax in drawn.axes for text in ax.texts]
    assert not [text for text in words if text.startswith(("N*", "N0"))]


def test_a_checkpoint_without_its_queue_is_said_to_begin_with_an_empty_one(tmp_path):
    config = paced(profile_in(tmp_path), workers="2", episodes=10)
    runtime = Run(config, None).runtime
    numbers = runtime.save().numbers
    del numbers["backlog"]
    numbers["log"]["totals"]["sent"] = 7
    with pytest.warns(UserWarning, match=r"the 7 gradients that waited .* goes on with an empty queue"):
        runtime.restore(numbers, {}, tmp_path)
    assert runtime.waiting == 0
    assert runtime.log.totals.sent == 0


def waiting_in(directory):
    """Return how many gradients wait in the newest checkpoint, if it is not being replaced just now."""
    newest = max(directory.glob("checkpoints/0*"))
    try:
        return len(json.loads((newest / "manifest.json").read_text())["info"]["runtime"]["backlog"]["queue"])
    except FileNotFoundError:
        return 0


def wait_until_queued(process, directory, gradients):
    """Return when a checkpoint has so many gradients waiting."""
    deadline = time.monotonic() + 60
    while waiting_in(directory) < gradients and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.02)


def test_a_master_killed_under_overload_goes_on_with_the_queue_it_had(tmp_path, monkeypatch):
    """All but the first and the last few of its gradients are on disk, before and after."""
    monkeypatch.setattr(parcel_queue, "BLOCK", 4)
    costs = profile_in(tmp_path, update_s=0.5)
    directory = tmp_path / "run"
    config = paced(costs, speed=10.0, workers="6", episodes=150, checkpoint_s=0.2)
    mark = f"overloaded-{os.getpid()}"
    process = start_elsewhere(config, directory, mark)
    wait_until_queued(process, directory, 20)
    process.kill()
    process.wait()
    assert wait_until_gone(mark, PATIENCE_S) == []
    waited = waiting_in(directory)
    assert waited >= 20
    run = Run(config, directory)
    assert run.runtime.waiting == waited
    in_memory = waited - parcel_queue.BLOCK * len(run.runtime._queue._spilled)
    assert 0 < in_memory <= 2 * parcel_queue.BLOCK < waited
    queued = [(arrival.slot, arrival.episodes[0].number) for arrival in run.runtime._queue.items()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        summary = run.finish()
    everything = read_records(directory).to_pandas()
    assert len(everything) == 150 == summary.episodes
    assert not everything.duplicated(["worker", "worker_episode"]).any()
    order = list(zip(everything["worker"], everything["worker_episode"], strict=True))
    first = order.index(queued[0])
    assert order[first : first + waited] == queued  # first come, first served, as if nothing had happened
    assert len(read_records(directory, UPDATE_TABLE)) == 150
    assert summary.gradients_sent == 150
