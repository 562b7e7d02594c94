"""In every topology with real processes, each parcel has one outcome and each episode one record, whoever is killed."""

import contextlib
import os
import random
import signal
import time

import pytest

from a3c_core.config import RunConfig
from a3c_core.records.tables import UPDATE_TABLE, read_records
from tests.test_processes import assert_each_once, collect

KILLS = 13  # in each of the cases: over a hundred in all
EVERY, EPISODES = 20, 400  # the last kill comes well before the end
PAUSE_S = 0.003  # for an episode's record, or all would be over before the killed are replaced
CASES = {
    "shared": {},
    "queue": {"exchange": {"transport": "queue", "channel": "mailbox"}},
    "batch": {"exchange": {"batch": 4}},
    "wait": {"exchange": {"bound": 3, "beyond": "wait"}},
    "hogwild": {"topology": "hogwild"},
    "synchronous": {"topology": "synchronous", "exchange": {"backups": 1}},
    "dppo": {"topology": "synchronous", "algorithm": "dppo", "learner": {"horizon": 20, "epochs": 3}},
    "ga3c": {"topology": "ga3c", "exchange": {"trainers": 1}, "environment": {"max_episode_steps": 500}},
    "gorila": {
        "topology": "gorila",
        "algorithm": "dqn",
        "exchange": {"pace": "in_step", "shards": 1, "bound": 2},
        "learner": {"learn_from": 200, "memory_steps": 1_000},
    },
}


class Killer:
    """Kills a worker that has not been killed before, now and then."""

    def __init__(self, seed: str):
        self._choice, self._due = random.Random(seed), EVERY
        self.killed: list[int] = []

    def __call__(self, run, record):
        time.sleep(PAUSE_S)
        processes = {member.body.pid for member in run.runtime.pool.members.values()} - set(self.killed)
        if record.episode < self._due or len(self.killed) == KILLS or len(processes) < 2:
            return
        self._due += EVERY
        with contextlib.suppress(ProcessLookupError):  # it left by itself
            os.kill(pid := self._choice.choice(sorted(processes)), signal.SIGKILL)
            self.killed.append(pid)


@pytest.mark.parametrize("name", CASES)
def test_every_parcel_has_one_outcome_whoever_is_killed(name, tmp_path):
    config = RunConfig.model_validate({"workers": "6", "episodes": EPISODES, "runtime": "processes", **CASES[name]})
    killer = Killer(name)
    summary, records = collect(config, tmp_path, killer)
    assert len(killer.killed) == KILLS
    assert KILLS // 2 < summary.crashes <= KILLS  # some may have been on their way out
    assert_each_once(summary, records, EPISODES)
    if name != "hogwild":  # who applies its gradients itself tells of an episode's last
        outcomes = read_records(tmp_path, UPDATE_TABLE).to_pandas()["status"].value_counts()
        dealt_with = summary.gradients_applied, summary.gradients_dropped, summary.gradients_rejected
        assert [outcomes.get(status, 0) for status in ("applied", "dropped", "rejected")] == list(dealt_with)
    if name == "synchronous":
        assert {record.staleness for record in records if record.status == "applied"} == {0}
