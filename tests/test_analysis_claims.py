"""Claims: for each, data that support it, data that contradict it, and data that can't tell."""

from dataclasses import replace

import pytest

from analysis.claims.catalogue import judge_all
from analysis.claims.verdicts import above, runs_needed, together
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
    "10->20": {"final_score": 60.0, "clock_s": 20_000.0},
    "10->32": {"final_score": 60.0, "clock_s": 18_000.0},
}


def verdict(number, schedules, **options):
    return judge_all(made_up(schedules, **options))[number - 1].verdict


def changed(**changes):
    """Return the documents' data with changes, and without the schedules that are changed to None."""
    merged = {text: {**numbers, **(changes.get(text) or {})} for text, numbers in BELIEVED.items()}
    return {text: numbers for text, numbers in merged.items() if changes.get(text, {}) is not None}


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 7])
def test_the_documents_data_support_the_documents_claims(number):
    assert verdict(number, BELIEVED) == "supported"


CONTRADICTIONS = [
    (1, {"4": {"final_score": 61.0}}),
    (1, {"20": {"final_score": 70.0}}),
    (1, {"40": {"final_score": 55.0, "collapsed": False}}),
    (2, {"40": {"load_start": 0.7}}),
    (2, {"20": {"load_end": 0.9}}),
    (3, {"6->12": {"clock_s": 30_000.0}}),
    (3, {"6->12": {"final_score": 40.0}}),
    (4, {"10->32": {"clock_s": 40_000.0}}),
    (4, {"10->32": {"held_share": 0.5}}),
    (4, {"10->32": COLLAPSED}),
    (5, {"10": {"play_share_start": 0.3}}),
    (5, {"10": {"service_share_start": 0.4}}),
    (7, {"40": {"steps_per_s": 150.0}}),
    (7, {"40": {"final_score": 60.0, "collapsed": False}}),
]


@pytest.mark.parametrize(("number", "change"), CONTRADICTIONS)
def test_a_verdict_flips_when_the_data_contradict_it(number, change):
    assert verdict(number, changed(**change)) == "refuted"


@pytest.mark.parametrize(
    ("number", "without"),
    [
        (1, ["10"]),
        (1, ["40"]),
        (2, ["40"]),
        (3, ["6->12", "10->20", "10->32"]),
        (4, ["10->32"]),
        (7, ["10", "20", "40"]),
    ],
)
def test_a_study_without_the_runs_decides_nothing_and_says_what_would(number, without):
    judgement = judge_all(made_up(changed(**dict.fromkeys(without))))[number - 1]
    assert judgement.verdict == "undecided"
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


@pytest.mark.parametrize(
    ("with_entropy", "expected"), [(20.0, "supported"), (60.0, "refuted"), (47.0, "undecided"), (None, "undecided")]
)
def test_entropy_is_judged_over_coefficients(with_entropy, expected):
    def runs(coefficient, score):
        axis = {"learner.entropy_coefficient": coefficient}
        return made_up({"10": {"final_score": score}}, noise=0.09, **axis)

    parts = [runs(0.0, 50.0)]
    if with_entropy is not None:
        parts += [runs(coefficient, with_entropy) for coefficient in (0.001, 0.01, 0.1)]
    judgement = judge_all(joined(*parts))[5]
    assert judgement.verdict == expected
    assert bool(judgement.needed) == (expected == "undecided")


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
    assert together(["supported", "undecided"]) == "undecided"
    assert together([]) == "undecided"


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
    assert [judgement.number for judgement in judge_all(made_up(BELIEVED))] == [1, 2, 3, 4, 5, 6, 7]
