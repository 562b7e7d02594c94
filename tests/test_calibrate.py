"""Calibration writes a profile that virtual time can use. No test here depends on how fast the machine is."""

import math

import numpy as np
import pytest

from a3c import exchange_costs
from a3c.benchmark import courses
from a3c.benchmark.feeder import EXCHANGES, FedMaster
from a3c.calibrate import main
from a3c.worker_costs import Timing, fit_costs
from a3c_core.config import ExchangeConfig, RunConfig
from a3c_core.train import Run, train
from a3c_core.virtual.costs import CostProfile, load_profile

MEASURED = ("step_s", "update_s", "load_s", "worker_start_s", "oversleep_s")
OF_PYTHON = ("gradient_call_s", "reset_s", "send_s", "receive_s", "read_s", "publish_s")  # next to nothing if compiled


@pytest.fixture(autouse=True)
def hardly_trained(monkeypatch):
    monkeypatch.setattr(courses, "TRAINING_EPISODES", 20)


@pytest.mark.parametrize(("transport", "own"), [("shared", ()), ("queue", ("send_s", "receive_s", "publish_s"))])
def test_a_profile_is_measured_written_and_used(transport, own, tmp_path, capsys):
    path = tmp_path / "new" / "profile.yaml"
    main(["--transport", transport, "--seconds", "0.05", "--out", str(path)])
    profile = load_profile(str(path))
    for name in (*MEASURED, *own):
        assert 0 < getattr(profile, name) < math.inf, name
    assert all(0 <= getattr(profile, name) < math.inf for name in OF_PYTHON)
    assert profile.update_s <= profile.service_s(mailboxes=1)
    assert f"transport {transport}" in profile.about
    assert "send_s" in capsys.readouterr().out
    channel = "mailbox" if transport == "queue" else "latest"
    config = RunConfig(workers="2", episodes=20, profile=str(path), exchange=ExchangeConfig(channel=channel))
    assert train(config).clock_s > 0


def test_without_a_transport_no_process_is_started(tmp_path, capsys):
    path = tmp_path / "profile.yaml"
    main(["--transport", "none", "--seconds", "0.05", "--out", str(path)])
    profile = load_profile(str(path))
    assert profile.step_s > 0 < profile.update_s
    assert profile.send_s == profile.worker_start_s == 0
    main(["--transport", "none", "--seconds", "0.05", "--out", str(path)])
    assert "(replaced)" in capsys.readouterr().out


def test_costs_are_found_in_timings_that_are_exactly_linear():
    lengths = np.array([1, 10, 100, 1000])
    play_s, gradient_s = 2e-6 * lengths + 1e-5, 1e-6 * lengths + 4e-5
    timings = [Timing(n, p + g, p / (p + g)) for n, p, g in zip(lengths, play_s, gradient_s, strict=True)]
    costs = fit_costs(timings, reset_s=1e-5)
    assert costs == pytest.approx({"step_s": 2e-6, "gradient_step_s": 1e-6, "gradient_call_s": 4e-5})


@pytest.mark.parametrize(("rest", "costs"), [
    (3.0, (3.0, 5.0, 2.0)),
    (-1.0, (0.0, 4.0, 2.0)),
    (-6.0, (0.0, 0.0, 1.0)),
    (-9.0, (0.0, 0.0, 0.0)),
])  # fmt: skip
def test_a_cycle_that_takes_less_than_its_parts_has_cheaper_parts(rest, costs):
    worker = CostProfile(step_s=1.0, gradient_call_s=5.0, reset_s=2.0, update_s=1.0)
    assert tuple(exchange_costs._handing_over(worker, rest).values()) == costs


@pytest.mark.parametrize("transport", ["shared", "queue"])
def test_a_master_that_is_fed_makes_every_update(transport):
    fed = FedMaster(transport, slots=2)
    assert fed.update_s(1e-9) > 0
    totals = fed.runtime.log.totals
    assert totals.sent == totals.applied == fed.runtime.log.episodes == fed.runtime.master.version > 1000
    fed.close()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--engine", "fast"], "invalid choice: 'fast'"),
        (["--transport", "pigeon"], "invalid choice: 'pigeon'"),
        (["--seconds", "0"], "a positive number of seconds is needed"),
        (["--out", "."], "is a directory"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(arguments, reason, capsys):
    with pytest.raises(SystemExit) as exit_info:
        main(arguments)
    message = capsys.readouterr().err
    assert exit_info.value.code == 2
    assert reason in message
    assert message.count("\n") == 1


def test_help_teaches_by_example(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "python -m a3c.calibrate --transport queue" in capsys.readouterr().out


@pytest.mark.parametrize("transport", ["shared", "queue"])
def test_calibration_observes_the_master_that_runs_have(transport, monkeypatch):
    kinds = []

    def watched(kind):
        def made(*parts):
            kinds.append(kind)
            return kind(*parts)

        return made

    for name in ("DirectRuntime", "RealRuntime"):
        monkeypatch.setattr(exchange_costs, name, watched(getattr(exchange_costs, name)))
    config = RunConfig(workers="1", episodes=20, runtime="processes", **EXCHANGES[transport])
    seen = exchange_costs.observe(config)
    assert seen.env_steps > 0 < seen.master_s
    assert kinds == [type(Run(config, None).runtime)]
