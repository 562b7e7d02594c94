"""Games that wait, and the comparison of virtual with real time. How well they agree is measured, not tested."""

import csv

import pytest

from a3c.benchmark import courses
from a3c.exchange_costs import FROZEN
from a3c_core.config import ExchangeConfig, RunConfig
from a3c_core.games.base import EnvironmentConfig
from a3c_core.train import train
from a3c_core.virtual.capacity import capacity, profile_of
from a3c_core.virtual.costs import load_profile
from experiments.agreement import paced, paced_report
from experiments.agreement.comparison import Comparison, Setting
from experiments.validate import closing, main, report_of, rows
from tests.fake_engine import simulate

UNIFORM = load_profile("uniform")  # 100 steps take a worker 1 s, an update takes 0.1 s


def virtual(wait_s, profile=UNIFORM, workers=1, episodes=5, **exchange):
    config = RunConfig(
        workers=str(workers),
        episodes=episodes,
        environment=EnvironmentConfig(wait_s=wait_s),
        exchange=ExchangeConfig(**exchange),
    )
    return simulate(config, profile)[0]


def test_a_game_that_waits_takes_exactly_so_much_longer_in_virtual_time():
    assert virtual(0.0).clock_s == pytest.approx(5 * 1.0 + 0.1)
    assert virtual(0.03).clock_s == pytest.approx(5 * (1.0 + 100 * 0.03) + 0.1)


def test_who_waits_needs_no_core():
    """Two workers share one core: their work takes twice as long, their waits do not."""
    one_core = UNIFORM.model_copy(update={"cores": 1, "update_s": 0.0})
    assert virtual(0.0, one_core, workers=2, episodes=2).clock_s == pytest.approx(2.0)
    assert virtual(0.05, one_core, workers=2, episodes=2).clock_s == pytest.approx(5.0 + 2.0)


def test_a_core_is_shared_for_as_long_as_two_need_it():
    """While the master needs 0.1 s, the worker that goes on meanwhile gets only half of the core."""
    one_core = UNIFORM.model_copy(update={"cores": 1})
    assert virtual(0.0, one_core, episodes=2).clock_s == pytest.approx(2 * (1.0 + 0.1))
    assert virtual(0.0, one_core, episodes=2).totals.master_busy_s == pytest.approx(0.2 + 0.1)


def test_waking_and_resuming_cost_what_the_profile_says():
    wakes = UNIFORM.model_copy(update={"wake_s": 0.05})
    assert virtual(0.0, wakes, pull="after_apply").clock_s == pytest.approx(5 * (1.0 + 0.1 + 0.05))
    resumes = UNIFORM.model_copy(update={"resume_s": 0.2, "oversleep_s": 0.01})
    waited = virtual(0.03, resumes)
    assert waited.clock_s == pytest.approx(5 * (1.0 + 3.0 + 0.01 + 0.2) + 0.1)
    assert virtual(0.0, resumes, pull="after_apply").clock_s == pytest.approx(5 * (1.0 + 0.1) + 4 * 0.2)


def test_a_master_without_a_core_of_its_own_is_woken_with_cold_caches(tmp_path):
    """As many workers as cores leave it none; one that is fed without a pause feels nothing of it."""
    path = tmp_path / "profile.yaml"
    path.write_text("{step_s: 0.01, update_s: 0.1, wake_s: 0.05, cold_s: 0.2, cores: 3, master_first: true}")
    costs = {workers: profile_of(RunConfig(workers=workers, profile=str(path))) for workers in ("2", "3", "3->9")}
    woken_s = [profile.service_s(idle=True) for profile in costs.values()]
    assert woken_s == pytest.approx([0.15, 0.35, 0.35])
    assert [profile.service_s() for profile in costs.values()] == pytest.approx([0.1] * 3)


@pytest.mark.parametrize("runtime", ["processes", "threads"])
def test_a_game_that_waits_is_felt_by_real_workers(runtime):
    environment = EnvironmentConfig(wait_s=0.001)
    config = RunConfig(workers="2", episodes=10, runtime=runtime, environment=environment, learner=FROZEN)
    records = []
    summary = train(config, on_episode=records.append)
    assert summary.episodes == 10
    assert all(record.finished_s - record.started_s >= 0.001 * record.steps for record in records if record.started_s)
    assert summary.worker_play_s >= 0.001 * summary.env_steps
    assert summary.worker_gradient_s < summary.worker_play_s


def test_quick_validation_writes_its_table_and_figure(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(courses, "TRAINING_EPISODES", 20)
    main(["--quick", "--episodes", "3", "--out", str(tmp_path / "new")])
    with (tmp_path / "new" / "tables" / "validation.csv").open() as file:
        listed = list(csv.DictReader(file))
    assert [(row["game"], row["transport"], row["workers"]) for row in listed][:3] == [
        ("short", "shared", "1"),
        ("short", "shared", "2"),
        ("long", "shared", "1"),
    ]
    assert len(listed) == 10
    for row in listed:
        predicted, measured = (float(row[f"episodes_per_s_{name}"]) for name in ("predicted", "measured"))
        assert float(row["episodes_per_s_error"]) == pytest.approx(predicted / measured - 1, rel=0.01, abs=0.001)
    text = (tmp_path / "new" / "README.md").read_text()
    assert "Predicted throughput is within 10% of measured in" in text
    assert text.count("\n| ") == 12
    assert (tmp_path / "new" / "main.png").read_bytes().startswith(b"\x89PNG")
    assert "largest error" in capsys.readouterr().out


def test_the_closing_sentence_names_what_is_off():
    summary = train(RunConfig(workers="1", episodes=10, profile="uniform"))
    off = summary._replace(episodes_per_s=summary.episodes_per_s * 2)
    exact = Comparison(Setting("short", "shared", 1), [summary], [summary])
    doubled = Comparison(Setting("waiting", "queue", 40), [off, off], [summary, summary])
    assert "in 1 of 1 settings" in closing([exact])
    assert "+100.0% (waiting game, queue, 40 workers). Beyond 10%: waiting" in closing([exact, doubled])
    assert [row["episodes_per_s_error"] for row in rows([exact, doubled])] == [0, 1]
    assert report_of([exact, doubled]).markdown().startswith("| game |")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--episodes", "0"], "at least 1"),
        (["--episodes", "many"], "invalid int"),
        (["--out", "FILE"], "is a file"),
        (["--paced", "--speed", "0"], "a positive number"),
        (["--paced", "--seconds", "-1"], "a positive number of seconds"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(arguments, reason, capsys, tmp_path):
    (tmp_path / "FILE").touch()
    arguments = [str(tmp_path / "FILE") if argument == "FILE" else argument for argument in arguments]
    with pytest.raises(SystemExit) as exit_info:
        main(arguments)
    message = capsys.readouterr().err
    assert exit_info.value.code == 2
    assert reason in message
    assert message.count("\n") == 1


def test_paced_validation_compares_real_processes_below_and_beyond_saturation(tmp_path, capsys):
    (tmp_path / "notes.md").write_text("What people noted.\n")
    main(["--paced", "--quick", "--seconds", "0.5", "--speed", "4", "--out", str(tmp_path)])
    with (tmp_path / "tables" / "paced.csv").open() as file:
        below, beyond = csv.DictReader(file)
    assert (below["exchange"], below["workers"], beyond["workers"], below["speed"]) == ("report's", "4", "60", "4.0")
    for row in (below, beyond):
        predicted, measured = (float(row[f"episodes_per_s_{name}"]) for name in ("predicted", "measured"))
        assert float(row["episodes_per_s_error"]) == pytest.approx(predicted / measured - 1, rel=0.01, abs=0.001)
        assert 0 <= float(row["late_share"]) <= 1
    assert float(beyond["staleness_mean_measured"]) > float(below["staleness_mean_measured"])
    assert (tmp_path / "main.png").read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / "README.md").read_text()
    assert text.count("\n| ") == 4
    assert "`python -m experiments.validate --paced --quick --seconds 0.5" in text
    assert text.endswith("\n\nWhat people noted.\n")
    said = capsys.readouterr().out
    assert "1 of 2: report's exchange, 4 workers" in said
    assert "to go" in said


def test_the_paced_settings_lie_below_and_beyond_saturation():
    tried = list(paced.settings())
    limits = {setting: capacity(setting.config(20.0, 10.0)).limit for setting in tried}
    assert len(set(tried)) == 14
    assert {setting.exchange for setting in tried} == set(paced.EXCHANGES)
    beyond = [setting for setting, limit in limits.items() if setting.workers > limit]
    assert 5 <= len(beyond) <= 9


def test_a_queue_that_does_not_grow_is_judged_by_the_throughput():
    below = paced.Outcome(10.0, 0.5, 7.0, 0.0)
    beyond = paced.Outcome(10.0, 1.0, 400.0, 5.0, late_share=0.2)
    small, setting = (paced.PacedSetting("report's", workers) for workers in (4, 60))
    flat = paced.PacedComparison(small, below._replace(queue_growth=0.2), below)
    growing = paced.PacedComparison(setting, beyond._replace(queue_growth=6.0), beyond)
    assert flat.error("queue_growth") == pytest.approx(0.02)
    assert growing.error("queue_growth") == pytest.approx(0.2)
    said = paced_report.closing([flat, growing])
    assert "In 1 of 2 settings" in said
    assert "Off: report's exchange, 60 workers (queue's growth/s +20.0%)" in said
    assert "More than 5% of the work was late" in said


def test_the_growth_of_a_queue_is_the_slope_that_arrivals_see():
    assert paced.queue_growth([0.0, 1.0, 2.0, 3.0], [0, 2, 4, 6]) == pytest.approx(2.0)
    assert paced.queue_growth([1.0], [5]) == 0.0
