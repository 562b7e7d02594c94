"""Readers: real lines of each system give the numbers that they have, and what is no log is refused in one sentence."""

import contextlib
import json
import subprocess
import sys

import numpy as np
import pytest

from a3c.advise.__main__ import main
from a3c.advise.measurements import ASYNCHRONOUS, ONE_STEP_OFF, SYNCHRONOUS, LogError, mean
from a3c.advise.readers import read
from a3c.advise.readers.columns import parse
from tests.sweeps import ROOT

LOGS = ROOT / "docs/advise/logs"
SLEEPING = ROOT / "docs/advise/sleeping/log"
SESSION = {
    "task_id": 23, "session_id": 93, "rank": 0, "status": "accepted", "submit_ts": 7939251.675,
    "finalized_ts": 7939254.633, "total_s": 2.958, "generate_s": 2.654, "reward_s": 0.134, "toolcall_s": 0.157,
    "phases": {"generate": [{"start_ts": 7939251.675, "end_ts": 7939254.329}]},
}  # fmt: skip
# Lines as their projects' threads and documents have them; the first two cut in the middle of a key.
SAMPLES = {
    "verl": "step:.. - timing_s/agent_loop/generate_sequences/min:169.55 - .../max:690.43 - .../mean:496.72 - "
    "timing_s/gen:698.88 - timing_s/old_log_prob:143.32 - timing_s/ref:98.14 - timing_s/adv:0.034 - "
    "timing_s/update_actor:327.78 - timing_s/step:1268.49 - perf/total_num_tokens:5322462 - perf/throughput:524.49",
    "areal": "│ timeperf/update_weights │ 1.0329e+02 │ other │   and   │ timeperf/train_step │ 3.1464e+01 │ "
    "ppo_actor/update/perf/optimizer_step_time │ 3.1896e+00 │",
    "session": json.dumps(SESSION),
    "slime": "{'perf/sleep_time': 5.32, 'perf/update_weights_time': 2.53, 'perf/wake_up_time': 2.58, "
    "'perf/data_preprocess_time': 0.056, 'perf/train_wait_time': 347.61, 'perf/log_probs_time': 17.18, "
    "'perf/actor_train_time': 46.91, 'perf/train_time': 64.72, 'perf/step_time': 412.32, "
    "'perf/wait_time_ratio': 0.8430}",
    "miles": "perf 0: {'perf/rollout_time': 98.6}\n"
    "perf 0: {'perf/train_wait_time': 101.2, 'perf/actor_train_time': 41.3}",
    "sample-factory": "[2022-03-02 23:05:46,460][18482] Fps is (10 sec: 20404.3, 60 sec: 20404.3, 300 sec: 20404.3). "
    "Total num frames: 241664. Throughput: 0: 3098.6. Samples: 54300. "
    "Policy #0 lag: (min: 52.0, avg: 52.0, max: 52.0)\n"
    "[23:05:51,461] ... frames: 335872. Throughput: 0: 4499.1. Samples: 83850. lag: (77.0, 77.0, 77.0)   "
    "[23:05:56,480] ... frames: 438272. Samples: 113450. lag: (104.0, 104.0, 104.0)",
}  # fmt: skip


def sample(name, folder, text=None):
    path = folder / "a.log"
    path.write_text((SAMPLES[name] if text is None else text) + "\n")
    return read(str(path))


def test_verls_line(tmp_path):
    found = sample("verl", tmp_path)
    assert (found.system, found.mode, found.steps) == ("verl", SYNCHRONOUS, 1)
    assert (found.step_s[0], found.wait_s[0]) == (1268.49, 698.88)
    assert found.update_s[0] == pytest.approx(143.32 + 98.14 + 0.034 + 327.78)
    assert found.step_s[0] == pytest.approx(found.wait_s[0] + found.update_s[0], rel=1e-3)  # 1268.15 in all
    whole = read(str(LOGS / "verl_sync.log"))
    assert (whole.durations.mean_s, whole.durations.least_s, whole.durations.most_s) == (496.72, 169.55, 690.43)


def test_a_verl_line_without_times_says_so(tmp_path):
    line = "step:1 - global_seqlen/min:484245.000 - perf/mfu/actor:0.343 - response_length/mean:288.698"
    with pytest.raises(LogError, match=r"no timing_s/\.\.\. in any step"):
        sample("verl", tmp_path, line)


def test_the_lines_of_areal(tmp_path):
    found = sample("areal", tmp_path)
    assert (found.sync_s[0], found.update_s[0]) == (103.29, 31.464)
    assert np.isnan(found.wait_s[0])
    session = sample("session", tmp_path)
    assert session.rollouts_s[0] == pytest.approx(2.958)
    assert (session.group, session.slots, session.dropped) == (1, 1, 0.0)


def test_slimes_line_keeps_its_identities(tmp_path):
    found = sample("slime", tmp_path)
    assert (found.system, found.mode) == ("slime", SYNCHRONOUS)
    assert found.step_s[0] == pytest.approx(412.33)
    assert (found.update_s[0], found.sync_s[0]) == (64.72, 2.53)
    assert (found.wait_s + found.sync_s)[0] / found.step_s[0] == pytest.approx(0.8430, abs=1e-4)
    with pytest.raises(LogError, match="line 1 of the log: perf/step_time is not"):
        sample("slime", tmp_path, SAMPLES["slime"].replace("412.32", "512.32"))


def test_the_two_lines_of_miles_are_one_step(tmp_path):
    found = sample("miles", tmp_path)
    assert (found.steps, found.wait_s[0], found.update_s[0]) == (1, 101.2, 41.3)
    assert found.mode == SYNCHRONOUS  # the trainer waits as long as a rollout takes
    whole = read(str(LOGS / "miles.log"))
    assert (whole.system, whole.mode, whole.steps) == ("miles", ASYNCHRONOUS, 6)
    assert 0.9 < mean(whole.staleness) < 1.3


@pytest.mark.parametrize("whole", [True, False])
def test_sample_factorys_overloaded_lines(whole, tmp_path, capsys):
    found = read(str(LOGS / "sample_factory_overloaded.log")) if whole else None
    if not whole:
        text = SAMPLES["sample-factory"].replace("[2022-03-02 23", "[23")
        found = sample("sample-factory", tmp_path, text)
    assert found.staleness.tolist() == [52.0, 77.0, 104.0]
    assert found.staleness_growth == pytest.approx(5.2, abs=0.1)
    main(["--log", str(LOGS / "sample_factory_overloaded.log")])
    said = " ".join(capsys.readouterr().out.split())
    assert "The learner is overloaded: staleness grows by about five versions a second" in said
    assert "`--batch_size" in said


def test_versions_a_second_say_how_much_faster_a_learner_must_be(tmp_path, capsys):
    """Of 10 versions a second the lag takes 5.2: samples come 1 / (1 - 0.52) = 2.1 times as fast as they are used."""
    lines = (LOGS / "sample_factory_overloaded.log").read_text()
    for second in range(46, 57):
        lines += (
            f"[2022-03-02 23:05:{second},500][1] Updated weights for policy 0, policy_version {10 * second} (0.0010)\n"
        )
    (tmp_path / "a.log").write_text(lines)
    main(["--log", str(tmp_path / "a.log")])
    said = " ".join(capsys.readouterr().out.split())
    assert "It makes 10 versions a second, and would keep up if it were 2.08 times as fast" in said


def test_a_steady_run_of_sample_factory_is_not_overloaded(capsys):
    found = read(str(LOGS / "sample_factory.log"))
    assert (found.staleness[0], found.staleness_growth, found.updates_per_s) == (1.9, None, None)
    main(["--log", str(LOGS / "sample_factory.log")])
    assert "not overloaded" in capsys.readouterr().out


def test_the_profile_at_the_end_of_a_run_of_sample_factory(capsys):
    found = read(str(LOGS / "sample_factory_profile.log"))
    assert found.shares["update"] == pytest.approx((28.5942 + 8.0517) / 217.4041)
    assert found.step_s[0] == pytest.approx(217.4041 / 977)
    assert (found.slots, found.generators_idle) == (12, pytest.approx(1 - (170.3642 + 10.1567) / 217.4041))
    main(["--log", str(LOGS / "sample_factory_profile.log")])
    said = " ".join(capsys.readouterr().out.split())
    assert "Generation is the limit" in said
    assert "(`--num_workers, 1.5 times`): +50 %" in said


def test_verls_asynchronous_lines_of_a_step_are_put_together():
    found = read(str(LOGS / "verl_async.log"))
    assert (found.mode, found.steps, found.updates_a_step) == (ASYNCHRONOUS, 12, 4)
    assert (found.batch, found.slots, found.staleness_limit, found.unit) == (128, 256, 0.5, "sample")
    assert mean(found.sync_s) == pytest.approx(2.1)
    assert found.partial
    assert found.durations.median_s == 52.0


def test_idle_shares_come_from_times_not_from_reported_ratios(tmp_path):
    text = (LOGS / "verl_async.log").read_text()
    wrong = tmp_path / "wrong.log"
    wrong.write_text(text.replace("idle_ratio:0.", "idle_ratio:9."))
    assert read(str(wrong)).shares == read(str(LOGS / "verl_async.log")).shares
    found = read(str(wrong))
    assert found.shares["wait"] == pytest.approx(found.wait_s.mean() / found.step_s.mean())
    at_work = 4 * 128 * 61.2 / found.step_s.mean()  # samples a step, each for its seconds
    assert found.generators_idle == pytest.approx(1 - at_work / 256)


def test_one_step_off_waits_for_the_batch_before():
    found = read(str(LOGS / "verl_one_step_off.jsonl"))
    assert (found.mode, found.steps) == (ONE_STEP_OFF, 8)
    assert mean(found.wait_s) == pytest.approx(45, rel=0.05)


def test_colours_prefixes_and_numpy_do_not_matter(tmp_path):
    plain = (LOGS / "verl_sync.log").read_text()
    dressed = plain.replace("(TaskRunner pid=1)", "\x1b[36m(TaskRunner pid=1)\x1b[0m")
    dressed = dressed.replace("timing_s/gen:698.88", "timing_s/gen:np.float64(698.88)")
    assert sample("verl", tmp_path, dressed).wait_s[0] == 698.88


def test_a_folder_of_areal_has_sessions_and_tables():
    found = read(str(SLEEPING))
    assert (found.group, found.slots, found.batch, found.steps) == (4, 32, 32, 44)
    assert found.shares["update"] + found.shares["wait"] + found.shares["sync"] == pytest.approx(1.0, abs=0.01)


def test_rllib_in_both_of_its_files():
    appo, ppo = (read(str(LOGS / name)) for name in ("rllib_appo_result.json", "rllib_ppo_progress.csv"))
    assert (appo.mode, appo.slots, appo.steps) == (ASYNCHRONOUS, 16, 8)
    assert mean(appo.update_s) == pytest.approx(0.048, rel=0.05)
    assert mean(appo.staleness) == pytest.approx(2.6, rel=0.05)
    assert (ppo.mode, ppo.slots) == (SYNCHRONOUS, 16)
    assert mean(ppo.wait_s) == pytest.approx(3.2, rel=0.05)


def test_any_other_log_by_its_columns(tmp_path):
    columns = parse("rollout=generation_s,update=train_s,sync=broadcast_s")
    found = read(str(LOGS / "metrics.csv"), column_map=columns)
    assert (found.mode, found.steps) == (SYNCHRONOUS, 12)
    assert mean(found.wait_s) == pytest.approx(61, rel=0.05)
    lines = [json.dumps({"t": {"gen": 1.0 + n, "fit": 2.0}}) for n in range(3)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    found = read(str(tmp_path / "a.jsonl"), column_map=parse("wait=t/gen,update=t/fit"))
    assert (found.mode, found.wait_s.tolist()) == (ASYNCHRONOUS, [1.0, 2.0, 3.0])
    for text in ("rollout", "gen=a,update=b", "update=b", "wait=a,rollout=b,update=c"):
        with pytest.raises(ValueError, match=r"name=column|unknown column|needed|exclude"):
            parse(text)


def test_our_timers_log_needs_no_heading_and_workers_may_have_names(tmp_path):
    rows = [f"left,{k},{k + 0.5},{k + 0.5},{k + 0.75}" for k in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    assert read(str(tmp_path / "t.csv")).system == "timer"


def test_our_timers_log_becomes_measurements_as_well(tmp_path):
    rows = [f"{k % 2},{k},{k + 1.5},{k + 1.5},{k + 2.25}" for k in range(40)]
    (tmp_path / "t.csv").write_text("worker,start,end,update_start,update_end\n" + "\n".join(rows) + "\n")
    found = read(str(tmp_path / "t.csv"))
    assert (found.system, found.batch, found.slots) == ("timer", 1, 2)
    assert mean(found.update_s) == pytest.approx(0.75)
    assert found.staleness[5:].mean() == pytest.approx(1.0, abs=1.0)


MISTAKES = {
    "mixed": SAMPLES["verl"] + "\n" + SAMPLES["slime"],
    "of nobody": "one two three\nfour, five",
    "json of nobody": '{"a": 1}',
    "no text": "\0\1\2",
    "a negative time": SAMPLES["verl"].replace("timing_s/gen:", "timing_s/gen:-"),
    "no number": SAMPLES["verl"].replace("timing_s/gen:698.88", "timing_s/gen:soon"),
    "an endless time": SAMPLES["verl"].replace("timing_s/gen:698.88", "timing_s/gen:inf"),
    "cut in the middle": SAMPLES["verl"][:120],
    "a cut dictionary": SAMPLES["slime"][:150],
    "no dictionary": SAMPLES["slime"].replace("5.32", "__import__('os')") + "\n" + SAMPLES["slime"],
    "a session that ends before it begins": SAMPLES["session"].replace("7939254.633", "1.0"),
    "an unknown status": SAMPLES["session"].replace("accepted", "lost"),
    "sessions without updates": SAMPLES["session"],
    "a table without an update": "│ timeperf/update_weights │ 1.0329e+02 │",
    "an impossible time": SAMPLES["sample-factory"].replace("23:05:46", "29:05:46"),
    "time that runs back": SAMPLES["sample-factory"].replace("[23:05:56", "[2022-03-02 22:05:56"),
    "a heading alone": "training_iteration,timers/env_runner_sampling_timer,timers/learner_update_timer",
    "a csv with a short line": (LOGS / "rllib_ppo_progress.csv").read_text().replace(",16,2026-08-22_10-03-00", ""),
    "iterations without timers": '{"training_iteration": 1, "timers": {}}',
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_what_is_damaged_or_mixed_ends_in_one_sentence(name, tmp_path, capsys):
    (tmp_path / "a.log").write_text(MISTAKES[name])
    with pytest.raises(SystemExit) as ended:
        main(["--log", str(tmp_path / "a.log")])
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1


def test_every_log_can_be_cut_anywhere(tmp_path):
    """Somebody copies a log while it is written: it is read without its end, or refused in one sentence."""
    for path in sorted(LOGS.iterdir()):
        if path.suffix in (".md", "") or path.name == "metrics.csv":
            continue
        text = path.read_text()
        for cut in np.linspace(1, len(text) - 1, 7).astype(int):
            (tmp_path / path.name).write_text(text[:cut])
            with contextlib.suppress(LogError):
                assert read(str(tmp_path / path.name)).steps >= 1


def test_a_format_can_be_named(tmp_path):
    path = tmp_path / "both.log"
    path.write_text(SAMPLES["verl"] + "\n" + SAMPLES["slime"] + "\n")
    assert read(str(path), "verl").system == "verl"
    assert read(str(path), "slime").system == "slime"
    with pytest.raises(LogError, match="no line of areal"):
        read(str(path), "areal")


def test_advise_imports_light_packages_only(tmp_path):
    program = """
import sys
from a3c.advise import __main__, page, validation
try:
    __main__.main(["--log", sys.argv[1], "--json", sys.argv[2], "--html", sys.argv[3]])
except SystemExit as ended:
    print("ended", ended.code)
heavy = {"tensorflow", "keras", "mlflow", "pandas", "pygame", "gymnasium", "scipy.stats", "pyarrow", "ray"}
print(sorted(heavy & set(sys.modules)))
"""
    words = [sys.executable, "-c", program, str(LOGS / "slime.log"), str(tmp_path / "a.json"), str(tmp_path / "a.html")]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == ["[]"], ended.stdout
