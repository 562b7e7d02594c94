"""The wheel: what `uv build` makes of the project must work without its checkout."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import a3c_core
from a3c import __main__ as a3c
from tests.analysis_studies import plan
from tests.sweeps import PATIENCE_S, ROOT


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The wheel's content, as an installation would lay it out."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "uv", "build", "--wheel", "--no-build-isolation", "--offline", "--quiet"]
    subprocess.run([*build, "--out-dir", folder, ROOT], check=True, timeout=PATIENCE_S)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder / "site")
    return folder / "site"


def run(installed, tmp_path, *words: str) -> str:
    """Run one of our commands from the wheel alone, in an empty directory."""
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    command = [
        sys.executable,
        "-c",
        "import sys; from a3c.__main__ import main; sys.exit(main())",
        *words,
    ]
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE_S)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_its_grids_are_found_from_anywhere(installed, tmp_path):
    assert "15 cells" in run(installed, tmp_path, "sweep", "--grid", "quick", "--dry-run")


def test_a_page_is_made_from_the_wheel_alone(installed, tmp_path):
    plan(tmp_path / "planned", {"workers": ["2"], "seed": [0]}, episodes=200)
    assert "planned/index.html: 0 runs" in run(installed, tmp_path, "report", "planned")


def test_every_command_is_there(installed, tmp_path):
    program = """
import sys
from a3c import __main__ as a3c
for name in a3c.COMMANDS:
    try:
        a3c.main([name, "--help"])
    except SystemExit as ended:
        assert ended.code == 0
ours = [m for n, m in sys.modules.items() if n.split(".")[0] in ("a3c", "a3c_core", "analysis", "experiments")]
print(len({m.__file__ for m in ours if not m.__file__.startswith(sys.argv[1])}))
"""
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    command = [sys.executable, "-c", program, str(installed)]
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE_S)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("examples:") == len(a3c.COMMANDS)
    assert ended.stdout.splitlines()[-1] == "0"  # modules that are not the wheel's


def test_no_part_of_the_packages_is_left_out(installed):
    tracked = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True).stdout.split("\n")
    ours = [name for name in tracked if re.match(r"(a3c|a3c_core|experiments|analysis)/.*\.(py|yaml|html|csv)$", name)]
    assert len(ours) > 200
    assert [name for name in ours if not (installed / name).exists()] == []


def test_the_version_is_the_same_everywhere(installed, tmp_path):
    version = a3c_core.__version__
    assert run(installed, tmp_path, "--version") == f"a3c {version}\n"
    assert list(installed.glob(f"*-{version}.dist-info"))
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {version}\n" in (ROOT / "CHANGELOG.md").read_text()
