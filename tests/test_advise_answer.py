"""The answer to a trainer's log: what limits it, which changes help, what could go, what a budget gains."""

import json

import numpy as np
import pytest

from a3c.advise import answer, remedies
from a3c.advise.__main__ import main
from a3c.advise.distributions import lognormal
from a3c.advise.fit_steps import Given, fit_steps, resampled
from a3c.advise.measurements import ASYNCHRONOUS, SYNCHRONOUS, Measurements
from a3c.advise.simulator import System, simulate
from tests.sweeps import ROOT

LOGS = ROOT / "docs/advise/logs"


def log(name, *options):
    return ["--log", str(LOGS / name), *options]


def told(capsys, *arguments):
    main([*arguments, "--json"])
    return json.loads(capsys.readouterr().out)


def spoken(capsys, *arguments):
    main(list(arguments))
    return " ".join(capsys.readouterr().out.split())


def refused(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert ended.value.code == 2
    return capsys.readouterr().err


def measured(wait_s, update_s, sync_s=0.0, steps=20, mode=ASYNCHRONOUS, **others):
    random = np.random.default_rng(0)
    vary = random.normal(1.0, 0.05, (3, steps))
    parts = [part * one for part, one in zip((wait_s, update_s, sync_s), vary, strict=True)]
    arrays = {"wait_s": parts[0], "update_s": parts[1], "sync_s": parts[2], "step_s": sum(parts)}
    return Measurements("columns", "a test", mode, **arrays, **others)


@pytest.mark.parametrize(
    ("name", "limit", "first"),
    [
        ("verl_async.log", "generation", "rollout.nnodes"),
        ("verl_one_step_off.jsonl", "generation", "verl.experimental.fully_async_policy"),
        ("areal_table.log", "weight sync", "actor.weight_update_mode"),
        ("slime.log", "generation", "--partial-rollout"),
        ("miles.log", "generation", "--rollout-num-gpus"),
        ("rllib_appo_result.json", "generation", "num_env_runners"),
        ("rllib_ppo_progress.csv", "generation", "APPO or IMPALA"),
    ],
)
def test_each_system_is_told_its_limit_and_its_own_settings(name, limit, first, capsys):
    numbers = told(capsys, *log(name))
    assert numbers["limit"] == limit
    change = numbers["changes"][0]
    assert change["setting"].startswith(first)
    assert change["gain"]["low"] <= change["gain"]["mean"] <= change["gain"]["high"]
    assert change["gain"]["mean"] >= 0.01
    assert numbers["unknown"]


@pytest.mark.parametrize("name", ["verl_async.log", "slime.log", "miles.log", "verl_one_step_off.jsonl"])
def test_the_system_that_is_simulated_takes_the_time_of_the_log(name, capsys):
    numbers = told(capsys, *log(name))
    low, high = (numbers["simulated"]["step_s"][key] for key in ("low", "high"))
    assert 0.97 * low <= numbers["measured"]["step_s"] <= 1.03 * high


def test_a_trainer_that_never_waits_is_the_limit_and_generators_could_go():
    found = measured(0.0, 30.0, batch=64, slots=256, rollouts_s=np.full(200, 10.0) * np.linspace(0.5, 1.5, 200))
    seen = answer.answer(found, Given(staleness=2.0))
    assert seen.limit == "training"
    assert seen.spare[0] >= 0.5  # 256 slots make ten times what is used
    assert seen.changes[0].name.startswith("1.5 times the trainer's devices")
    assert seen.changes[0].gain.mean == pytest.approx(0.5, abs=0.03)
    assert any("of the generators could go" in sentence.replace(" or", "") for sentence in answer.sentences(seen))


def test_a_bound_on_age_that_holds_generators_up_is_named():
    system = System(64, 10.0, 0.0, 8.0, batch=64, staleness=0.0)
    seconds = 1 / simulate(system, lognormal(0.5)).updates
    found = measured(seconds - 8.0, 8.0, batch=64, slots=64, staleness_limit=0.0)
    seen = answer.answer(found, Given())
    assert seen.limit == "age"
    best = seen.changes[0]
    assert best.system.staleness == 1.0
    again = 1 / simulate(system._replace(staleness=1.0), lognormal(0.5)).updates
    assert best.gain.mean == pytest.approx(seconds / again - 1.0, abs=0.1)


def test_ranges_are_wider_for_a_log_that_varies_more():
    even, odd = (measured(20.0, 20.0, steps=12) for _ in range(2))
    factors = np.tile([0.3, 1.7], 6)
    times = {"step_s": even.update_s + 20 * factors, "wait_s": 20 * factors, "update_s": even.update_s}
    odd = Measurements("columns", "a test", ASYNCHRONOUS, **times)
    widths = []
    for found in (even, odd):
        seen = answer.answer(found, Given())
        widths.append(seen.step_s.high - seen.step_s.low)
    assert widths[1] > 3 * widths[0]


def test_steps_are_drawn_again_for_each_seed_and_equal_seeds_are_equal():
    found = measured(20.0, 20.0)
    assert resampled(found, 3).step_s.tolist() == resampled(found, 3).step_s.tolist()
    assert resampled(found, 3).step_s.tolist() != resampled(found, 4).step_s.tolist()
    assert set(resampled(found, 3).step_s) <= set(found.step_s)


def test_options_say_otherwise(capsys):
    plain = told(capsys, *log("verl_async.log"))["costs"]
    given = ["--staleness", "2", "--in-flight", "128", "--sync", "3s", "--sync-every", "2", "--sync-mode", "drain"]
    costs = told(capsys, *log("verl_async.log", *given))["costs"]
    assert (plain["staleness"], plain["workers"], plain["sync_every"]) == (0.5, 256, 4)
    changed = {"staleness": 2, "workers": 128, "sync_s": 3, "sync_every": 2, "sync_mode": 1}
    assert {name: costs[name] for name in changed} == changed


def test_rollouts_that_get_longer_hold_a_trainer_up(capsys):
    plain, grown = (told(capsys, *log("verl_async.log", *more)) for more in ([], ["--grows", "3"]))
    assert grown["costs"]["grows"] == 3.0
    assert grown["simulated"]["step_s"]["mean"] > 1.3 * plain["simulated"]["step_s"]["mean"]


def test_a_budget_is_divided_and_its_assumptions_are_said(capsys):
    said = spoken(capsys, *log("verl_async.log", "--budget", "128", "--split", "64:64"))
    assert "The best split is 72:56 (generators:trainer)" in said
    assert "Assumed: slots for rollouts grow in proportion to the generators" in said
    numbers = told(capsys, *log("verl_async.log", "--budget", "128", "--split", "64:64"))
    rows = {row["generators"]: row for row in numbers["budget"]["splits"]}
    assert rows[64]["step_s"]["mean"] == pytest.approx(numbers["simulated"]["step_s"]["mean"], rel=0.02)
    assert all(row["generators"] + row["trainers"] == 128 for row in rows.values())
    hours = [row["hours"] / row["step_s"]["mean"] for row in rows.values()]
    assert np.allclose(hours, 128 * 1000 / 3600)
    serial = told(capsys, *log("verl_async.log", "--budget", "128", "--split", "64:64", "--serial", "0.5"))
    others = {row["generators"]: row for row in serial["budget"]["splits"]}
    assert others[104]["step_s"]["mean"] < rows[104]["step_s"]["mean"]  # a trainer on few devices is slowed less
    assert "--split 16:16" in refused(capsys, *log("verl_async.log", "--budget", "32"))


def test_overlap_is_predicted_from_a_synchronous_log(capsys):
    numbers = told(capsys, *log("verl_sync.log", "--what-if", "async", "--batch", "512"))
    names = [change["name"] for change in numbers["what_if_async"]]
    assert names == ["partial rollouts, still by turns", "one step off", "fully asynchronous, in quarter batches"]
    assert "needs a log of synchronous training" in refused(capsys, *log("verl_async.log", "--what-if", "async"))


def test_where_generation_takes_all_of_the_time_overlap_gains_little():
    """Generating for 90 % of a step on all devices is not made up for by training beside it on fewer of them."""
    found = measured(90.0, 2.0, mode=SYNCHRONOUS, batch=512, rollouts_s=np.full(100, 90.0))
    costs = [fit_steps(found, Given())]
    gains = [change.gain.mean for change in remedies.what_if_async(costs, 0.0)]
    assert max(gains) < 0.05
    assert "Overlap gains less than 5 %" in " ".join(answer.what_if_words(remedies.what_if_async(costs, 0.0), 0.0))


def test_where_both_take_half_of_the_time_and_rollouts_vary_overlap_gains_much():
    found = measured(50.0, 50.0, mode=SYNCHRONOUS, batch=512)
    costs = [fit_steps(found, Given(cycle_factors=lognormal(1.0)))]
    one_off, fully = (change.gain.mean for change in remedies.what_if_async(costs, 0.0)[1:])
    assert fully > 0.3
    assert fully > one_off


def test_a_group_by_hand_and_the_limit_in_flight(capsys):
    hand = [
        "--episode",
        "40s",
        "--update",
        "9s",
        "--batch",
        "64",
        "--group",
        "8",
        "--jitter",
        "0.5",
        "--workers",
        "256",
    ]
    said = spoken(capsys, *hand, "--in-flight", "256", "--staleness", "2", "--sync", "3s", "--sync-every", "4")
    assert "the limit on rollouts in flight holds them up first" in said
    assert "512 rollouts in flight" in said
    assert "64 gradients an update" not in said
    assert "8 gradients an update" not in said
    error = refused(capsys, *hand[:-1], "4")
    assert "a group of 8 rollouts needs as many slots, and there are 4" in error


def test_a_batch_of_eight_is_no_remedy_for_one_who_has_it(capsys):
    hand = ["--episode", "518ms", "--update", "31.6ms", "--workers", "200"]
    names = [{one["name"] for one in told(capsys, *hand, "--batch", str(batch))["remedies"]} for batch in (1, 2, 8)]
    assert ["8 gradients an update" in name for name in names] == [True, True, False]


def test_what_grows_has_no_mean(capsys):
    hand = ["--episode", "518ms", "--update", "31.6ms", "--workers", "10,40"]
    assert "grows grows grows" in spoken(capsys, *hand)
    rows = {row["workers"]: row for row in told(capsys, *hand)["table"]}
    assert (rows[40]["grows"], rows[40]["staleness"], rows[40]["waiting"]) == (True, None, None)
    assert rows[10]["staleness"] == pytest.approx(10)


def test_a_curve_of_throughput_slows_workers_down(capsys):
    hand = ["--episode", "10s", "--update", "1ms", "--workers", "64", "--exchange", "after_apply"]
    curve = ["--curve", "1:0.1,64:3.2,128:4.3"]
    plain, slowed = (told(capsys, *hand, *more)["table"] for more in ([], curve))
    rates = [next(row["throughput"] for row in rows if row["workers"] == 64) for rows in (plain, slowed)]
    assert rates[0] == pytest.approx(6.4, rel=0.02)
    assert rates[1] == pytest.approx(3.2, rel=0.1)
    assert "three points or more" in refused(capsys, *hand, "--curve", "1:0.1,64:3.2")


def test_sessions_alone_need_an_update(tmp_path, capsys):
    sessions = ROOT / "docs/advise/sleeping/log/session_tracer/sessions-r0.jsonl"
    assert "say it with --update" in refused(capsys, "--log", str(sessions))
    numbers = told(capsys, "--log", str(sessions), "--update", "0.4s", "--batch", "32", "--staleness", "2")
    assert numbers["costs"]["group"] == 4
    assert numbers["simulated"]["step_s"]["mean"] > 0.4


def test_the_sleeping_trainer_is_predicted_from_its_log():
    from a3c.advise.validation import sleeping

    for rate, stale in sleeping():
        assert rate.predicted == pytest.approx(rate.measured, rel=0.08)
        assert stale.predicted == pytest.approx(stale.measured, abs=0.1)


def test_published_figures_are_predicted_as_well_as_the_document_says():
    from a3c.advise import validation

    assert max(abs(row.error) for row in validation.closed_forms()) < 0.02
    assert max(abs(row.predicted - row.measured) for row in validation.applied_compute()) < 0.3
    text = (ROOT / "docs/advise-validation.md").read_text()
    assert validation._table("setting", validation.applied_compute()) in text
