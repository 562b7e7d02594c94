"""`make setup` and what a new user does next: the commands of the README, from any directory."""

import os
import shutil
import site
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fake_ple import write_checkout
from tests.sweeps import ROOT


@pytest.fixture
def environment(tmp_path):
    """An environment that has all packages of this one, as `make setup` would leave it, to add something to."""
    folder = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / "ours.pth").write_text("\n".join([*site.getsitepackages(), str(ROOT)]))
    (folder / "bin/uv").symlink_to(shutil.which("uv", path=Path(sys.executable).parent) or "missing")
    (folder / ".ready").touch()
    return folder


def make(environment, *words):
    return subprocess.run(
        ["make", "-C", str(ROOT), f"VENV={environment}", *words], capture_output=True, text=True, timeout=300
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
    ended = make(environment, "setup-ple", f"PLE=file://{tmp_path}/origin")
    assert ended.returncode == 0, ended.stderr
    assert make(environment, "setup-ple", f"PLE=file://{tmp_path}/nowhere").returncode != 0
    assert (environment / "ple/ple/games/assets/bird.png").exists()


def test_a_ple_without_pictures_is_one_clear_error(tmp_path):
    checkout = write_checkout(tmp_path / "checkout", pictures=False)
    program = "from a3c_core.envs.ple import PleEnv; PleEnv()"
    environment = {**os.environ, "PYTHONPATH": f"{checkout}{os.pathsep}{ROOT}"}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    last = ended.stderr.splitlines()[-1]
    assert "lacks its pictures" in last
    assert "`make setup-ple`" in last
