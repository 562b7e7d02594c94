"""The compiled master deals with the workers' rings as the readable one does: the same parameters, the same records."""

import os

import numpy as np
import pytest

from a3c.benchmark.feeder import Feeder
from a3c_core.build import new_learner
from a3c_core.config import ExchangeConfig, LearnerConfig, RunConfig
from a3c_core.real.direct import DirectRuntime, is_direct
from a3c_core.real.master import RealRuntime
from a3c_core.real.shared_memory import ACCEPTED, GRANTED, RING_SIZE, SERVED, Message
from a3c_core.virtual.costs import load_profile
from a3c_core.worker import Episode

SLOTS = 3
TIMES = ("started_s", "finished_s", "applied_s", "wall_s", "queue_wait_s", "master_busy_s")  # each run has its own
ITS_OWN = (*TIMES, "queue_length")  # the readable master does not count what it has not taken from the rings yet


def config_of(workers=str(SLOTS), **settings):
    return RunConfig(workers=workers, episodes=10_000, runtime="processes", **settings)


def fill(arrays, round_number, agents):
    """Put messages into all rings that were emptied: gradients in turn, one of them not finite, one from a stranger."""
    draw = np.random.default_rng(round_number)
    size = arrays.gradients.shape[-1]
    for slot in range(SLOTS):
        for turn in range(RING_SIZE - slot):
            place = slot, (int(arrays.slots["sent"][slot]) + turn) % RING_SIZE
            arrays.gradients[place] = draw.standard_normal(size, np.float32)
            number = round_number * RING_SIZE + turn
            stranger = slot == 1 and turn == 3
            sent_s = 0.01 * (SLOTS * turn + slot) + round_number
            arrays.messages[place] = Message(round_number, 60, sent_s, agents, generation=int(stranger))
            for agent in range(agents):
                arrays.episodes[(*place, agent)] = Episode(number, 0.5, turn, -5.0, 60, bool(turn % 2), 1.5, 0.6)
        arrays.slots["sent"][slot] += RING_SIZE - slot
    arrays.gradients[0, 2, 7] = np.nan


def dealt_with(kind, config):
    """Return the learner, the records and the totals of a master that found some rounds of messages."""
    learner, records, updates = new_learner(config), [], []
    if kind is DirectRuntime:
        parts = (lambda block: records.extend(block.records())), "run", lambda table: updates.extend(table.to_pylist())
    else:
        names = ["update", "worker", "version_pulled", "version", "staleness"]
        parts = records.append, "run", lambda row: updates.append(dict(zip(names, row, strict=False)))
    runtime = kind(config, load_profile("uniform"), learner, *parts)
    runtime.open(Feeder(runtime.block.arrays, SLOTS, pipes=False))
    for round_number in range(3):
        fill(runtime.block.arrays, round_number, config.agents_per_worker)
        while runtime.inbox.pending().size or runtime.waiting:
            runtime.step()
    runtime.settle()
    accepted = runtime.block.arrays.slots["accepted"].tolist()
    shown = runtime.block.arrays.parameters[int(runtime.block.arrays.current[0])].copy()
    runtime.block.close()
    return learner, records, updates, runtime, accepted, shown


@pytest.mark.parametrize("settings", [
    {},
    {"learner": LearnerConfig(optimizer="rmsprop", anneal=True, clip_norm=2.0)},
    {"agents_per_worker": 3},
])  # fmt: skip
def test_it_does_what_the_readable_master_does(settings):
    config = config_of(exchange=ExchangeConfig(queue_size=1_000), **settings)  # or the two would pause differently
    ours, theirs = dealt_with(DirectRuntime, config), dealt_with(RealRuntime, config)
    np.testing.assert_array_equal(ours[0].parameters, theirs[0].parameters)
    np.testing.assert_array_equal(ours[0].optimizer.slots, theirs[0].optimizer.slots)
    np.testing.assert_array_equal(ours[-1], theirs[-1])  # what is published
    assert (ours[0].version, ours[0].optimizer.rejected) == (theirs[0].version, theirs[0].optimizer.rejected)
    plain = [[record._replace(**dict.fromkeys(ITS_OWN, 0.0)) for record in run[1]] for run in (ours, theirs)]
    assert len(plain[0]) > 30
    assert str(plain[0]) == str(plain[1])  # as text, since one norm is NaN
    assert [{key: row[key] for key in them} for row, them in zip(ours[2], theirs[2], strict=True)] == theirs[2]
    assert ours[3].recorded == theirs[3].recorded
    assert ours[4] == theirs[4]
    totals = [
        vars(run[3].log.totals) | dict.fromkeys(("staleness", "master_busy_s", "queue_peak")) for run in (ours, theirs)
    ]
    assert totals[0] == totals[1]
    assert ours[3].log.totals.staleness.save() == theirs[3].log.totals.staleness.save()


def test_a_gradient_finds_all_that_came_before_it():
    _, _, updates, runtime, *_ = dealt_with(DirectRuntime, config_of())
    waiting = sum(RING_SIZE - slot for slot in range(SLOTS))
    first = [row["queue_length"] for row in updates[: waiting - 1]]
    assert set(range(waiting)) - set(first) == {3 * SLOTS + 1}  # the stranger's place
    assert runtime.log.totals.queue_peak == waiting


def test_it_wakes_those_who_have_what_they_wait_for_once():
    config = config_of()
    runtime = DirectRuntime(config, load_profile("uniform"), new_learner(config), lambda block: None)
    feeder = Feeder(runtime.block.arrays, SLOTS, pipes=False)
    runtime.open(feeder)
    ears = []
    for member in feeder.members.values():
        ear, member.wake = os.pipe()
        os.set_blocking(ear, False)
        ears.append(ear)
    waiting, granted = runtime.block.arrays.slots["waiting"], runtime.worker_manager.quota
    waiting[:] = ACCEPTED, GRANTED, SERVED
    fill(runtime.block.arrays, 0, agents=1)
    for under_way in (0, 1):  # the second worker has been granted nothing yet, then something
        granted.counts.under_way[1], granted.counts.left[0] = under_way, 0
        granted.counts.under_way[[0, 2]] = RING_SIZE
        runtime._attend(0.0)
        runtime._attend(0.0)
        assert waiting.tolist() == [0, 0 if under_way else GRANTED, SERVED]
    assert os.read(ears[0], 9) == os.read(ears[1], 9) != b""
    with pytest.raises(BlockingIOError):
        os.read(ears[2], 9)
    runtime.block.close()


def test_records_have_the_clocks_of_the_run():
    _, records, updates, runtime, *_ = dealt_with(DirectRuntime, config_of())
    applied = [record.applied_s for record in records]
    assert applied == sorted(applied)
    assert applied[0] >= 0
    assert applied[-1] <= runtime.clock_s
    busy = [record.master_busy_s for record in records]
    assert busy == sorted(busy)
    assert busy[0] >= 0
    assert all(row["service_s"] >= 0 for row in updates)


@pytest.mark.parametrize(
    ("workers", "at_hand", "wait_s", "sent", "nap_us"),
    [
        ("3", 2, 0.0, 300, 3_000),  # a third of three workers needs 3.3 ms, which is too long
        ("3", 2, 0.0, 3_000, 333),
        ("40", 2, 0.0, 3_000, 2_666),  # a third of forty would fill the rings of the two that play
        ("3", 2, 0.001, 3_000, 0),  # a game that waits leaves cores free
        ("3", 3, 0.0, 3_000, 0),  # each worker has its own
    ],
)
def test_the_master_lets_a_third_of_a_round_come_together_but_no_ring_be_full(
    monkeypatch, workers, at_hand, wait_s, sent, nap_us
):
    clock_s = 100.0
    monkeypatch.setattr("a3c_core.real.direct.time.monotonic", lambda: clock_s)
    monkeypatch.setattr("a3c_core.real.direct.cores", lambda: at_hand)
    config = config_of(workers=workers, environment={"wait_s": wait_s})
    runtime = DirectRuntime(config, load_profile("uniform"), new_learner(config), lambda records: None)
    runtime._set_nap()  # no time has passed: nothing is known yet
    assert runtime._numbers["nap_us"] == 0
    clock_s, runtime._numbers["sent"] = 101.0, sent
    runtime._set_nap()
    assert runtime._numbers["nap_us"] == nap_us


@pytest.mark.parametrize(("settings", "direct"), [
    ({}, True),
    ({"runtime": "threads"}, True),
    ({"exchange": ExchangeConfig(queue="unbounded")}, False),  # it may grow beyond the rings
    ({"exchange": ExchangeConfig(pull="after_apply")}, False),
    ({"exchange": ExchangeConfig(batch=4)}, False),
    ({"exchange": ExchangeConfig(transport="queue", channel="mailbox")}, False),
    ({"workers": "2->4"}, False),  # the schedule looks at every episode
    ({"algorithm": "q"}, False),  # it publishes a target network beside the parameters
    ({"topology": "hogwild"}, False),
])  # fmt: skip
def test_it_is_for_runs_that_need_nothing_between_rings_and_optimizer(settings, direct):
    config = RunConfig.model_validate({"workers": "3", "runtime": "processes", **settings})
    assert is_direct(config, new_learner(config)) == direct
