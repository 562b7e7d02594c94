"""Advice in words and numbers: what theory says, for the profiles that come with the project and for costs by hand."""

import json
import statistics

import pytest
import yaml

from a3c import __main__ as a3c
from a3c.advise.__main__ import main
from a3c.advise.simulator import System, simulate
from a3c_core.config import RunConfig
from a3c_core.schedules import Measured, ScheduleConfig, parse_workers, target_workers
from a3c_core.virtual.capacity import capacity
from a3c_core.virtual.costs import load_profile

HAND = ["--episode", "518ms", "--update", "31.6ms"]
MAILBOXES = {"channel": "mailbox", "pull": "at_once", "queue": "unbounded"}


def advised(capsys, *arguments):
    main([*arguments, "--json"])
    return json.loads(capsys.readouterr().out)


def spoken(capsys, *arguments):
    main(list(arguments))
    return " ".join(capsys.readouterr().out.split())


def test_by_hand_it_says_what_arithmetic_says(capsys):
    said = spoken(capsys, *HAND)
    assert "The learner keeps up with 16 workers" in said
    assert "N0 = C / S = 16.4, N* = (C + S) / S = 17.4" in said
    assert "It keeps up with 4 and 10; 20 and 40 overflow" in said


@pytest.mark.parametrize("profile", ["report", "report-tf2.21", "uniform"])
def test_a_profile_has_the_limits_of_the_studies(profile, capsys):
    """A study's page has the median over its seeds' runs, each with the capacity of its own settings."""
    known = [capacity(RunConfig(profile=profile, exchange=MAILBOXES, seed=seed)) for seed in range(10)]
    numbers = advised(capsys, "--costs", profile)
    assert numbers["n0"] == pytest.approx(statistics.median(one.n0 for one in known))
    assert numbers["n_star"] == pytest.approx(statistics.median(one.n_star for one in known))
    for row in numbers["table"]:
        assert row["grows"] == (row["workers"] > numbers["n0"])
        assert (row["growth"] > 0.01 * row["throughput"]) == (row["workers"] > numbers["n0"])


def test_with_the_slower_optimizer_20_and_40_overflow(capsys):
    assert "20 and 40 overflow" in spoken(capsys, "--costs", "report-tf2.21")


def test_the_table_is_the_queueing_of_the_costs(capsys):
    for row in advised(capsys, *HAND, "--exchange", "after_apply", "--latency", "10ms")["table"]:
        workers = row["workers"]
        expected = simulate(System(workers, 0.518, 0.02, 0.0316, waits=True))._asdict()
        assert {name: row[name] for name in expected} == expected
        low, high = row["throughput_interval"]
        assert low <= row["throughput"] <= high
        bound = min(workers / (0.518 + 0.02 + 0.0316), 1 / 0.0316)
        assert row["throughput"] == pytest.approx(bound, rel=0.01)


def test_options_change_the_system(capsys):
    plain = advised(capsys, *HAND)["n0"]
    assert advised(capsys, *HAND, "--batch", "8")["n0"] == pytest.approx(8 * plain)
    assert advised(capsys, *HAND, "--shards", "2")["n0"] == pytest.approx(2 * plain)
    assert advised(capsys, *HAND, "--pull", "259ms", "--push", "259ms")["n0"] == pytest.approx(2 * plain)
    crowded = spoken(capsys, *HAND, "--cores", "4", "--exchange", "after_apply")
    assert "the cores are used up first" in crowded
    waiting = spoken(capsys, *HAND, "--queue", "8", "--workers", "10,33")
    assert "It keeps up with 10; 33 wait for the learner 50 % of their time" in waiting


def test_the_best_remedy_comes_first_and_none_is_named_where_none_is_needed(capsys):
    remedies = advised(capsys, *HAND)["remedies"]
    assert {remedy["name"] for remedy in remedies[:3]} >= {"8 gradients an update", "a learner in 4 shards"}
    assert not remedies[0]["grows"]
    assert remedies[0]["episodes_per_s"] == pytest.approx(40 / 0.518, rel=0.01)
    assert "No remedy is needed up to 10 workers" in spoken(capsys, *HAND, "--workers", "10")
    assert "workers wait" not in {
        remedy["name"] for remedy in advised(capsys, *HAND, "--exchange", "after_apply")["remedies"]
    }


def test_the_schedule_keeps_the_learner_as_busy_as_wanted(capsys):
    schedule = advised(capsys, *HAND, "--grows", "8", "--aim", "0.7")["schedule"]
    pasted = yaml.safe_load(schedule["line"])
    rules = ScheduleConfig(**pasted["schedule"])
    span = parse_workers(pasted["workers"], rules)
    assert span.start == int(0.7 * 0.518 / 0.0316)
    for factor in (1.0, 2.0, 4.0, 7.9):
        measured = Measured(span.start, 0.518 * factor, 10_000, 0.7, 0)
        wanted = target_workers(span, rules, measured)
        assert wanted * 0.0316 / (0.518 * factor) == pytest.approx(0.7, abs=0.1)
    assert schedule["fixed"] == 16
    assert 2.0 < schedule["gain"] < 8.0


def test_a_growing_log_and_a_constant_one_differ_in_the_schedule_only_if_it_grows(capsys):
    assert advised(capsys, *HAND)["schedule"] is None
    assert advised(capsys, *HAND, "--grows", "0.5")["schedule"] is None


def test_jitter_makes_gradients_wait_before_the_limit(capsys):
    rows = [
        {row["workers"]: row for row in advised(capsys, *HAND, *more)["table"]} for more in ([], ["--jitter", "0.5"])
    ]
    assert rows[0][16]["waiting"] == pytest.approx(0.0, abs=1e-9)
    assert rows[1][16]["waiting"] > 1.0


def test_files_are_written(tmp_path, capsys):
    names = [str(tmp_path / name) for name in ("page.html", "numbers.json", "profile.yaml")]
    main([*HAND, "--jitter", "0.2", "--html", names[0], "--json", names[1], "--profile", names[2]])
    assert capsys.readouterr().out == ""  # --json asks for numbers, not for words
    page = (tmp_path / "page.html").read_text()
    assert "The learner keeps up with 16 workers" in page
    assert "http" not in page
    profile = load_profile(names[2])
    assert (profile.reset_s, profile.update_s, profile.jitter) == (0.518, 0.0316, "lognormal")
    assert profile.cycle_s(env_steps=100) / profile.service_s() == pytest.approx(
        json.loads((tmp_path / "numbers.json").read_text())["n0"]
    )


def test_an_engine_is_measured(capsys):
    assert "measured here: compiled, untrained" in spoken(capsys, "--measure", "--seconds", "0.2")


def test_it_is_a_command_of_the_entry_point(capsys):
    assert a3c.main(["advise", *HAND]) == 0
    assert "keeps up with 16 workers" in capsys.readouterr().out
