"""`make setup` and what a new user does next: the commands of the README, from any directory."""

import os
import re
import shutil
import site
import subprocess
import sys
from pathlib import Path

import pytest

from a3c import __main__ as a3c
from a3c_core.command_line.arguments import python_command
from tests.fake_ple import write_checkout
from tests.sweeps import PATIENCE_S, ROOT

BIN = Path(sys.executable).parent


@pytest.fixture
def environment(tmp_path):
    """An environment that has all packages of this one, as `make setup` would leave it, to add something to."""
    folder = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / "ours.pth").write_text("\n".join([*site.getsitepackages(), str(ROOT)]))
    (folder / "bin/uv").symlink_to(shutil.which("uv", path=BIN) or "missing")
    (folder / ".ready").touch()
    return folder


def make(environment, *words):
    return subprocess.run(
        ["make", "-C", str(ROOT), f"VENV={environment}", *words], capture_output=True, text=True, timeout=PATIENCE_S
    )


def test_setup_ple_installs_a_checkout_with_its_pictures(environment, tmp_path):
    checkout = write_checkout(tmp_path / "a checkout")
    ended = make(environment, "setup-ple", f"PLE={checkout}")
    assert ended.returncode == 0, ended.stderr
    assert "The real PLE is ready" in ended.stdout


def test_setup_ple_clones_what_is_not_a_folder_and_keeps_an_older_clone_if_it_can_not(environment, tmp_path):
    git = ["git", "-C", str(write_checkout(tmp_path / "origin")), "-c", "user.name=me", "-c", "user.email=me@here"]
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "all"]):
        subprocess.run([*git, *words], check=True)
    pinned = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    (tmp_path / "origin/ple/__init__.py").write_text("raise SystemExit('not what was pinned')\n")
    subprocess.run([*git, "commit", "--quiet", "-a", "-m", "later"], check=True)
    ended = make(environment, "setup-ple", f"PLE=file://{tmp_path}/origin", f"PLE_COMMIT={pinned}")
    assert ended.returncode == 0, ended.stderr
    assert make(environment, "setup-ple", f"PLE=file://{tmp_path}/nowhere").returncode != 0
    assert (environment / "ple/ple/games/assets/bird.png").exists()


def test_a_ple_without_pictures_is_one_clear_error(tmp_path):
    checkout = write_checkout(tmp_path / "checkout", pictures=False)
    program = "from a3c_core.games.ple import PleEnv; PleEnv()"
    environment = {**os.environ, "PYTHONPATH": f"{checkout}{os.pathsep}{ROOT}"}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    last = ended.stderr.splitlines()[-1]
    assert "lacks its pictures" in last
    assert "`make setup-ple`" in last


def run(command, folder, **changes):
    """Run a shell's line in the folder, where nothing is activated, and return what it printed."""
    path = os.pathsep.join(["/usr/bin", "/bin"])
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PATH": path} | changes
    ended = subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


README = (ROOT / "README.md").read_text()
MODULES = sorted(set(re.findall(r"python -m ([\w.]+)", README)))
ACTIVATED = {"PATH": os.pathsep.join([str(BIN), "/usr/bin", "/bin"])}


def test_the_readme_says_how_to_activate_the_environment_before_it_is_needed():
    assert README.index("source .venv/bin/activate") < README.index("python -m")
    assert README.index("source .venv/bin/activate") < README.index("python run_sweep.py")


@pytest.mark.parametrize("module", MODULES)
def test_the_readmes_modules_run_in_any_directory(module, tmp_path):
    assert "examples:" in run(f"python -m {module} --help", tmp_path, **ACTIVATED)


def test_the_readmes_python_runs_as_it_stands(tmp_path):
    (snippet,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (tmp_path / "snippet.py").write_text(snippet.replace("30_000", "300"))
    assert float(run("python snippet.py", tmp_path, **ACTIVATED)) >= 0


@pytest.mark.parametrize("name", a3c.COMMANDS)
def test_every_command_has_a_short_name(name, tmp_path):
    assert f"  {name} " in run("a3c --help", tmp_path, **ACTIVATED)
    assert "examples:" in run(f"a3c {name} --help", tmp_path, **ACTIVATED)


def test_a_mistyped_short_name_is_one_line(capsys):
    assert a3c.main(["reprot"]) == 2
    assert capsys.readouterr().err == "error: unknown command 'reprot'; did you mean report? (--help shows examples)\n"


def test_shipped_grids_are_found_and_what_is_printed_next_works_in_any_directory(tmp_path):
    command = f"'{BIN / 'a3c'}' sweep --grid quick --set episodes=50 --only workers=4,seed=0 --results 'my results'"
    printed = run(f"{command} --no-tracking --no-page", tmp_path)
    (following,) = re.findall(r"^Report page: (.*)$", printed, re.MULTILINE)
    assert (tmp_path / "my results/quick+episodes=50/study.json").exists()
    assert "index.html: 1 run, " in run(following, tmp_path)


def test_python_is_named_as_a_shell_finds_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(BIN))
    assert python_command("-m", "x", "a b") == "python -m x 'a b'"
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.chdir(tmp_path)
    assert python_command("-m", "x") == f"{sys.executable} -m x"
    monkeypatch.chdir(BIN.parent)
    assert python_command("-m", "x") == f"bin/{Path(sys.executable).name} -m x"
