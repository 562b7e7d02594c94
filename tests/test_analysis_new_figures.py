"""The cliff, late gradients, the published run and factors: each applies where its runs are, and says what is true."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.claims.catalogue import judge_all
from analysis.data import compact, factors, metrics, speedups
from analysis.data.algorithms import comparison
from analysis.data.load import collect, load_study, read_plan
from analysis.data.published import averages_of, published, spikes
from analysis.figures import algorithms, cliff, dose, drawing, hours, overlay, style, table2, twins
from analysis.figures import factors as factors_figure
from analysis.figures.catalogue import catalogue
from analysis.figures.main import main_figure
from analysis.pages.answer import answer
from analysis.pages.page import facts
from tests.analysis_studies import joined, made_up, make
from tests.readable import flaws

LIMIT = {"limit_name": "N0", "limit_workers": 13, "n0": 13, "n_star": 14}
LIMIT |= {"untrained_cycle_s": 0.4, "untrained_service_s": 0.03}
LOST = {"final_score": 0.05, "collapsed": True}


def drawn(figure, study):
    with style.paper():
        return drawing.draw(figure.part(study), figure.panels)


def test_the_cliff_says_between_which_counts_learning_ends():
    counts = {str(n): {**LIMIT, **({} if n < 14 else LOST)} for n in (4, 8, 10, 12, 14, 16, 20)}
    study = made_up(counts)
    assert cliff.FIGURE.of(study)
    says = cliff.FIGURE.says(study)
    assert "100 % [72 %, 100 %] with 12 workers and 0 % [0 %, 28 %] with 14 workers" in says
    assert "N0 = C / S = 13.0 was known before" in says
    assert len(drawn(cliff.FIGURE, study).axes[0].lines) == 2
    assert not cliff.FIGURE.of(made_up({"4": LIMIT, "20": LIMIT}))


def test_late_gradients_are_read_by_optimizer():
    parts = [
        made_up({"10": {"staleness_mean": float(hold + 9), **({} if hold < 500 else LOST)}}, **{"exchange.hold": hold})
        for hold in (0, 50, 500)
    ]
    study = joined(*parts)
    slow = replace(study, runs=study.runs.assign(optimizer="sgd", final_score=50.0, variant="sgd"))
    both = joined(study, slow)
    assert dose.FIGURE.of(both)
    says = dose.FIGURE.says(both)
    assert says.startswith("Most runs learn up to a mean staleness of ")
    assert "with adam (not at 5" in says
    assert says.endswith("with sgd.")
    assert all(len(ax.lines) == 2 for ax in drawn(dose.FIGURE, both).axes)
    assert not dose.FIGURE.of(made_up({"10": {}}))


def test_hours_are_split_by_what_workers_do():
    known = {"engine": "tensorflow", "runtime": "processes", "worker_pull_s": 5, "worker_apply_s": 5}
    known |= {"worker_play_s": 70, "worker_act_s": 20, "worker_gradient_s": 10, "worker_wait_s": 10}
    parts = [
        made_up({"2": {**known, "env_steps_per_s": speed}}, case=name)
        for name, speed in (("processes", 2500), ("threads", 250))
    ]
    study = joined(*parts)
    table = hours.hours(study)
    np.testing.assert_allclose(table.loc["processes"] * 9, [0.5, 0.2, 0.1, 0.1, 0.1])
    assert hours.FIGURE.of(study)
    says = hours.FIGURE.says(study)
    assert "0.11 hours with processes and 1.11 with threads; of the former, 50 % of the" in says
    assert says.endswith("goes to the game.")
    assert [flaw for panel in drawn(hours.FIGURE, study).panels for flaw in flaws(panel)] == []
    assert main_figure(study).panels != hours.FIGURE.panels  # a long study asks what was learned
    brief = replace(study, runs=study.runs.assign(planned=500))
    assert main_figure(brief).panels == hours.FIGURE.panels
    assert answer(brief) == says
    unknown = replace(study, runs=study.runs.assign(engine="compiled"))
    assert not hours.FIGURE.of(unknown)


def test_a_page_can_be_made_when_one_of_many_settings_is_done():
    study = joined(*(made_up({"2": {}}, case=name) for name in ("this", "that")))
    status = np.where(study.runs["variant"] == "this", "finished", "missing")
    begun = replace(study, runs=study.runs.assign(status=status))
    assert begun.compares_settings
    figure = main_figure(begun)
    assert figure.says(begun)


def averaged(study, begins):
    """Return a study whose runs' moving averages begin to learn at these episodes, with a loss that spikes nowhere."""
    episodes = np.arange(0, 100_000, metrics.AVERAGED_EVERY)
    rewards = [np.where(episodes >= begin, 20.0, -5.0).astype(np.float32) for begin in begins]
    losses = [np.exp(np.random.default_rng(seed).normal(size=len(episodes))) for seed in range(len(begins))]
    runs = study.runs.assign(reward_average=rewards, loss_average=losses)
    return replace(study, name="published", runs=runs)


def test_the_published_run_is_laid_over_ours():
    study = averaged(made_up({"10": {}}, seeds=3), [60_000, 80_000, np.inf])
    assert overlay.FIGURE.of(study)
    says = overlay.FIGURE.says(study)
    assert "it was restarted at 45,000, 100,000 and 230,000" in says
    assert "With 10 workers, 2 of 3 runs pass 5 pipes (median episode 80,000)" in says
    assert "25 pipes in the median (0 to 25)" in says
    assert len(drawn(overlay.FIGURE, study).axes[0].lines) == 3 + 1 + 1 + 3  # runs, median, published, restarts
    assert not overlay.FIGURE.of(replace(study, name="report"))
    assert not overlay.FIGURE.of(replace(made_up({"10": {}}), name="published"))


def test_the_published_loss_spikes_where_the_script_saves():
    ratio, p = spikes([published()])
    assert ratio > 2.0
    assert p < 0.01
    assert published().begins == 75_000
    assert spikes(averages_of(averaged(made_up({"10": {}}, seeds=3), [0, 0, 0])))[1] > 0.01


def of_factors(interacts):
    """Return a study of two factors and two worker counts, of which one matters, at many workers only if so asked."""
    parts = []
    for rate, size in ((a, b) for a in (1, 2) for b in (8, 16)):
        gain = {n: 20.0 if rate == 2 and (n == "20" or not interacts) else 0.0 for n in ("4", "20")}
        numbers = {n: {"final_score": 50.0 + gain[n], "learning_begins": 20_000.0} for n in gain}
        settings = {"rate": rate, "size": size}
        part = made_up(numbers, noise=0.05, **settings)
        parts.append(replace(part, runs=part.runs.assign(settings=json.dumps(settings))))
    return replace(joined(*parts), axes={"workers": ["4", "20"], "rate": [1, 2], "size": [8, 16]})


@pytest.mark.parametrize("interacts", [True, False])
def test_a_factor_that_matters_only_with_many_workers_is_found(interacts):
    study = of_factors(interacts)
    assert factors_figure.FIGURE.of(study)
    table = factors.effects(study).set_index(["factor", "outcome", "workers"])
    assert table.loc[("rate", "final_score", 20), "effect"].item() == pytest.approx(20.0, abs=3.0)
    assert table.loc[("rate", "final_score", 4), "effect"].item() == pytest.approx(0.0 if interacts else 20.0, abs=3.0)
    assert bool(table.loc[("rate", "final_score", 4), "holds"].item()) == interacts
    assert ("rate 2 on final score" in factors_figure.FIGURE.says(study)) == interacts
    assert len(drawn(factors_figure.FIGURE, study).axes) == 3


def test_averages_are_kept_and_those_of_older_tables_are_not_needed(tmp_path):
    folder = make(tmp_path / "kept", {"workers": ["2"], "seed": [0]}, episodes=1_200)
    study = load_study(folder)
    records = pd.read_parquet(next(folder.glob("cells/*/episodes.parquet")))
    average, twin = 0.0, []
    for episode, reward in enumerate(records["return"]):
        average += metrics.COEFFICIENT * (reward - average)
        twin += [average] if episode % metrics.AVERAGED_EVERY == 0 else []
    assert study.runs["reward_average"].iloc[0] == pytest.approx(twin, rel=1e-5)
    compact.write(folder, collect(folder, read_plan(folder)))
    assert len(compact.read(folder).runs["loss_average"].iloc[0]) == 3
    table = pd.read_parquet(folder / "runs.parquet")
    assert averages_of(replace(study, runs=study.runs.assign(reward_average=None, loss_average=None))) == []
    assert len(table) == 1


def test_real_processes_are_laid_beside_their_twins_in_virtual_time(tmp_path):
    axes = {"runtime": ["threads", "simulate"], "workers": ["2", "4", "2->4"], "seed": [0]}
    exchange = {"channel": "latest", "queue": "unbounded"}
    study = load_study(make(tmp_path / "both", axes, episodes=120, exchange=exchange))
    assert [schedule.label for schedule in twins.twins(study)] == ["2", "4", "2→4"]
    assert "twins" in [figure.name for figure in catalogue(study)]
    pictures = drawn(twins.FIGURE, study)
    assert [flaw for panel in pictures.panels for flaw in flaws(panel)] == []
    for ax in pictures.axes:
        assert len(ax.lines) == 6  # a real and a virtual one of each
        assert ax.get_legend_handles_labels()[1] == ["2", "4", "2→4"]
    real, virtual = (part.values(study.fixed(4), "staleness_mean")[0] for part in twins.halves(study))
    says = twins.FIGURE.says(study)
    assert says.startswith("Mean staleness with real processes is within ")
    assert "of that in virtual time in all 3 schedules (most with " in says
    assert real != virtual  # each half is its own
    assert "virtual time and real time (threads)" in facts(study)
    assert not twins.FIGURE.of(study.of_variant("runtime simulate"))
    assert not twins.FIGURE.of(made_up({"4": {}, "10": {}}))


def of_case(case, algorithm, times):
    """Return made-up runs of a case: `times` are the seconds to every score, by number of workers."""
    marks = made_up({"1": {}}).score.marks
    counts = {}
    for workers, seconds in times.items():
        to_marks = {f"time_to_{mark:g}_s": seconds for mark in marks}
        to_marks |= {f"env_steps_to_{mark:g}": seconds * int(workers) * 100 for mark in marks}
        counts[workers] = {**to_marks, "topology": "hogwild"}
    study = made_up(counts, case=case)
    return replace(study, runs=study.runs.assign(algorithm=algorithm))


def test_speedups_stand_beside_the_papers():
    linear = of_case("a3c", "a3c", {"1": 160.0, "4": 40.0, "16": 10.0})
    beyond = of_case("q", "q", {"1": 320.0, "4": 60.0, "16": 10.0})
    hopeless = of_case("sarsa", "sarsa", dict.fromkeys(("1", "4", "16"), np.inf))
    study = joined(linear, beyond, hopeless)
    assert main_figure(study).panels == table2.FIGURE.panels
    table = speedups.speedups(study).set_index(["setting", "workers"])
    assert table.loc[("a3c", 16), "time"] == pytest.approx(16, rel=0.02)
    assert table.loc[("a3c", 16), "env_steps"] == pytest.approx(1, rel=0.02)
    assert table.loc[("q", 16), "time"] == pytest.approx(32, rel=0.02)
    assert table.loc[("q", 16), "paper"] == 24.1
    assert np.isnan(table.loc[("sarsa", 16), "time"])
    says = table2.FIGURE.says(study)
    assert re.search(r"q 3[12]\.\d times as soon and with 0\.[45]\d times the env steps, in the paper 24\.1", says)
    assert "sarsa in too few runs to tell, in the paper 22.1" in says
    assert len(drawn(table2.FIGURE, study).axes) == 2
    verdicts = {judgement.number: judgement for judgement in judge_all(study)}
    findings = verdicts[15].findings
    assert [finding.verdict for finding in findings] == ["supported", "not tested here"]
    assert 15 not in {judgement.number for judgement in judge_all(made_up({"10": {}}))}


@pytest.fixture(scope="module")
def few_algorithms(tmp_path_factory):
    axes = {"algorithm": ["a3c", "q", "ppo"], "workers": ["1", "2", "4"], "seed": [0, 1]}
    folder = tmp_path_factory.mktemp("algorithms") / "few"
    return load_study(make(folder, axes, learned_above=0.0, env_steps=2_000, profile="report-batches"))


def test_algorithms_are_compared_by_workers_and_by_what_they_need(few_algorithms):
    bearing, axes = algorithms.figures(few_algorithms)
    assert main_figure(few_algorithms).panels == bearing.panels
    assert [figure.name for figure in catalogue(few_algorithms)].count("algorithm_axes") == 1
    assert len(drawn(bearing, few_algorithms).axes) == 1
    assert len(drawn(axes, few_algorithms).axes) == 4
    table = comparison(few_algorithms)
    assert len(table) == 9
    limits = table.groupby("algorithm")["limit"].first()
    assert limits["q"] < limits["a3c"]  # five steps keep a master as busy as an episode does
    assert bearing.says(few_algorithms).startswith("With the report's exchange a3c learns with 1, 2 and 4 workers")
    assert "the fewest are needed by" in axes.says(few_algorithms)


def test_ppo_is_compared_per_step_and_per_second(few_algorithms):
    findings = next(j for j in judge_all(few_algorithms) if j.number == 11).findings
    said = [finding.text for finding in findings]
    assert len(said) == 2
    assert said[0].startswith("After the same env steps PPO is ")
    assert said[1].startswith("After the same time PPO is ")
    assert all(finding.estimate.runs == 2 for finding in findings)  # a seed is one block
