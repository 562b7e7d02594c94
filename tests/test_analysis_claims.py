"""Claims: for each, data that support it, data that contradict it, data that can't tell, and runs that could not."""

from dataclasses import replace

import pandas as pd
import pytest

from analysis.claims.catalogue import judge_all, load
from analysis.claims.claim import of_every_study
from analysis.claims.finding import VERDICTS, Finding, above, corrected, runs_needed, together
from analysis.claims.verdicts import as_good, better
from analysis.data.statistics import Estimate
from tests.analysis_studies import joined, made_up

COLLAPSED = {"final_score": 0.05, "collapsed": True, "held_share": float("nan"), "load_start": 3.0, "load_end": 2.0}
# What the documents say, as data.
BELIEVED = {
    "4": {"final_score": 40.0, "steps_per_s": 200.0, "clock_s": 80_000.0},
    "10": {"final_score": 60.0},
    "20": {"final_score": 30.0, "steps_per_s": 900.0},
    "40": {**COLLAPSED, "steps_per_s": 1_500.0},
    "6->12": {"final_score": 60.0, "clock_s": 11_000.0},
    "10->20": {"final_score": 60.0, "clock_s": 20_000.0, "steps_per_s": 900.0},
    "10->32": {"final_score": 60.0, "clock_s": 18_000.0},
}
EVERYWHERE = {number: claim for number, claim in enumerate(load(), start=1) if claim.applies is of_every_study}
OF_SPEED = [number for number, claim in EVERYWHERE.items() if claim.of_speed]


def verdict(number, schedules, **options):
    return judge_all(made_up(schedules, **options))[number - 1].verdict


def changed(**changes):
    """Return the documents' data with changes, and without the schedules that are changed to None."""
    merged = {text: {**numbers, **(changes.get(text) or {})} for text, numbers in BELIEVED.items()}
    return {text: numbers for text, numbers in merged.items() if changes.get(text, {}) is not None}


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 7, 8, 9, 12, 13])
def test_the_documents_data_support_the_documents_claims(number):
    assert judge_all(by_the_real_clock(made_up(BELIEVED)))[number - 1].verdict == "supported"


def by_the_real_clock(study, **columns):
    return replace(study, runs=study.runs.assign(runtime="processes", **columns))


CONTRADICTIONS = [
    (1, {"4": {"final_score": 61.0}}),
    (1, {"20": {"final_score": 70.0}}),
    (1, {"40": {"final_score": 55.0, "collapsed": False}}),
    (2, {"40": {"load_start": 0.7}}),
    (2, {"10": {"load_end": 0.9}}),
    (3, {"6->12": {"clock_s": 30_000.0}}),
    (3, {"6->12": {"clock_s": 16_000.0}}),
    (4, {"10->32": {"clock_s": 40_000.0}}),
    (4, {"10->32": {"held_share": 0.5}}),
    (4, {"10->32": COLLAPSED}),
    (5, {"10": {"play_share_start": 0.3}}),
    (5, {"10": {"service_share_start": 0.4}}),
    (7, {"40": {"steps_per_s": 150.0}}),
    (7, {"40": {"final_score": 60.0, "collapsed": False}}),
    (8, {"40": {"final_score": 45.0, "collapsed": False}}),
    (9, {"10": {"steps_per_s": 150.0}}),
    (12, {"10->20": {"clock_s": 40_000.0}}),
    (13, {"10->20": {"steps_per_s": 400.0}}),
    (13, {"10->20": {"final_score": 20.0}}),
]


@pytest.mark.parametrize(("number", "change"), CONTRADICTIONS)
def test_a_verdict_flips_when_the_data_contradict_it(number, change):
    assert judge_all(by_the_real_clock(made_up(changed(**change))))[number - 1].verdict == "refuted"


@pytest.mark.parametrize("number", OF_SPEED)
def test_runs_that_share_their_cores_decide_nothing_about_speed(number):
    """Whatever they show: what supports a claim, and what contradicts it."""
    contradictions = [changed(**change) for at, change in CONTRADICTIONS if at == number]
    for schedules in (BELIEVED, *contradictions):
        judgement = judge_all(by_the_real_clock(made_up(schedules), oversubscribed=True))[number - 1]
        assert judgement.verdict == "not tested here"
        assert "more processes than cores" in judgement.findings[0].text


def test_runs_that_share_their_cores_decide_nothing_about_collapse():
    ten_best = judge_all(by_the_real_clock(made_up(BELIEVED), oversubscribed=True))[0]
    assert [finding.verdict for finding in ten_best.findings] == ["supported", "supported", "not tested here"]
    assert ten_best.verdict == "not tested here"


def test_a_schedule_that_never_has_its_workers_says_nothing_of_them():
    short = changed(**{"10->32": {"workers_max": 12}})
    judgement = judge_all(made_up(short))[3]
    assert judgement.verdict == "not tested here"
    assert judgement.findings[0].text.startswith("10→32 never had more than 12 of its 32 workers")
    assert judgement.needed == ["runs of 10→32 that come to 32 workers"]


def test_costs_that_were_put_in_are_not_found():
    judgement = judge_all(made_up(BELIEVED))[4]
    assert judgement.verdict == "not tested here"
    assert all("put in, not found" in finding.text for finding in judgement.findings)


def test_seven_times_names_its_baselines_and_is_refuted_only_if_none_of_them_is_as_slow():
    findings = judge_all(made_up(BELIEVED))[2].findings
    assert [finding.verdict for finding in findings].count("supported") == 1
    texts = " ".join(finding.text for finding in findings)
    assert "as fast as 4 workers" in texts
    assert "as fast as 10 workers" in texts
    assert "as good" not in texts


def test_the_thesis_is_judged_where_the_master_is_not_overloaded_too():
    known = {"limit_name": "N0", "limit_workers": 13.4, "n0": 13.4, "n_star": 14.4}
    known |= {"untrained_cycle_s": 0.4, "untrained_service_s": 0.03}
    alike = made_up({"4": {}, "10": {}, "40": COLLAPSED})
    judgement = judge_all(replace(alike, runs=alike.runs.assign(**known)))[7]
    assert [finding.verdict for finding in judgement.findings] == ["supported", "refuted"]
    assert judgement.findings[1].text.startswith("Below N0 = 13.4: 4 workers end")


@pytest.mark.parametrize(("score", "expected"), [(80.0, "supported"), (50.0, "refuted"), (None, "not tested here")])
def test_ppo_is_judged_by_runs_of_ppo(score, expected):
    parts = [made_up({"10": {}})]
    parts += [made_up({"10": {"final_score": score}}, algorithm="ppo")] if score else []
    judgement = judge_all(with_curves(joined(*parts)))[10]
    assert judgement.verdict == expected
    if score:
        assert [finding.text.partition(" PPO")[0] for finding in judgement.findings] == [
            "After the same env steps",
            "After the same time",
        ]


def with_curves(study):
    """Return a study whose runs score what they end with from their first bin on, and have cells of their own."""
    runs = study.runs.assign(cell=study.runs["algorithm"] + " " + study.runs["cell"])
    bins = pd.DataFrame({"env_steps": [1e5, 2e5, 3e5], "clock_s": [10.0, 20.0, 30.0]})
    curves = [bins.assign(cell=cell, score=score) for cell, score in runs[["cell", "final_score"]].values.tolist()]
    return replace(study, runs=runs, curves=pd.concat(curves, ignore_index=True))


@pytest.mark.parametrize(("score", "expected"), [(50.0, "supported"), (30.0, "refuted"), (None, "not tested here")])
def test_gradients_are_close_if_a_known_delay_costs_nothing(score, expected):
    parts = [made_up({"10": {"staleness_mean": 9.0}})]
    parts += [made_up({"10": {"staleness_mean": 30.0, "final_score": score}}, **{"exchange.hold": 20})] if score else []
    assert judge_all(joined(*parts))[9].verdict == expected


@pytest.mark.parametrize(
    ("number", "without"),
    [
        (1, ["10"]),
        (1, ["40"]),
        (2, ["40"]),
        (3, ["6->12", "10->20", "10->32"]),
        (4, ["10->32"]),
        (7, ["10", "20", "40"]),
        (8, ["10", "20", "40"]),
        (9, ["10"]),
        (12, ["10->20"]),
        (13, ["20"]),
    ],
)
def test_a_study_without_the_runs_decides_nothing_and_says_what_would(number, without):
    judgement = judge_all(made_up(changed(**dict.fromkeys(without))))[number - 1]
    assert judgement.verdict == "not tested here"
    assert any("runs" in needed for needed in judgement.needed)


def test_noise_leaves_it_open_and_says_how_many_seeds_would_do():
    noisy = {text: dict(numbers) for text, numbers in BELIEVED.items()}
    noisy["4"]["final_score"] = 54.0
    judgement = judge_all(made_up(noisy, noise=0.15))[0]
    assert judgement.verdict == "undecided"
    assert any("seeds" in needed for needed in judgement.needed)


def test_one_seed_decides_nothing_about_scores():
    assert verdict(1, BELIEVED, seeds=1) == "undecided"
    assert verdict(7, BELIEVED, seeds=1) == "undecided"


def of_entropy(scores, noise=0.01):
    """Return a study of entropy coefficients with these scores."""
    axes = [({"learner.entropy_coefficient": coefficient}, score) for coefficient, score in scores.items()]
    return joined(*(made_up({"10": {"final_score": score}}, noise=noise, **axis) for axis, score in axes))


COVERED = {0.0: 50.0, 0.001: 50.0, 0.01: 40.0, 0.1: 5.0}


@pytest.mark.parametrize(
    ("scores", "noise", "expected"),
    [
        (COVERED, 0.01, "supported"),
        ({**COVERED, 1.0: 0.1, 10.0: 0.1, 100.0: 0.1}, 0.01, "supported"),  # more that harm change nothing
        ({**COVERED, 0.002: 50.0, 0.005: 50.0}, 0.01, "supported"),
        ({**COVERED, 0.01: 70.0}, 0.01, "refuted"),  # one that helps does
        ({0.0: 50.0, 0.01: 40.0, 0.1: 5.0}, 0.01, "not tested here"),  # only those that harm were tried
        ({0.0: 50.0, 0.001: 50.0, 0.1: 5.0}, 0.01, "not tested here"),  # a gap
        ({**COVERED, 0.001: 51.0}, 0.3, "undecided"),
        ({0.0: 50.0}, 0.01, "not tested here"),
    ],
)
def test_entropy_does_not_depend_on_which_coefficients_were_picked(scores, noise, expected):
    judgement = judge_all(of_entropy(scores, noise))[5]
    assert judgement.verdict == expected
    assert bool(judgement.needed) == (expected in ("undecided", "not tested here"))


def mixed(share_of_20):
    """Return a study in which 20 workers learn as well as 10, or nothing at all: a share of their runs does."""
    study = made_up({"10": {"final_score": 60.0}, "20": {"final_score": 60.0}, "4": {}, "40": COLLAPSED})
    lost = (study.runs["schedule"] == "20") & (study.runs["seed"] >= 10 * share_of_20)
    runs = study.runs.assign(final_score=study.runs["final_score"].where(~lost, 0.05))
    return replace(study, runs=runs)


@pytest.mark.parametrize(("share", "expected"), [(0.2, "supported"), (0.8, "undecided")])
def test_runs_of_two_kinds_are_compared_by_how_many_learned(share, expected):
    study = mixed(share)
    ten, twenty = study.fixed(10), study.fixed(20)
    finding = better(study, ten, twenty)
    assert finding.verdict == expected
    assert finding.text.startswith(f"10 of 10 runs with 10 workers learned, and {10 * share:g} of 10 runs with 20 work")
    assert as_good(study, twenty, ten).verdict == {"supported": "refuted"}.get(expected, expected)


def test_what_holds_alone_need_not_hold_among_many():
    weak = Finding("Weak.", "supported", Estimate(1.0, 0.1, 1.9, 10), chance=0.02)
    strong = Finding("Strong.", "refuted", Estimate(-1.0, -1.1, -0.9, 10), chance=1e-6)
    assert corrected([weak]) == [weak]
    both = corrected([weak, strong, *[Finding("Open.", "undecided", Estimate(0.0, -1.0, 1.0, 10), chance=0.5)] * 3])
    assert [finding.verdict for finding in both] == ["undecided", "refuted", *["undecided"] * 3]
    assert "not as one of 5 comparisons" in both[0].text
    assert both[0].needed


def test_each_rule_answers_for_its_own_document():
    """Claim 3 is the report's and claim 4 the slides': the other document's rule neither helps nor harms."""
    study = made_up(BELIEVED)
    dynamic = study.runs["dynamic"]
    report, slides = study.runs.copy(), study.runs[dynamic].copy()
    report.loc[dynamic, "schedule"] += " report"
    slides["schedule"] += " slides"
    slides["clock_s"] *= 10.0
    judgements = judge_all(joined(replace(study, runs=report), replace(study, runs=slides)))
    assert judgements[2].verdict == "supported"
    assert judgements[3].verdict == "refuted"


def test_verdicts_of_parts():
    assert together(["supported", "supported"]) == "supported"
    assert together(["supported", "refuted", "undecided"]) == "refuted"
    assert together(["supported", "undecided", "not tested here"]) == "undecided"
    assert together(["supported", "not tested here"]) == "not tested here"
    assert together(["refuted", "not tested here"]) == "refuted"
    assert together([]) == "not tested here"


def test_verdicts_of_readings_of_which_one_is_enough():
    assert together(["supported", "refuted", "undecided"], "any") == "supported"
    assert together(["refuted", "undecided", "not tested here"], "any") == "undecided"
    assert together(["refuted", "not tested here"], "any") == "not tested here"
    assert together(["refuted", "refuted"], "any") == "refuted"


def test_every_word_has_its_data():
    seen = {judgement.verdict for judgement in judge_all(made_up(changed(**{"4": {"final_score": 61.0}})))}
    seen |= {judgement.verdict for judgement in judge_all(made_up(BELIEVED, seeds=1))}
    assert seen == set(VERDICTS)


def test_above():
    assert above(Estimate(3.0, 1.0, 5.0, 10), 0.0) == "supported"
    assert above(Estimate(-3.0, -5.0, -1.0, 10), 0.0) == "refuted"
    assert above(Estimate(0.1, -0.5, 0.6, 10), 0.0, margin=1.0) == "refuted"  # any gain is too small to matter
    assert above(Estimate(0.1, -2.0, 2.0, 10), 0.0, margin=1.0) == "undecided"
    assert above(Estimate(0.1, float("nan"), float("nan"), 1), 0.0) == "undecided"


def test_seeds_needed_grow_with_the_square():
    assert runs_needed(Estimate(1.0, -1.0, 3.0, 10), 0.0) == 40
    assert runs_needed(Estimate(1.0, -3.0, 5.0, 10), 0.0) == 160


def test_claims_are_numbered_as_in_the_documents_list():
    assert [judgement.number for judgement in judge_all(made_up(BELIEVED))] == list(range(1, 14))
