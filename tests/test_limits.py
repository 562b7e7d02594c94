"""What is refused before a run, with what is allowed: numbers without end, games that can't be played, odd profiles."""

import pytest
from pydantic import ValidationError

from a3c_core.config import RunConfig
from a3c_core.errors import on_a_screen
from a3c_core.virtual.costs import load_profile
from experiments.grid.errors import GridError
from experiments.grid.file import read_grid
from experiments.grid.overrides import with_settings
from experiments.grid.validation import validated_cells
from experiments.sweep.estimate import cell_seconds

HEAD = "name: g\nquestion: Why?\n"


def refusal(tmp_path, text, *settings):
    """Return what is said of a grid that is refused."""
    (tmp_path / "g.yaml").write_text(HEAD + text)
    with pytest.raises(GridError) as caught:
        validated_cells(with_settings(read_grid(tmp_path / "g.yaml"), settings))
    return str(caught.value)


@pytest.mark.parametrize(
    ("settings", "allowed"),
    [
        ({"workers": 1_000_000_000}, "at most 100,000 workers"),
        ({"workers": "1->100001"}, "at most 100,000 workers"),
        ({"workers": 4097, "runtime": "processes"}, "at most 4,096 workers are possible with runtime: processes"),
        ({"workers": "auto", "runtime": "threads", "schedule": {"auto_max": 5000}}, "at most 4,096 workers"),
        ({"workers": "²"}, "is not a worker count"),
        ({"episodes": 10**12 + 1}, "less than or equal to 1000000000000"),
        ({"agents_per_worker": 99999999999}, "less than or equal to 1024"),
        ({"gpus": [-1]}, "greater than or equal to 0"),
        ({"seed": 2**63}, "less than or equal to"),
        ({"environment": {"max_episode_steps": 10**9}}, "less than or equal to 1000000"),
        ({"schedule": {"window": 10**30}}, "less than or equal to 1000000"),
        ({"environment": {"wait_s": 1e300}}, "less than or equal to 3600"),
    ],
)
def test_numbers_have_limits(settings, allowed):
    with pytest.raises(ValidationError) as caught:
        RunConfig.model_validate(settings)
    assert allowed in str(caught.value)


def test_the_limits_themselves_are_possible():
    assert RunConfig(workers="100000").span.end == 100_000
    assert RunConfig(workers="4096", runtime="processes").span.end == 4_096
    assert 0 < cell_seconds(RunConfig(episodes=10**12)) < float("inf")


@pytest.mark.parametrize(
    ("environment", "reason"),
    [("Pendulum-v1", "only numbered ones"), ("CartPol-v1", "CartPole"), ("nowhere:Game-v0", "No module named")],
)
def test_games_that_no_engine_can_play_are_refused_before_a_run(environment, reason, tmp_path):
    for engine in ("tensorflow", "compiled"):  # or else a user would try the next engine in vain
        said = refusal(tmp_path, f"base: {{environment: {{id: '{environment}'}}, engine: {engine}}}")
        assert "line 3, base.environment.id" in said
        assert reason in said


def test_a_typo_in_a_profile_gets_the_hint_that_one_in_a_grid_gets(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text("step_s: 0.01\nupdate_s: 0.1\nupdates_s: 0.2\n")
    with pytest.raises(ValueError, match=r"p\.yaml: line 3, updates_s: unknown key; did you mean update_s\?"):
        load_profile(str(path))
    for runtime in ("simulate", "processes"):
        said = refusal(tmp_path, f"base: {{profile: '{path}', runtime: {runtime}}}")
        assert "did you mean update_s?" in said
    assert "unknown setting; did you mean update_s?" in refusal(tmp_path, "base: {updates_s: 0.2}")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("step_s: -1\nupdate_s: x\n", "line 1, step_s: must be at least 0, not -1; line 2, update_s: must be a valid"),
        ("step_s: 1\n", "update_s: is missing"),
        ("step_s: 1e7\nupdate_s: 0\n", "line 1, step_s: must be at most 1,000,000, not 10000000.0"),
        ("- 1\n", "must be a mapping"),
        ("a: " + "[" * 5000, "line 1: nested more than 20 levels deep"),
        ("step_s: !!float x\n", "line 1: 'x' can't be read as float"),
    ],
)
def test_profiles_are_refused_with_the_line(text, reason, tmp_path):
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(ValueError, match=r"p\.yaml") as caught:
        load_profile(str(tmp_path / "p.yaml"))
    assert reason in str(caught.value)


def test_names_too_long_for_a_file_system_are_refused(tmp_path):
    assert "is too long for a directory" in refusal(tmp_path, f"axes: {{profile: [{'é' * 120}]}}")
    assert "the study's name" in refusal(tmp_path, "", f"environment.id={'x' * 250}")


def test_a_setting_on_the_command_line_hides_no_mistake_of_the_file(tmp_path):
    assert "did you mean seeds?" in refusal(tmp_path, "sedes: 3\n", "episodes=5")


def test_messages_end_after_a_screen():
    assert on_a_screen("one\ntwo") == "one\ntwo"
    many = on_a_screen("\n".join(f"mistake {number}" for number in range(1000)))
    assert many.startswith("mistake 0\nmistake 1\n")
    assert many.endswith("… and 980 more")
    assert len(on_a_screen("a " * 100_000)) <= 3_000
    assert on_a_screen(f"begin {'x' * 10_000} end").startswith("begin xxx")
    assert on_a_screen(f"begin {'x' * 10_000} end").endswith("xxx end")
