"""Definitions that every figure, score and verdict shares: final score, learned, all runs, too short to tell."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from a3c_core.games.base import FLAPPY_BIRD
from a3c_core.records.tables import read_records
from analysis.claims.catalogue import judge_all
from analysis.data import curves, edge, metrics, outcomes
from analysis.data.load import load_study
from analysis.data.score import complete, score_of, with_untrained
from analysis.figures import drawing, style
from analysis.figures.main import plot_bearing
from analysis.figures.panels import plot_score
from analysis.pages import answer
from tests.analysis_studies import joined, made_up, make

BINS = 50


def with_curves(study, score_of_run):
    """Return the study with a curve for each run: {final score} -> the score of each bin."""
    steps = np.arange(1, BINS + 1)
    parts = []
    for cell, final in study.runs[["cell", "final_score"]].values.tolist():
        columns = {"bin": steps - 1, "episodes": 100 * steps, "env_steps": 5_000 * steps, "updates": 100 * steps}
        columns |= {"clock_s": 60.0 * steps, "score": score_of_run(final)}
        parts.append(pd.DataFrame(columns).assign(cell=cell))
    return replace(study, curves=pd.concat(parts, ignore_index=True))


def six_of_twenty():
    """Return a study of 4 workers in which 6 of 20 runs learn."""
    study = made_up({"4": {"final_score": 50.0}}, seeds=20)
    runs = study.runs.assign(final_score=np.where(study.runs["seed"] < 6, 50.0, 0.0))
    return with_curves(replace(study, runs=runs), lambda final: np.linspace(0.0, final, BINS))


def test_failed_runs_are_in_every_curve_and_score():
    study = six_of_twenty()
    schedule = study.schedules()[0]
    band = curves.over(study, schedule, "score", "episodes")
    assert band.runs == 20
    assert band.middle[-1] < 10.0  # most runs failed
    assert outcomes.estimate(study, schedule).runs == 20
    assert outcomes.estimate(study, schedule).value < 10.0
    some = outcomes.estimate_of_learned(study, schedule)
    assert (some.value, some.runs) == (50.0, 6)
    shown = answer.answer_table(study).rows[0]
    assert shown[1].startswith("6 of 20 ")
    assert shown[3] == "50, 6 runs"


def test_every_run_is_drawn_and_those_that_learned_have_a_line_of_their_own():
    study = six_of_twenty()
    with style.paper():
        score, bearing = drawing.draw(study, [lambda s, ax: plot_score(s, ax, s.schedules()), plot_bearing]).axes
    assert len(score.lines) == 20 + 1 + 1  # runs, all of them, those that learned
    ends = sorted(float(line.get_ydata()[-1]) for line in score.lines)
    assert ends[:14] == [0.0] * 14
    dots = next(line for line in bearing.lines if len(line.get_ydata()) == 20)
    assert sorted(dots.get_ydata())[13:15] == [0.0, 50.0]


def records_of(lengths, scores):
    """Return records of one worker that plays episodes of these lengths, one after the other."""
    ends = np.cumsum(np.asarray(lengths, float))
    records = pd.DataFrame({name: np.zeros(len(ends)) for name in metrics.COLUMNS})
    records["steps"], records["score"] = lengths, scores
    records["started_s"], records["finished_s"], records["applied_s"] = ends - lengths, ends, ends
    return records.assign(status="applied", episode=range(len(ends)))


def test_what_ends_beyond_the_planned_steps_is_in_no_bin():
    """Long episodes that were under way when the steps ran out are all that ends there."""
    short = [10] * 100
    records = records_of([*short, 500, 500], [1.0] * 100 + [60.0, 60.0])
    curve = metrics.binned(records, 10**6, planned_env_steps=1_000)
    assert curve["score"].iloc[-1] == 1.0
    assert curve["env_steps"].iloc[-1] == 1_000
    assert metrics.final_score(records, 10**6, 1_000) == 1.0


def test_the_final_score_is_of_episodes_that_started_in_the_window():
    scores = np.arange(1_000, dtype=float)
    assert metrics.final_score(records_of([5] * 1_000, scores), 1_000) == scores[850:950].mean()
    early = records_of([5] * 400, scores[:400])  # it ended before its time: of what it played
    assert metrics.final_score(early, 1_000) == scores[340:380].mean()


def test_the_final_score_counts_episodes_also_where_steps_end_the_run():
    """A bin of steps holds few long episodes or many short ones: its mean counts by episodes."""
    lengths = [100 if episode % 2 else 1 for episode in range(2_000)]
    scores = [float(episode % 2) for episode in range(2_000)]
    records = records_of(lengths, scores)
    assert metrics.final_score(records, 10**6, sum(lengths)) == pytest.approx(0.5, abs=0.01)
    curve = metrics.binned(records, 10**6, planned_env_steps=sum(lengths))
    assert metrics.final_score_of_curve(curve) == pytest.approx(0.5, abs=0.02)


def test_a_study_has_the_final_score_of_its_records_and_keeps_it(tmp_path):
    folder = make(tmp_path / "steps", {"workers": ["4"], "seed": [0]}, env_steps=20_000)
    row = load_study(folder).runs.iloc[0]
    cell = next((folder / "cells").iterdir())
    records = read_records(cell).to_pandas()
    assert row["final_score"] == metrics.final_score(records, int(row["planned"]), 20_000)


def test_games_without_a_threshold_are_judged_by_what_an_untrained_agent_reaches():
    unknown = complete("return", "points", None, ())
    assert math.isnan(unknown.learned_above)
    firsts = [20.0, 22.0, 24.0]
    known = with_untrained(unknown, firsts)
    assert known.learned_above == pytest.approx(np.mean(firsts) + 3 * np.std(firsts, ddof=1))
    assert "untrained mean" in known.threshold
    assert with_untrained(score_of(FLAPPY_BIRD), firsts).learned_above == 1.0
    study = replace(made_up({"4": {"final_score": 22.0}}, seeds=4), score=known)
    assert outcomes.too_short(study)  # as after training with a rate of 1e-30


def test_gymnasiums_threshold_counts_where_a_game_has_one():
    assert score_of("CartPole-v1").learned_above == 475.0
    assert score_of("CartPole-v1", learned_above=100).learned_above == 100
    assert score_of("CartPole-v1", learned_above=100).threshold == "100 points (the grid's threshold)"


def test_the_reports_claims_are_about_flappy_bird():
    study = made_up({"4": {}, "10": {}, "20": {}, "40": {}})
    other = replace(study, runs=study.runs.assign(**{"environment.id": "CartPole-v1"}))
    assert {judgement.claim.source.split(",")[0] for judgement in judge_all(study)} >= {"report", "slides"}
    assert not any(judgement.claim.source.startswith(("report", "slides")) for judgement in judge_all(other))


def test_runs_that_are_too_short_are_not_judged():
    costs = {"final_score": 0.1, "limit_name": "N0", "limit_workers": 13.0, "n0": 13.0, "n_star": 14.0}
    costs |= {"untrained_cycle_s": 0.4, "untrained_service_s": 0.03}
    study = made_up(dict.fromkeys(("4", "10", "20", "40"), costs))
    assert answer.answer(study).startswith("Too short to tell: none of 40 runs reached what counts as learned, 1 pipe")
    assert {judgement.verdict for judgement in judge_all(study)} == {"not tested here"}
    assert all("Too short to tell" in finding.text for judgement in judge_all(study) for finding in judgement.findings)


def test_schedules_with_the_same_records_are_shown_once(tmp_path):
    axes = {"workers": ["4", "4->6", "4->8"], "seed": [0, 1]}  # their rule never adds a worker in so few episodes
    study = load_study(make(tmp_path / "same", axes, episodes=120))
    assert [schedule.label for schedule in study.schedules()] == ["4", "4→6"]
    assert study.identical == (("4→6", "4→8"),)
    assert "4→8 ran exactly as 4→6" in answer.answer(study)


def at_the_edge(midpoint, slope=40.0, seeds=12):
    """Return a study whose runs learn with a chance that is logistic in workers / limit."""
    generator = np.random.default_rng(0)
    parts = []
    for seed in range(seeds):
        limit = 40.0 + 0.5 * seed
        numbers = {}
        for workers in range(36, 61, 2):
            chance = 1.0 / (1.0 + (workers / limit / midpoint) ** slope)
            final = 50.0 if generator.random() < chance else 0.05
            numbers[str(workers)] = {"final_score": final, "limit_workers": limit, "update_s": 0.01, "limit_name": "N0"}
        part = made_up(numbers, seeds=1)
        exact = [values["limit_workers"] for values in numbers.values()]
        parts.append(replace(part, runs=part.runs.assign(seed=seed, limit_workers=exact, update_s=0.01)))
    return joined(*parts)


@pytest.mark.parametrize("midpoint", [1.0, 1.15])
def test_the_edge_is_found_where_it_is(midpoint):
    study = at_the_edge(midpoint)
    assert edge.has_edge(study)
    found = edge.edges(study).iloc[0]
    assert found["low"] < midpoint < found["high"]
    assert found["high"] - found["low"] < 0.15
    assert found["slope_low"] < 40.0 < found["slope_high"] * 1.5


def test_a_study_without_failures_has_no_edge():
    study = made_up({str(workers): {"limit_workers": 50.0} for workers in range(10, 60, 10)})
    assert not edge.has_edge(study)
