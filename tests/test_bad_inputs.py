"""No input ends in a traceback: hundreds of bad ones, each refused with a message of a screen and a documented code."""

import importlib
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import bad_inputs
from tests.bad_inputs import LONG, BadInput
from tests.sweeps import ROOT

SEED = 1
MOST_LINES, MOST_CHARACTERS = 22, 3_300
KINDS = ("settings", "grids", "profiles", "command_lines", "checkpoints", "logs")
DRY = ["--grid", "quick", "--dry-run"]
MODULES = {"run_sweep.py": "run_sweep", "a3c.benchmark": "a3c.benchmark.__main__"}
MODULES["a3c_core.train"] = "a3c_core.train.__main__"
MODULES["experiments.scale"] = "experiments.scale.__main__"
MODULES["a3c.advise"] = "a3c.advise.__main__"
MODULES["a3c.play"] = "a3c.play.__main__"


def documented_codes() -> dict[str, set[int]]:
    """Return {command: its exit codes} of docs/exit_codes.md."""
    head, *rows = re.findall(r"^\| (.*) \|$", (ROOT / "docs/exit_codes.md").read_text(), re.MULTILINE)
    numbers = [int(number) for number in head.split(" | ")[1:]]
    codes = {}
    for row in rows:
        command, *meanings = row.split(" | ")
        used = [number for number, meaning in zip(numbers, meanings, strict=True) if meaning != "-"]
        codes[command.strip("`")] = set(used)
    return codes


def given(case: BadInput, folder: Path, monkeypatch, capsys) -> tuple[int, str]:
    """Give a command its input as if it stood in `folder`; return its exit code and what it said of the mistake."""
    for name, content in case.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    monkeypatch.chdir(folder)
    module = importlib.import_module(MODULES.get(case.command, case.command))
    try:
        code = module.main(case.arguments) or 0
    except SystemExit as end:
        code = end.code
    except BaseException as error:
        pytest.fail(f"{case}: {type(error).__name__}: {str(error)[:300]}")
    return code, capsys.readouterr().err


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def generated(kind: str, folder: Path) -> list[BadInput]:
    draw = random.Random(SEED)
    if kind == "command_lines":
        return list(bad_inputs.bad_command_lines())
    if kind == "checkpoints":
        return list(bad_inputs.bad_checkpoints(draw, folder))
    return list(getattr(bad_inputs, f"bad_{kind}")(draw))


@pytest.mark.parametrize("kind", KINDS)
def test_bad_inputs_are_refused_with_a_message_of_a_screen(kind, tmp_path, monkeypatch, capsys):
    for number, case in enumerate(generated(kind, tmp_path / "sound")):
        folder = tmp_path / str(number)
        folder.mkdir()
        code, message = given(case, folder, monkeypatch, capsys)
        assert code == 2, f"{case}\n{message}"
        assert message.startswith("error: "), f"{case}\n{message}"
        assert message.count("\n") <= MOST_LINES, f"{case}\n{message}"
        assert len(message) <= MOST_CHARACTERS, f"{case}\n{message}"
        assert files_in(folder) == set(case.files), case
        if case.command == "a3c.advise":
            assert message.count("\n") == 1, f"{case}\n{message}"


def test_there_are_hundreds_of_them_and_they_differ(tmp_path):
    cases = [str((case.command, case.arguments, case.files)) for kind in KINDS for case in generated(kind, tmp_path)]
    assert len(set(cases)) >= 400


def test_advice_refuses_forty_command_lines_and_logs_of_each_kind(tmp_path):
    cases = [case for kind in ("command_lines", "logs") for case in generated(kind, tmp_path)]
    assert sum(case.command == "a3c.advise" for case in cases) >= 70


def test_damaged_files_never_end_in_a_traceback(tmp_path, monkeypatch, capsys):
    codes = documented_codes()
    for number, case in enumerate(bad_inputs.damaged_files(random.Random(SEED), tmp_path / "sound")):
        (tmp_path / str(number)).mkdir()
        code, message = given(case, tmp_path / str(number), monkeypatch, capsys)
        assert code in codes[case.command], f"{case}\n{message}"


def test_every_command_has_its_exit_codes_documented(tmp_path):
    codes = documented_codes()
    assert {case.command for kind in KINDS for case in generated(kind, tmp_path)} == set(codes)
    assert all({0, 2, 130} <= of_command for of_command in codes.values())
    may_fail = {"run_sweep.py", "a3c_core.train", "experiments.replicate"}
    assert {command for command, of_command in codes.items() if 1 in of_command} == may_fail


@pytest.mark.parametrize(
    "words",
    [
        ["run_sweep.py", *DRY, "--set", "environment.id=Pendulum-v1", "--set", "engine=tensorflow"],
        ["run_sweep.py", "--grid", LONG],
        ["-m", "a3c.benchmark", "env", "--json", "."],
        ["-m", "analysis.report", LONG],
    ],
)
def test_as_a_user_types_them(words, tmp_path):
    words = [str(ROOT / word) if word == "run_sweep.py" else word for word in words]
    ended = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: ")
    assert len(ended.stderr) < MOST_CHARACTERS
