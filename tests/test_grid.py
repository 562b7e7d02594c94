"""Grids: read safely, validated whole, and expanded in order."""

import importlib.util
import re

import pytest

from a3c_core.virtual.costs import load_profile
from a3c_core.yaml_text import NotYaml, read_yaml
from experiments.grid.cells import Grid, cell_id, expand, short_names
from experiments.grid.errors import GridError, UserError
from experiments.grid.file import SHIPPED, find_grid, read_grid, shipped_grids
from experiments.grid.overrides import select, with_seeds, with_settings
from experiments.grid.settings import nest, text_of
from experiments.grid.validation import validated_cells

HEAD = "name: g\nquestion: Why?\n"


def load(tmp_path, text, head=HEAD):
    path = tmp_path / "g.yaml"
    path.write_text(head + text)
    return read_grid(path)


def mistakes(tmp_path, text, head=HEAD):
    """Return the mistakes that are found in a grid file, as lines."""
    with pytest.raises(GridError) as caught:
        validated_cells(load(tmp_path, text, head))
    return [str(mistake) for mistake in caught.value.problems]


def test_cells_come_in_the_order_of_the_axes_with_ids_from_their_values(tmp_path):
    file = load(tmp_path, "axes: {workers: [10->20, 4], learner.learning_rate: [1e-4, 0.001]}\nseeds: [3, 1]\n")
    cells = validated_cells(file)
    assert [cell.id for cell in cells[:3]] == [
        "workers=10to20,learning_rate=0.0001,seed=3",
        "workers=10to20,learning_rate=0.0001,seed=1",
        "workers=10to20,learning_rate=0.001,seed=3",
    ]
    assert len(cells) == 8
    assert cells[0].config.workers == "10->20"
    assert cells[0].config.learner.learning_rate == 1e-4
    assert cells[0].settings == {"workers": "10->20", "learner.learning_rate": 1e-4, "seed": 3}
    assert expand(file.grid) == cells


def test_a_cells_id_does_not_depend_on_the_other_cells(tmp_path):
    few = {cell.id for cell in validated_cells(load(tmp_path, "axes: {workers: [20, 4]}\nseeds: 1\n"))}
    many = {cell.id for cell in validated_cells(load(tmp_path, "axes: {workers: [4, 10, 20]}\nseeds: 3\n"))}
    assert few < many


def test_axes_that_share_their_last_name_keep_all_of_it():
    grid = Grid("g", "Why?", axes={"exchange.queue": ("bounded",), "other.queue": (1,)})
    assert list(grid.all_axes) == ["exchange.queue", "other.queue"]
    assert cell_id({"exchange.queue": "bounded", "other.queue": 1}, short_names(grid)) == (
        "exchange.queue=bounded,other.queue=1"
    )


def test_schedule_axes_vary_dynamic_cells_only(tmp_path):
    text = "axes: {workers: [4, 6->12, auto], schedule.rule: [report, slides]}\n"
    cells = validated_cells(load(tmp_path, text))
    assert [cell.id for cell in cells] == [
        "workers=4,seed=0",
        "workers=6to12,rule=report,seed=0",
        "workers=6to12,rule=slides,seed=0",
        "workers=auto,rule=report,seed=0",
        "workers=auto,rule=slides,seed=0",
    ]
    assert cells[2].config.schedule.rule == "slides"


def test_cases_are_an_axis_of_named_settings(tmp_path):
    text = "base: {workers: 40, exchange: {queue: unbounded}}\ncases:\n  none: {}\n  full: {exchange.queue: bounded}\n"
    none, full = validated_cells(load(tmp_path, text))
    assert (none.id, none.config.exchange.queue) == ("case=none,seed=0", "unbounded")
    assert (full.id, full.config.exchange.queue) == ("case=full,seed=0", "bounded")
    assert full.settings == {"case": "full", "seed": 0}


def test_every_mistake_is_reported_at_once_with_its_place(tmp_path):
    text = """\
base:
  worker: 10
  episodes: many
  learner: {optimizer: adm}
  learning_rate: 1e-3
axes:
  workers: [0, -2, 12->6, 10, "10"]
  exchange.queue: [unbound]
seeds: [1, 1]
sedes: 3
"""
    found = mistakes(tmp_path, text)
    assert found == [
        "line 12, sedes: unknown key; did you mean seeds?",
        "line 9, axes.workers: 10 appears twice",
        "line 11, seeds: 1 appears twice",
        "line 5, base.episodes: must be a valid integer, not 'many'",
        "line 6, base.learner.optimizer: must be adam, rmsprop or sgd, not 'adm'; did you mean adam?",
        "line 10, axes.exchange.queue: must be unbounded, bounded or dropping, not 'unbound'; did you mean unbounded?",
        "line 4, base.worker: unknown setting; did you mean workers?",
        "line 7, base.learning_rate: unknown setting; did you mean learner.learning_rate?",
        "line 9, axes.workers: '0': there must be at least 1 worker",
        "line 9, axes.workers: '-2' is not a worker count: write 10, 10->20 or auto",
        "line 9, axes.workers: '12->6': the report rule only adds workers: write the smaller number first",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("axes: {workers: 10}", "must be a list of values"),
        ("axes: {workers: []}", "must be a list of values"),
        ("axes: {workers: [6->12, 6→12]}", "6→12 appears twice"),
        ("axes: {learner.gamma: [0.5, 5e-1]}", "0.5 appears twice"),
        ("base: {workers: 4}\naxes: {workers: [4]}", "is fixed in base too"),
        ("axes: {seed: [1]}", "seeds have a key of their own"),
        ("base: {seed: 1}", "seeds have a key of their own"),
        ("base: {learner: 3}", "is a group of settings: gamma"),
        ("base: {learner: 3}\naxes: {learner.gamma: [1]}", "is a group of settings"),
        ("base: {episodes: true}", "must be a valid integer"),
        ("base: {engine: numba}", "must be compiled, tensorflow or report"),
        ("base: {profile: nowhere}", "no cost profile 'nowhere'"),
        ("base: {environment: {observation: raw}}", "compiled can't run this"),
        (
            "base: {environment: {observation: frames}}",
            "observation: frames need each other",
        ),
        ("base: {learner: {update_every: t_max}}", "needs a t_max"),
        ("base: {learner: {t_max: 5}}", "set it to false with a t_max"),
        ("base: {environment: {id: Pong}}", "compiled can't run this"),
        ("base: 4", "must be a mapping"),
        ("cases: {a b: {}}", "a case's name"),
        ("cases: {a: {workers: 4}}\naxes: {workers: [4]}", "is fixed by the case a too"),
        ("seeds: 0", "from 1 to 10,000"),
        ("seeds: [-1]", "from 0 on"),
        ("tracking: {every: 0}", "at least 1"),
        ("tracking: {evry: 2}", "did you mean every?"),
    ],
)
def test_mistakes_say_what_is_allowed(tmp_path, text, expected):
    (found,) = mistakes(tmp_path, text)
    assert expected in found


def test_a_grid_needs_a_name_for_a_directory_and_a_question(tmp_path):
    assert mistakes(tmp_path, "name: ../up\nquestion: ' '\n", head="") == [
        "line 1, name: '../up' can't name a directory: use letters, digits, '_', '-' and '.'",
        "line 2, question: must be text",
    ]


def test_a_setting_that_an_axis_completes_is_no_mistake(tmp_path):
    text = "base: {learner: {update_every: t_max, standardise: false}}\naxes: {learner.t_max: [5, 20]}\n"
    assert len(validated_cells(load(tmp_path, text))) == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: 1\na: 2\n", "line 2: a appears twice, first on line 1"),
        ("a: [1\n", "line 2: not YAML"),
        ("a: !!python/object/apply:os.getcwd []\n", "is not supported"),
        ("a: !!python/name:os.getcwd\n", "not YAML"),
        ("a: &x 1\nb: *x\n", "aliases"),
        ("? [a]\n: 1\n", "a key must be a word"),
        ("a: \x00", "not YAML"),
    ],
)
def test_yaml_is_read_safely(text, reason):
    with pytest.raises(NotYaml, match=re.escape(reason)):
        read_yaml(text)


def test_yaml_scalars_do_not_surprise():
    text = "[1e-4, 10:20, on, 010, 100_000, -3, 0.5, ~, true, 6->12, 2026-01-01]"
    expected = [1e-4, "10:20", "on", "010", 100_000, -3, 0.5, None, True, "6->12", "2026-01-01"]
    assert read_yaml(text).data == expected


def test_set_changes_the_base_and_the_studys_name(tmp_path):
    file = with_settings(load(tmp_path, "axes: {workers: [4]}\n"), ["episodes=50", "exchange.queue=dropping"])
    (cell,) = validated_cells(file)
    assert (cell.config.episodes, cell.config.exchange.queue) == (50, "dropping")
    assert file.grid.name == "g+episodes=50,exchange.queue=dropping"
    assert with_settings(file, ["tracking.every=5"]).grid.name == file.grid.name


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("workers=4", "it varies in this grid"),
        ("seed=1", "--seeds"),
        ("episodes", "key=value"),
        ("tracking.every=0", "at least 1"),
        ("episdes=3", "did you mean episodes?"),
        ("episodes=3.5", "--set episodes: must be a valid integer"),
    ],
)
def test_set_refuses(tmp_path, setting, expected):
    with pytest.raises(UserError) as caught:
        validated_cells(with_settings(load(tmp_path, "axes: {workers: [4, 6]}\n"), [setting]))
    assert expected in str(caught.value)


def test_only_selects_cells(tmp_path):
    file = load(tmp_path, "axes: {workers: [4, 10->20], exchange.queue: [bounded, dropping]}\nseeds: 2\n")
    cells = validated_cells(file)

    def chosen(*wishes):
        return [cell.id for cell in select(file.grid, cells, wishes)]

    assert len(chosen()) == 8
    assert chosen("workers=10->20,seed=1,queue=bounded") == ["workers=10to20,queue=bounded,seed=1"]
    assert chosen("workers=10to20,seed=1") == [
        f"workers=10to20,queue={queue},seed=1" for queue in ("bounded", "dropping")
    ]
    assert len(chosen("workers=4,seed=0", "exchange.queue=dropping")) == 5
    for wish, reason in (
        ("worker=4", "did you mean workers?"),
        ("workers=5", "there are 4, 10to20"),
        ("x", "key=value"),
    ):
        with pytest.raises(UserError) as caught:
            chosen(wish)
        assert reason in str(caught.value)


def test_seeds_are_a_count_or_a_list(tmp_path):
    file = load(tmp_path, "")
    assert with_seeds(file, "3").grid.seeds == (0, 1, 2)
    assert with_seeds(file, "0,5").grid.seeds == (0, 5)
    for seeds in ("0", "x", "1,1", "-1,2", ""):
        with pytest.raises(UserError, match="--seeds"):
            with_seeds(file, seeds)


def test_shipped_grids_are_valid_and_ask_something():
    grids = {path.stem: read_grid(path) for path in shipped_grids()}
    assert set(grids) >= {"workers", "report", "quick", "remedies", "sensitivity"}
    for name, file in grids.items():
        assert file.grid.name == name
        assert file.grid.question.endswith("?")
        if "ALE/" in str(file.grid.base) and importlib.util.find_spec("ale_py") is None:
            with pytest.raises(GridError, match="make setup-atari"):  # tests/test_atari.py has the extra
                validated_cells(file)
        else:
            assert validated_cells(file)


def test_the_report_grid_covers_all_schedules_and_both_rules_without_doubling_fixed_cells():
    cells = validated_cells(read_grid(find_grid("report")))
    kinds = {(cell.settings["workers"], cell.settings.get("schedule.rule")) for cell in cells}
    dynamic = {(workers, rule) for workers in ("6->12", "10->20", "10->32") for rule in ("report", "slides")}
    assert kinds == {(workers, None) for workers in ("4", "10", "20", "40", "60", "80")} | dynamic
    assert len(cells) == len(kinds) * 5


def test_grids_are_found_here_and_then_among_those_shipped(tmp_path):
    (tmp_path / "quick.yaml").write_text(HEAD)
    assert find_grid("quick", tmp_path) == tmp_path / "quick.yaml"
    assert find_grid("report.yaml", tmp_path) == SHIPPED / "report.yaml"
    with pytest.raises(UserError, match="did you mean report"):
        find_grid("reprot", tmp_path)


def test_names_and_values_of_settings():
    assert nest({"a.b": 1, "c": 2}) == {"a": {"b": 1}, "c": 2}
    assert [text_of(value) for value in (None, True, "a/b c", 1e-5, "6→12")] == [
        "none",
        "true",
        "a-b-c",
        "1e-05",
        "6to12",
    ]


def test_a_prediction_and_a_threshold_are_part_of_the_plan(tmp_path):
    path = tmp_path / "grid.yaml"
    path.write_text("name: g\nquestion: q?\nprediction: >-\n  Ten learn\n  best.\nlearned_above: 2\n")
    grid = read_grid(path).grid
    assert (grid.prediction, grid.learned_above) == ("Ten learn best.", 2)
    assert grid.as_data()["prediction"] == "Ten learn best."
    path.write_text("name: g\nquestion: q?\nlearned_above: high\n")
    assert [problem.reason for problem in read_grid(path).problems] == ["must be a score, such as 1 pipe, not 'high'"]


def test_costs_vary_by_the_deviation_that_a_run_names():
    profile = load_profile("report").overridden({"jitter": "lognormal", "jitter_deviation": 0.002})
    assert (profile.jitter, profile.jitter_deviation) == ("lognormal", 0.002)
    assert all(abs(profile.jittered(1.0, 0, 0, count) - 1.0) < 0.02 for count in range(100))
