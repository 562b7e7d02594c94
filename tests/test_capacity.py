"""How many workers a master bears: from an untrained agent's episodes and the costs, and never from the run itself."""

import json
import math

import pytest
import yaml

from a3c.exchange_costs import FROZEN
from a3c_core.config import RunConfig
from a3c_core.train import Run, train
from a3c_core.virtual import capacity as capacity_module
from a3c_core.virtual.capacity import Capacity, capacity, untrained
from a3c_core.virtual.costs import load_profile
from tests.fake_engine import simulate

UNIFORM = load_profile("uniform")  # 100 steps take a worker 1 s, an update takes 0.1 s
REPORT = {"channel": "mailbox", "pull": "at_once", "queue": "unbounded"}
PIECES = {"t_max": 7, "update_every": "t_max", "standardise": False, "learning_rate": 1e-30}
COSTS = {
    "step_s": 0.002,
    "gradient_step_s": 0.001,
    "gradient_call_s": 0.003,
    "reset_s": 0.005,
    "load_s": 0.0007,
    "send_s": 0.0003,
    "resume_s": 0.0009,
    "oversleep_s": 0.0001,
    "pull_latency_s": 0.01,
    "update_s": 1e-9,
}


@pytest.fixture
def lives_100_steps(monkeypatch):
    monkeypatch.setattr(capacity_module, "untrained", lambda config: capacity_module.Untrained(10, 1000, 10))


@pytest.mark.usefixtures("lives_100_steps")
def test_both_numbers_and_the_one_that_applies():
    waiting = capacity(RunConfig(profile="uniform", exchange={"pull": "after_apply"}))
    assert waiting == Capacity(100.0, pytest.approx(1.0), pytest.approx(0.1), "N*")
    assert (waiting.n0, waiting.n_star, waiting.limit) == (pytest.approx(10), pytest.approx(11), waiting.n_star)
    for queue in ("unbounded", "bounded", "dropping"):
        at_once = capacity(RunConfig(profile="uniform", exchange={"pull": "at_once", "queue": queue}))
        assert (at_once.limit_name, at_once.limit) == ("N0", pytest.approx(10))


@pytest.mark.usefixtures("lives_100_steps")
def test_without_a_cost_or_without_a_master_there_is_no_limit():
    assert capacity(RunConfig(profile="uniform", update_s=0)).limit == math.inf
    free = capacity(RunConfig(profile="uniform", topology="hogwild"))
    assert (free.cycle_s, free.n0, free.limit) == (pytest.approx(1.1), math.inf, math.inf)


@pytest.mark.parametrize("workers", [8, 9, 11, 13])
@pytest.mark.usefixtures("lives_100_steps")
def test_an_exchange_that_does_not_wait_overflows_from_n0_on(workers):
    config = RunConfig(workers=str(workers), episodes=300 * workers, profile="uniform", exchange=REPORT)
    simulation, _ = simulate(config, UNIFORM)
    growth = max(0.0, workers / 1.0 - 1 / 0.1)  # gradients a second, for 300 s
    assert simulation.totals.queue_peak == pytest.approx(300 * growth, abs=workers)
    assert (simulation.totals.queue_peak > 2 * workers) == (workers > capacity(config).limit)


@pytest.mark.parametrize("learner", [FROZEN.model_dump(), PIECES], ids=["episodes", "pieces"])
@pytest.mark.parametrize("pull", ["at_once", "after_apply"])
@pytest.mark.parametrize("wait_s", [0.0, 0.001])
def test_the_cycle_is_that_of_a_worker_that_never_learns(learner, pull, wait_s, tmp_path):
    """Worker 0, alone, plays the very episodes that the untrained agent plays."""
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(COSTS))
    changed = {"learner": learner, "exchange": {"pull": pull}, "environment": {"wait_s": wait_s}}
    config = RunConfig.model_validate(
        {"workers": "1", "episodes": 200, "seed": 3, "profile": str(tmp_path / "p.yaml"), **changed}
    )
    run = Run(config, None)
    summary = run.finish()
    totals = run.runtime.log.totals
    assert summary.untrained_steps == pytest.approx(totals.env_steps / 200)
    first_wait_s = COSTS["resume_s"] if pull == "after_apply" else 0.0  # before its first cycle it waits for nothing
    assert summary.untrained_cycle_s == pytest.approx((totals.last_arrival_s + first_wait_s) / totals.sent, rel=1e-6)


def test_several_agents_share_a_parcel():
    alone, three = (
        RunConfig.model_validate({"profile": "uniform", "agents_per_worker": agents, "learner": PIECES})
        for agents in (1, 3)
    )
    assert capacity(three).cycle_s == pytest.approx(3 * capacity(alone).cycle_s)
    assert capacity(three).service_s == capacity(alone).service_s


def test_a_mailbox_is_filled_for_every_parcel():
    latest, mailbox = (capacity(RunConfig(exchange={"channel": channel})) for channel in ("latest", "mailbox"))
    profile = load_profile("report")
    assert mailbox.service_s - latest.service_s == pytest.approx(profile.publish_s * profile.slowdown)


@pytest.mark.parametrize(("profile", "least", "most"), [("report", 40, 52), ("report-tf2.21", 12, 15)])
def test_the_reports_master(profile, least, most):
    for seed in range(5):
        assert least < capacity(RunConfig(profile=profile, seed=seed, exchange=REPORT)).limit < most


def test_it_knows_nothing_of_the_run():
    """Other workers, longer runs and other learning rates change nothing; another seed is another agent."""
    config = RunConfig(profile="uniform")
    for change in ({"workers": "40"}, {"episodes": 300}, {"learner": {"learning_rate": 1e-2}}):
        assert capacity(RunConfig.model_validate({"profile": "uniform", **change})) == capacity(config)
    assert capacity(RunConfig(profile="uniform", seed=1)) != capacity(config)


def test_engines_agree_and_play_once(monkeypatch):
    compiled = untrained(RunConfig(episodes=12))
    assert untrained(RunConfig(episodes=12, engine="tensorflow")) == compiled
    monkeypatch.setattr(capacity_module, "_play", None)  # would fail
    assert untrained(RunConfig(episodes=12, workers="40")) == compiled


def test_long_games_are_played_until_enough_is_known(monkeypatch):
    monkeypatch.setattr(capacity_module, "_ENOUGH_STEPS", 100)
    played = untrained(RunConfig(seed=77))
    assert played.env_steps >= 100
    assert 1 <= played.episodes < 10


@pytest.mark.parametrize("runtime", ["simulate", "threads"])
def test_the_summary_tells_of_it(runtime, tmp_path):
    config = RunConfig(workers="1", episodes=5, runtime=runtime)
    train(config, tmp_path)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert "saturation_workers_first_tenth" not in summary
    if runtime == "threads":  # what this machine costs is not in a profile
        assert summary["n0"] is summary["n_star"] is summary["limit_name"] is None
        return
    known = capacity(config)
    assert (summary["n0"], summary["n_star"], summary["limit_workers"]) == (known.n0, known.n_star, known.limit)
    assert (summary["untrained_steps"], summary["limit_name"]) == (known.env_steps, "N0")
    assert summary["untrained_cycle_s"] / summary["untrained_service_s"] == pytest.approx(summary["n0"])


@pytest.mark.usefixtures("lives_100_steps")
def test_the_service_includes_bookkeeping_as_it_is_at_the_start(tmp_path, monkeypatch):
    stalls = {"record_s": 0.02, "stall_every": 10, "stall_s": 0.3, "stall_growth_s": 5.0}
    (tmp_path / "p.yaml").write_text(yaml.safe_dump({"step_s": 0.01, "update_s": 0.1, **stalls}))
    known = capacity(RunConfig(profile=str(tmp_path / "p.yaml")))
    assert known.service_s == pytest.approx(0.1 + 0.02 + 0.03)
    pieces = {"learner": {"t_max": 50, "update_every": "t_max", "standardise": False}}
    monkeypatch.setattr(capacity_module, "untrained", lambda config: capacity_module.Untrained(10, 1000, 20))
    halves = capacity(RunConfig.model_validate({"profile": str(tmp_path / "p.yaml"), **pieces}))
    assert halves.service_s == pytest.approx(0.1 + (0.02 + 0.03) / 2)  # only every other parcel ends an episode


@pytest.mark.parametrize("algorithm", ["a3c", "q", "sarsa", "n_step_q", "ppo", "dppo", "vtrace"])
def test_every_algorithm_has_its_numbers(algorithm):
    found = capacity(RunConfig(algorithm=algorithm))
    assert 0 < found.service_s < found.cycle_s * 10
    assert 0 < found.n0 < found.n_star < math.inf


@pytest.mark.usefixtures("lives_100_steps")
def test_a_learner_of_trajectories_serves_each_with_its_share_of_all_epochs():
    """Twenty parcels of 100 steps a batch: 8 epochs of 5 updates, and 8 gradients for every step."""
    learner = {"batch_steps": 2_000, "horizon": 100, "epochs": 8, "minibatches": 5}
    config = RunConfig(algorithm="ppo", profile="report", learner=learner, stall_every=0)
    costs, per_batch = load_profile("report"), 20
    updates_s = 8 * 5 * (costs.update_s + costs.gradient_call_s) + costs.read_s
    share_s = updates_s / per_batch + 8 * 100 * costs.gradient_step_s
    service_s = costs.slowdown * (costs.receive_s + share_s + costs.record_s)
    assert capacity(config).service_s == pytest.approx(service_s)
