"""A worker's compiled cycle hands over what the readable one does, and waits where that waits."""

import mmap
import os
import threading

import numpy as np
import pytest

from a3c_core.build import make_engine
from a3c_core.config import ExchangeConfig, LearnerConfig, RunConfig
from a3c_core.games.base import EnvironmentConfig
from a3c_core.real import worker as worker_module
from a3c_core.real.cycle import CompiledCycle, can_be_compiled
from a3c_core.real.cycle_kernel import work_on
from a3c_core.real.shared_memory import (
    ACCEPTED,
    AFTER_THIS_EPISODE,
    AT_ONCE,
    GRANTED,
    NO_ROOM,
    RING_SIZE,
    SERVED,
    SLOT,
    UNWANTED,
    Layout,
)
from a3c_core.real.transport import SharedChannel, Stopped
from a3c_core.real.worker_manager import EpisodeQuota, end_and_grant

IN_PIECES = LearnerConfig(t_max=20, update_every="t_max", standardise=False)
SETTINGS = {
    "whole episodes": {},
    "in pieces": {"learner": IN_PIECES},
    "cut short": {"environment": EnvironmentConfig(max_episode_steps=30)},
    "as published": {"environment": EnvironmentConfig(observation="pixels", seeding="recreated", actions="shared")},
}
CLOCKS = {"finished_s", "started_s"}


class Desk:
    """A worker's place without a master, in this process."""

    def __init__(self, **settings):
        self.config = RunConfig(workers="1", runtime="processes", seed=5, **settings)
        self.engine = make_engine(self.config)
        layout = Layout(slots=1, parameters=self.engine.model.spec.size, agents=1, averages=0, mail_bytes=0)
        self.arrays = layout.arrays(mmap.mmap(-1, layout.nbytes))
        self.arrays.inbox["room"] = 9
        self.arrays.publish(7, self.engine.model.initial_parameters(3))
        (self.bell, doorbell), (ears, self.button) = os.pipe(), os.pipe()
        self.slot, self.channel = self.arrays.slots[0], SharedChannel(self.config, 0, self.arrays, doorbell, ears)

    def grant(self, episodes):
        self.slot["granted"] = episodes

    def compiled(self):
        return CompiledCycle(self.config, 0, 0, self.engine, self.arrays, self.channel)

    def readable(self):
        worker = worker_module.worker_with(self.engine, self.config, 0, 0)
        return worker_module.ReadableCycle(self.config, worker, self.engine, self.arrays, self.channel)


def go_on(cycle, pieces=1000):
    """Return what keeps a compiled cycle from going on."""
    return work_on(cycle._place, cycle._player, np.int64(pieces))


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_it_hands_over_what_the_readable_cycle_does(settings):
    ours, theirs = Desk(**settings), Desk(**settings)
    ours.grant(RING_SIZE)
    theirs.grant(RING_SIZE)
    go_on(ours.compiled(), RING_SIZE)
    readable = theirs.readable()
    for _ in range(RING_SIZE):
        readable.work_once()
    assert ours.slot["sent"] == theirs.slot["sent"] == RING_SIZE
    for name in ("messages", "episodes"):
        mine, other = getattr(ours.arrays, name)[0], getattr(theirs.arrays, name)[0]
        for field in set(mine.dtype.names) - CLOCKS:
            np.testing.assert_allclose(mine[field], other[field], rtol=1e-5, err_msg=field)
    scale = np.abs(theirs.arrays.gradients).max()
    np.testing.assert_allclose(ours.arrays.gradients, theirs.arrays.gradients, atol=1e-5 * scale)
    assert scale > 0
    assert all(ours.slot[name] > 0 for name in ("play_s", "gradient_s", "pull_s"))


def test_it_waits_for_grants_and_for_room_in_its_ring():
    desk = Desk()
    cycle = desk.compiled()
    assert go_on(cycle) == GRANTED
    desk.grant(2)
    assert go_on(cycle) == GRANTED
    assert desk.slot["sent"] == 2
    desk.grant(100)
    assert go_on(cycle) == ACCEPTED
    assert desk.slot["sent"] == RING_SIZE
    oldest = desk.arrays.gradients[0, 0].copy()
    desk.slot["accepted"] = 1
    assert go_on(cycle) == ACCEPTED
    assert desk.slot["sent"] == RING_SIZE + 1
    assert (desk.arrays.gradients[0, 0] != oldest).any()


def test_it_goes_on_by_itself_when_the_master_is_quick():
    desk = Desk()
    desk.grant(RING_SIZE + 2)
    cycle = desk.compiled()

    def answer():
        while desk.slot["waiting"] != ACCEPTED:
            pass
        desk.slot["accepted"] = 2
        desk.slot["waiting"] = 0
        os.write(desk.button, b"!")

    master = threading.Thread(target=answer)
    master.start()
    while go_on(cycle) != GRANTED:  # again, on a machine so busy that it was not quick
        assert desk.slot["sent"] == RING_SIZE
    master.join()
    assert desk.slot["sent"] == RING_SIZE + 2
    assert desk.slot["wait_s"] > 0
    assert desk.slot["waiting"] == 0


@pytest.mark.parametrize(("settings", "room", "need"), [
    ({}, 1, GRANTED),
    ({}, 0, NO_ROOM),
    ({"exchange": ExchangeConfig(queue="unbounded")}, 0, GRANTED),
    ({"exchange": ExchangeConfig(pull="after_apply")}, 1, SERVED),
])  # fmt: skip
def test_it_waits_where_the_exchange_says_so(settings, room, need):
    desk = Desk(**settings)
    desk.grant(1)
    desk.arrays.inbox["room"] = room
    assert go_on(desk.compiled()) == need
    assert desk.slot["sent"] == 1


def test_it_leaves_at_once_or_after_its_episode():
    desk = Desk(learner=IN_PIECES)
    desk.grant(100)
    cycle = desk.compiled()
    go_on(cycle, 1)
    desk.slot["stop"] = AFTER_THIS_EPISODE
    assert go_on(cycle) == GRANTED
    assert desk.arrays.messages["episodes"].sum() == 1
    with pytest.raises(Stopped):
        cycle.work_on()
    desk = Desk()
    desk.grant(100)
    desk.slot["stop"] = AT_ONCE
    assert go_on(desk.compiled()) == GRANTED
    desk.slot["stop"], desk.slot["generation"] = 0, 1  # another has its slot
    cycle = desk.compiled()
    assert go_on(cycle) == UNWANTED
    assert desk.slot["sent"] == 0
    with pytest.raises(Stopped):
        cycle.work_on()


def test_it_rings_once_for_a_master_that_sleeps():
    desk = Desk()
    desk.grant(3)
    desk.arrays.inbox["asleep"] = 1
    go_on(desk.compiled())
    assert desk.arrays.inbox["asleep"] == 0
    assert len(os.read(desk.bell, 100)) == 1


@pytest.mark.parametrize(("settings", "compiled"), [
    ({}, True),
    ({"exchange": ExchangeConfig(pull="after_apply")}, True),
    ({"algorithm": "q"}, False),
    ({"agents_per_worker": 2}, False),
    ({"exchange": ExchangeConfig(compensation=0.1)}, False),  # gradients travel with their parameters
    ({"environment": EnvironmentConfig(wait_s=0.001)}, False),
    ({"seed": 1 << 40}, False),
])  # fmt: skip
def test_it_is_for_what_compiled_code_can_do(settings, compiled):
    config = RunConfig.model_validate({"runtime": "processes", "workers": "1", **settings})
    layout = Layout(slots=1, parameters=3, agents=1, averages=0, mail_bytes=0)
    channel = SharedChannel(config, 0, layout.arrays(mmap.mmap(-1, layout.nbytes)), 0, 0)
    assert can_be_compiled(make_engine(config), config, channel) == compiled


def test_compiled_code_grants_as_python_does():
    draw = np.random.default_rng(0)
    ours, theirs = (EpisodeQuota(np.zeros(3, SLOT), 2) for _ in range(2))
    for quota in (ours, theirs):
        quota.open([5, 0, 9], 300)
        for slot in range(3):
            while quota.grant(slot):
                pass
    for slot in draw.integers(3, size=300):
        if not theirs.is_idle(slot):
            theirs.end(slot)
            theirs.grant(slot)
            end_and_grant.py_func(ours.counts, slot, 2)
        for mine, other in zip(ours.counts, theirs.counts, strict=True):
            np.testing.assert_array_equal(mine, other)
    assert theirs.counts.left[0] < 100
